//! Starts the `sandbox` program for what must not be done in the process of our caller, which may have threads: making a
//! sandbox, and work on what commands left.
//!
//! No shell is involved. Every call has an end: a time after which the program is killed, and a limit for what it prints.

use crate::error::{Error, ErrorKind, Result};
use palisade_session::{Complaint, ERRORS_AS_JSON, given_variables};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A variable that names the program.
pub(crate) const VARIABLE: &str = "PALISADE_SANDBOX";
const NAME: &str = "sandbox";
/// Of an answer. A diff may be large.
const MAX_STDOUT: usize = 256 << 20;
/// Of complaints: the last one counts.
const MAX_STDERR: usize = 1 << 20;
/// For what only looks.
pub(crate) const LOOK_PATIENCE: Duration = Duration::from_secs(60);
/// For work on a project, which may be large.
pub(crate) const WORK_PATIENCE: Duration = Duration::from_secs(3600);

/// The words of one call.
#[derive(Debug, Default)]
pub(crate) struct Call {
    words: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    patience: Option<Duration>,
}

impl Call {
    pub(crate) fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Self { words, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// `--name=value`: a value that begins with a hyphen is still a value.
    #[must_use]
    pub(crate) fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        self.word(word)
    }

    #[must_use]
    pub(crate) fn option_if(self, name: &str, value: Option<impl AsRef<OsStr>>) -> Self {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    #[must_use]
    pub(crate) fn flag(self, name: &str, is_set: bool) -> Self {
        if is_set { self.word(format!("--{name}")) } else { self }
    }

    /// The value for `--env NAME`. Arguments can be read by every user of the host, variables cannot. Not by its own name: the
    /// program itself would read `SANDBOX_RW`, `HOME` or `OTEL_EXPORTER_OTLP_ENDPOINT`, and who chose it may not choose that.
    #[must_use]
    pub(crate) fn variable(mut self, name: &OsStr, value: &OsStr) -> Self {
        self.variables.push((given_variables::carrier(name), value.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn in_directory(mut self, directory: Option<&Path>) -> Self {
        self.directory = directory.map(Path::to_owned);
        self
    }

    #[must_use]
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience.unwrap_or(LOOK_PATIENCE)
    }

    #[cfg(test)]
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.to_str().unwrap()).collect()
    }
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.stdout).map_err(|error| {
            Error::internal(format!(
                "`sandbox` printed another document than this version of the library knows: {error}"
            ))
        })
    }

    /// Why it did not do what it was asked for.
    pub(crate) fn error(&self) -> Error {
        if let Some(complaint) = Complaint::last_of(&self.stderr) {
            return complaint.into();
        }
        let said = String::from_utf8_lossy(&self.stderr);
        Error::internal(match (said.trim(), self.code) {
            ("", Some(code)) => format!("`sandbox` ended with {code} and printed nothing"),
            ("", None) => "`sandbox` was killed".to_owned(),
            (said, _) => said.to_owned(),
        })
    }
}

/// Where the program is.
#[derive(Clone, Debug)]
pub(crate) struct Program(PathBuf);

impl Program {
    /// The one that was named, or else that of [`VARIABLE`], or else the one in `PATH`.
    pub(crate) fn find(named: Option<&Path>) -> Self {
        let named =
            named.map(Path::to_owned).or_else(|| std::env::var_os(VARIABLE).map(Into::into));
        let path = named.unwrap_or_else(|| NAME.into());
        // It is started in other directories than ours. A name alone is looked up in PATH.
        let is_relative = path.components().count() > 1 && path.is_relative();
        Self(if is_relative { std::path::absolute(&path).unwrap_or(path) } else { path })
    }

    pub(crate) fn spawn(&self, call: &Call, stdin: Stdio) -> Result<Child> {
        let mut command = Command::new(&self.0);
        command.args(&call.words).envs(call.variables.iter().map(|(name, value)| (name, value)));
        command.env(ERRORS_AS_JSON, "1");
        if let Some(directory) = &call.directory {
            command.current_dir(directory);
        }
        // Ctrl-C in our caller's terminal is for the caller.
        command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::ArgumentListTooLong => {
                Error::failed(ErrorKind::Resource, "the settings are too long")
            }
            // The standard library refuses an argument with a zero byte.
            io::ErrorKind::InvalidInput => Error::invalid("a text has a zero byte (\\0) in it"),
            _ => Error::NoProgram { program: self.0.clone(), source },
        })
    }

    /// Runs it to its end.
    pub(crate) fn ask(&self, call: &Call) -> Result<Answer> {
        let deadline = call.deadline();
        let mut child = self.spawn(call, Stdio::null())?;
        let read = read_outputs(&mut child, deadline);
        if read.is_err() {
            // It may have ended meanwhile.
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| Error::internal(error.to_string()))?;
        let (stdout, stderr) = read?;
        Ok(Answer { code: status.code(), stdout, stderr })
    }

    /// The same; an exit code other than 0 is an error.
    pub(crate) fn done(&self, call: &Call) -> Result<Answer> {
        let answer = self.ask(call)?;
        if answer.code == Some(0) { Ok(answer) } else { Err(answer.error()) }
    }
}

/// Waits until there is something to read, or the end. False: it did not come in time.
pub(crate) fn wait_for(streams: &[&dyn AsFd], deadline: Instant) -> Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let watched = streams.iter().map(|stream| stream.as_fd());
        let mut watched: Vec<PollFd<'_>> =
            watched.map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN)).collect();
        match rustix::event::poll(&mut watched, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::internal(format!("poll: {errno}"))),
        }
    }
}

/// Both outputs together: a program that waits for one to be read never ends the other one.
fn read_outputs(child: &mut Child, deadline: Instant) -> Result<(Vec<u8>, Vec<u8>)> {
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Error::internal("`sandbox` has no output"));
    };
    let mut read = (Vec::new(), Vec::new());
    let mut is_open = (true, true);
    while is_open.0 || is_open.1 {
        let streams: Vec<&dyn AsFd> = [(&stdout as &dyn AsFd, is_open.0), (&stderr, is_open.1)]
            .into_iter()
            .filter_map(|(stream, is_open)| is_open.then_some(stream))
            .collect();
        if !wait_for(&streams, deadline)? {
            return Err(Error::timed_out("`sandbox` was not done in time, and was killed"));
        }
        let now = Instant::now();
        if is_open.0 && wait_for(&[&stdout], now)? {
            is_open.0 = read_some(&mut stdout, &mut read.0)?;
        }
        if is_open.1 && wait_for(&[&stderr], now)? {
            is_open.1 = read_some(&mut stderr, &mut read.1)?;
        }
        if read.0.len() > MAX_STDOUT {
            let most = MAX_STDOUT >> 20;
            let message = format!("the answer exceeds {most} MiB; ask for less of it");
            return Err(Error::failed(ErrorKind::Resource, message));
        }
        let excess = read.1.len().saturating_sub(MAX_STDERR);
        drop(read.1.drain(..excess));
    }
    Ok(read)
}

/// False at the end.
fn read_some(stream: &mut impl Read, into: &mut Vec<u8>) -> Result<bool> {
    let mut part = [0; 16 << 10];
    match stream.read(&mut part) {
        Ok(count) => {
            into.extend_from_slice(&part[..count]);
            Ok(count > 0)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(Error::internal(format!("cannot read what `sandbox` prints: {error}"))),
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
