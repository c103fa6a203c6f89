//! One sandbox: found by its id, ended when it is dropped unless it is to stay.

use crate::builder::{Ask, Builder, Created};
use crate::command::Command;
use crate::connection::Connection;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::held::Holder;
use crate::info::{self, Info};
use crate::program::{Call, Program, WORK_PATIENCE};
use crate::questions::Questions;
use crate::usage::Usage;
use palisade_session::AppDirs;
use palisade_session::foreground;
use palisade_session::sessions;
use palisade_session::supervise::interface::{Grace, Request, Response};
use palisade_session::tools::Violation;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

/// What a supervisor may take beyond the grace time, to write its records.
const LAST_STEPS: Duration = Duration::from_secs(10);

/// A sandbox. Make one with [`Sandbox::create`], or find one with [`Sandbox::attach`].
///
/// It can be used by several threads at once. One that was made here ends when it is dropped, or this process ends in whatever
/// way; one that was attached to stays.
#[derive(Debug)]
pub struct Sandbox {
    pub(crate) core: Arc<Core>,
    holder: Option<Holder>,
}

impl Sandbox {
    /// A sandbox to be made. See [`Builder`] for what it can have.
    pub fn create() -> Builder {
        Builder::default()
    }

    /// The sandbox that an id, the beginning or end of one, or a name means. It may be over: its changes can be applied then.
    ///
    /// ```no_run
    /// let work = palisade::Sandbox::attach("work")?;
    /// println!("{:?}", work.info()?.state);
    /// # Ok::<(), palisade::Error>(())
    /// ```
    pub fn attach(named: &str) -> Result<Self> {
        Self::open(Program::find(None), named, None, Vec::new())
    }

    /// This user's sandboxes that stay, oldest first, also those that are over.
    pub fn list() -> Result<Vec<Info>> {
        let found = sessions::list(&AppDirs::here()?)?;
        Ok(found.into_iter().map(|(directory, record)| Info::of(&directory, record)).collect())
    }

    pub(crate) fn open(
        program: Program,
        named: &str,
        holder: Option<Holder>,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Self> {
        let core = Core::find(program, named, environment)?;
        Ok(Self { core: Arc::new(core), holder })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.core.directory.id()
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.core.record.name.as_deref()
    }

    /// The sandbox as it is now.
    pub fn info(&self) -> Result<Info> {
        let record = self.core.directory.record()?;
        let mut info = Info::of(&self.core.directory, record);
        if info.is_running {
            // One that does not answer is still there.
            info.status = info::status(&self.core.directory).ok();
        }
        Ok(info)
    }

    /// What it uses now, and has used. None if it has just begun, or has ended.
    pub fn usage(&self) -> Option<Usage> {
        self.core.meters().read(&self.core.places, self.id())
    }

    /// What was denied in it since the last time, and since the commands whose results told it. None: the audit log cannot be read.
    pub fn violations(&self) -> Option<Vec<Violation>> {
        self.core.trail().violations()
    }

    /// A command for the shell (`/bin/sh -c`).
    ///
    /// ```no_run
    /// # let sandbox = palisade::Sandbox::create().start()?;
    /// let output = sandbox.command("wc -l < notes").stdin("one\ntwo\n").run()?;
    /// assert!(output.success());
    /// # Ok::<(), palisade::Error>(())
    /// ```
    pub fn command(&self, line: impl AsRef<OsStr>) -> Command {
        Command::new(
            Arc::clone(&self.core),
            [OsStr::new("/bin/sh"), OsStr::new("-c"), line.as_ref()],
        )
    }

    /// A program with its arguments. No shell reads them.
    ///
    /// ```no_run
    /// # let sandbox = palisade::Sandbox::create().start()?;
    /// let name = "a file; with any name";
    /// sandbox.exec(["cat", "--", name]).run()?.check()?;
    /// # Ok::<(), palisade::Error>(())
    /// ```
    pub fn exec<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        Command::new(Arc::clone(&self.core), words)
    }

