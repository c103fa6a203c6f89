//! The result of a command: one type, with everything that is known of it (TOOL-1).

use crate::change_set::Changes;
use crate::usage::Usage;
use palisade_session::SIGNAL_BASE;
use palisade_session::supervise::interface::ExitCause;
use palisade_session::tools::Violation;
use std::borrow::Cow;
use std::time::Duration;

/// Of standard error in a message.
const LAST_WORDS: usize = 2000;

/// How a command ended, and what it wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// Its number, counted from 1 in each sandbox.
    pub number: u64,
    /// How it ended.
    pub exit: Exit,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// The beginning of its standard output, up to [`Command::max_output`](crate::Command::max_output).
    pub stdout: Vec<u8>,
    /// The same of standard error.
    pub stderr: Vec<u8>,
    /// How much it wrote to standard output, with what was not kept.
    pub stdout_bytes: u64,
    /// How much it wrote to standard error.
    pub stderr_bytes: u64,
    /// From its start to its end.
    pub duration: Duration,
    /// What the sandbox used meanwhile, with all that runs in it. None if it could not be measured: right after the sandbox's start.
    pub usage: Option<Usage>,
    /// What was denied in the sandbox meanwhile, with all that runs in it. None if the audit log cannot be read.
    pub violations: Option<Vec<Violation>>,
    /// In a sandbox with a transaction.
    pub transaction: Option<TransactionState>,
}

/// What waits to be applied.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransactionState {
    /// The sandbox whose changes they are.
    pub sandbox: String,
    /// All changes of the project so far, if [`Command::report_changes`](crate::Command::report_changes) asked for them.
    pub changes: Option<Changes>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By the signal with this number.
    Signal(i32),
}

impl From<ExitCause> for Exit {
    fn from(cause: ExitCause) -> Self {
        match cause {
            ExitCause::Code(code) => Self::Code(code),
            ExitCause::Signal(signal) => Self::Signal(signal),
        }
    }
}

impl Exit {
    /// As a shell says it: 128 and the number of the signal, if one ended it.
    ///
    /// ```
    /// use palisade::Exit;
    ///
    /// assert_eq!(Exit::Code(3).code(), 3);
    /// assert_eq!(Exit::Signal(9).code(), 137);
    /// ```
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => SIGNAL_BASE + signal,
        }
    }
}

impl Output {
    /// As a shell says it: 128 and the number of the signal, if one ended it.
    pub fn exit_code(&self) -> i32 {
        self.exit.code()
    }

    /// Whether it ended with 0.
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Standard output as text; what is not UTF-8 is replaced.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Standard error as text; what is not UTF-8 is replaced.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// The end of what it complained.
    pub(crate) fn last_words(&self) -> Cow<'_, str> {
        let text = self.stderr.trim_ascii_end();
        String::from_utf8_lossy(&text[text.len().saturating_sub(LAST_WORDS)..])
    }
}

/// Where a command wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A part of what a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where.
    pub stream: Stream,
    /// What, as much as was there at once: it may begin and end within a character.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// As text; what is not UTF-8 is replaced.
    ///
    /// ```
    /// use palisade::{Chunk, Stream};
    ///
    /// let chunk = Chunk { stream: Stream::Stdout, bytes: b"a\xff".to_vec() };
    /// assert_eq!(chunk.text(), "a\u{fffd}");
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}
