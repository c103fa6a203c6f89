//! A command before its start. Who reads its outputs, and how long it may take, is decided here; what it may do is the sandbox's
//! policy.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::running::{Running, Wanted};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Of each output, unless something else is said.
const MAX_OUTPUT: usize = 1 << 20;

/// A command to be started. [`Command::run`] waits for it, [`Command::spawn`] gives its output as it comes.
///
/// ```no_run
/// use std::time::Duration;
///
/// let sandbox = palisade::Sandbox::create().start()?;
/// let output = sandbox
///     .exec(["make", "test"])
///     .cwd("/home/me/project/part")
///     .env("CI", "1")
///     .timeout(Duration::from_secs(60))
///     .run()?;
/// for violation in output.violations.iter().flatten() {
///     println!("denied: {:?} {}", violation.kind, violation.subject);
/// }
/// # Ok::<(), palisade::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `spawn`"]
pub struct Command {
    core: Arc<Core>,
    wanted: Wanted,
}

impl Command {
    pub(crate) fn new<W: AsRef<OsStr>>(
        core: Arc<Core>,
        words: impl IntoIterator<Item = W>,
    ) -> Self {
        let argv = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let wanted = Wanted {
            argv,
            environment: Vec::new(),
            cwd: None,
            stdin: None,
            keeps_stdin_open: false,
            timeout: None,
            max_output: MAX_OUTPUT,
            reports_changes: false,
        };
        Self { core, wanted }
    }

    /// One more argument. After [`crate::Sandbox::command`] it is `$0`, `$1` and so on of the shell.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.wanted.argv.push(word.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.wanted.argv.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// A variable, on top of those of the sandbox.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.wanted.environment.push((name.into(), value.into()));
        self
    }

    /// The working directory, as the sandbox sees it. That of the sandbox if nothing is said.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.wanted.cwd = Some(directory.into());
        self
    }

    /// What it reads. Nothing, unless something is said.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.wanted.stdin = Some(bytes.into());
        self
    }

    /// Its input does not end after [`Command::stdin`]: [`Running::write_stdin`] sends more.
    pub fn keep_stdin_open(mut self) -> Self {
        self.wanted.keeps_stdin_open = true;
        self
    }

    /// Ends it after this time: SIGTERM, and SIGKILL two seconds later. [`Output::timed_out`] says so.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.wanted.timeout = Some(time);
        self
    }

    /// How much of each output is kept in the result; 1 MiB if nothing is said. The rest is counted.
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.wanted.max_output = bytes;
        self
    }

    /// In a transaction: the result has all changes of the project, as [`crate::Sandbox::diff`] gives them.
    pub fn report_changes(mut self) -> Self {
        self.wanted.reports_changes = true;
        self
    }

    /// Starts it, and waits until it runs. It gets SIGHUP if the [`Running`] is dropped.
    pub fn spawn(self) -> Result<Running> {
        if self.wanted.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(Error::invalid("name a program"));
        }
        Running::start(self.core, self.wanted)
    }

    /// Runs it to its end. An exit code other than 0 is no error; see [`Output::check`].
    pub fn run(self) -> Result<Output> {
        self.spawn()?.wait()
    }
}