    /// Its files, as its commands see them.
    pub fn files(&self) -> Files<'_> {
        Files::new(&self.core)
    }

    /// Its questions, to be answered. Make it with [`Ask::Always`], or it denies what it would ask before anybody sees it.
    pub fn questions(&self) -> Result<Questions> {
        Questions::open(Arc::clone(&self.core))
    }

    /// It may stay this much longer, from now on.
    pub fn extend(&self, time: Duration) -> Result<()> {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut connection = Connection::open(&self.core.directory)?;
        match connection.ask(&Request::Extend { milliseconds }, &[])? {
            Response::Done => Ok(()),
            _ => Err(connection.unexpected()),
        }
    }

    /// It stays when this value is dropped, until somebody ends it or its time is over. What it is called.
    pub fn keep(mut self) -> Result<String> {
        if let Some(holder) = self.holder.take() {
            holder.release()?;
        }
        Ok(self.id().to_owned())
    }

    /// Ends it: its commands get SIGTERM, and SIGKILL when the grace time of its policy is over. Changes that were not applied
    /// wait then.
    pub fn stop(self) -> Result<()> {
        self.end(Grace::OfSandbox, WORK_PATIENCE)
    }

    /// The same with this grace time.
    pub fn stop_within(self, grace: Duration) -> Result<()> {
        let milliseconds = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.end(Grace::Milliseconds(milliseconds), grace)
    }

    fn end(self, grace: Grace, patience: Duration) -> Result<()> {
        let directory = &self.core.directory;
        if !directory.is_alive() {
            return Ok(());
        }
        match foreground::end(directory, Signal::TERM.as_raw(), grace, patience + LAST_STEPS) {
            Ok(true) => Ok(()),
            // It may have ended by itself meanwhile.
            _ if !directory.is_alive() => Ok(()),
            Ok(false) => Err(Error::timed_out(format!("sandbox {} has not ended", directory.id()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends it at once, without asking anybody in it.
    pub fn kill(self) -> Result<()> {
        match foreground::kill(&self.core.directory) {
            _ if !self.core.directory.is_alive() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Err(Error::timed_out(format!("sandbox {} could not be killed", self.id()))),
        }
    }

    /// Kills it if it runs, and removes what is left of it: its changes that were not applied, its checkpoints and its output.
    pub fn remove(mut self) -> Result<()> {
        let call = Call::new(["rm", "--force", self.id()]).within(WORK_PATIENCE);
        if let Some(holder) = self.holder.take() {
            // It would look for the sandbox that is being removed.
            holder.release()?;
        }
        self.core.program.done(&call).map(drop)
    }

    /// A sandbox that begins with this one's changes.
    pub(crate) fn fork_with(&self, call: Call, ask: Ask) -> Result<Self> {
        let Core { program, environment, .. } = &*self.core;
        let mut call = call.option_if("ask-in", ask.word()).word("--hold").word(self.id());
        // `sandbox fork` takes the values of --env from its own environment: none of them is kept on disk.
        for (name, value) in environment {
            call = call.variable(name, value);
        }
        let (holder, id) = Holder::make(program, &call)?;
        Self::open(program.clone(), &id, Some(holder), environment.clone())
    }
}

impl Builder {
    /// Makes it. It ends when the value is dropped, or this process ends in whatever way; see [`Sandbox::keep`].
    pub fn start(self) -> Result<Sandbox> {
        let program = self.named_program();
        let (holder, id) = Holder::make(&program, &self.call()?.word("--hold"))?;
        Sandbox::open(program, &id, Some(holder), self.into_environment())
    }

    /// Makes one that stays until it is ended or its time is over, as `sandbox create` does.
    pub fn start_kept(self) -> Result<Sandbox> {
        let program = self.named_program();
        let created: Created = program.done(&self.call()?)?.json()?;
        Sandbox::open(program, &created.id, None, self.into_environment())
    }
}
