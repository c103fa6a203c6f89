//! What can go wrong, in one type with the classes that reports, HTTP and MCP have, too (ERR-1).

use crate::change_set::Held;
use crate::output::Output;
use palisade_session::files::ClientError;
use palisade_session::{Complaint, ErrorReason, SessionError};
use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error. Reports, HTTP and MCP use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Something that is needed is used up, or exceeds a limit.
    Resource,
    /// The policy does not allow it.
    Security,
    /// What was asked for cannot be, or not in the present state.
    Validation,
    /// It was cancelled, or what it was about has ended.
    Cancelled,
    /// It took too long.
    Timeout,
    /// Something that has to work did not.
    Initialisation,
}

impl fmt::Display for ErrorKind {
    /// The word of reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "resource",
            Self::Security => "security",
            Self::Validation => "validation",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Initialisation => "initialisation",
        })
    }
}

impl From<palisade_record::ErrorKind> for ErrorKind {
    fn from(kind: palisade_record::ErrorKind) -> Self {
        match kind {
            palisade_record::ErrorKind::Resource => Self::Resource,
            palisade_record::ErrorKind::Security => Self::Security,
            palisade_record::ErrorKind::Validation => Self::Validation,
            palisade_record::ErrorKind::Cancelled => Self::Cancelled,
            palisade_record::ErrorKind::Timeout => Self::Timeout,
            palisade_record::ErrorKind::Initialisation => Self::Initialisation,
        }
    }
}

/// Why something was not done. Texts may hold names that a command chose: escape them where you show them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The `sandbox` program cannot be started.
    #[error(
        "cannot start {}: {source}; install it, or name it with PALISADE_SANDBOX or `Builder::program`", program.display()
    )]
    NoProgram {
        /// As it was named.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no sandbox, checkpoint or question of this name.
    #[error("{message}")]
    NotFound {
        /// What there is not.
        message: String,
    },
    /// Another sandbox has the name.
    #[error("{message}")]
    NameTaken {
        /// Which one has it.
        message: String,
    },
    /// The present state does not allow it, such as a rollback while commands run.
    #[error("{message}")]
    Conflict {
        /// What stands in the way.
        message: String,
    },
    /// Nothing was applied: something stands in the way.
    #[error(
        "nothing was applied: {} changes are refused, {} conflict with the project", .0.refused.len(), .0.conflicts.len()
    )]
    Held(Box<Held>),
    /// The command did not start.
    #[error("{message}")]
    NotStarted {
        /// What a shell would end with: 127 not found, 126 not executable, 125 for anything else.
        exit_code: i32,
        /// Why not.
        message: String,
    },
    /// A command did not end with 0 ([`Output::check`]).
    #[error("the command ended with {}: {}", .0.exit_code(), .0.last_words())]
    CommandFailed(Box<Output>),
    /// The sandbox has ended, and what was going on in it.
    #[error("sandbox {sandbox} has ended")]
    Ended {
        /// Its id.
        sandbox: String,
    },
    /// An operation on a file of the sandbox failed there.
    #[error("{call} {}: {source}", path.display())]
    File {
        /// The system call.
        call: String,
        /// As commands see it.
        path: PathBuf,
        /// With the errno.
        source: io::Error,
    },
    /// It did not happen in time.
    #[error("{message}")]
    TimedOut {
        /// What did not.
        message: String,
    },
    /// Anything else, by its class.
    #[error("{message}")]
    Failed {
        /// The class.
        kind: ErrorKind,
        /// What happened, and what to do about it.
        message: String,
        /// What led to it, nearest first.
        causes: Vec<String>,
    },
}

impl Error {
    /// The class of the error, as in reports: what a program decides by.
    ///
    /// ```
    /// use palisade::{Error, ErrorKind};
    ///
    /// let error = Error::TimedOut { message: "the supervisor does not answer".to_owned() };
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoProgram { .. } => ErrorKind::Initialisation,
            Self::NotFound { .. }
            | Self::NameTaken { .. }
            | Self::Conflict { .. }
            | Self::Held(_)
            | Self::NotStarted { .. } => ErrorKind::Validation,
            Self::CommandFailed(output) if output.timed_out => ErrorKind::Timeout,
            Self::CommandFailed(_) => ErrorKind::Validation,
            Self::Ended { .. } => ErrorKind::Cancelled,
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    ErrorKind::Security
                }
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => ErrorKind::Resource,
                _ => ErrorKind::Validation,
            },
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::Failed { kind, .. } => *kind,
        }
    }

    pub(crate) fn failed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Failed { kind, message: message.into(), causes: Vec::new() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::failed(ErrorKind::Validation, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::failed(ErrorKind::Initialisation, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into() }
    }

    pub(crate) fn timed_out(message: impl Into<String>) -> Self {
        Self::TimedOut { message: message.into() }
    }

    /// What stands in the way is the present state, where an error says no more than that the request cannot be.
    pub(crate) fn into_conflict(self) -> Self {
        match self {
            Self::Failed { kind: ErrorKind::Validation, message, .. } => Self::Conflict { message },
            other => other,
        }
    }

    fn of_class(
        kind: ErrorKind,
        reason: ErrorReason,
        message: String,
        causes: Vec<String>,
    ) -> Self {
        match reason {
            ErrorReason::NotFound => Self::NotFound { message },
            ErrorReason::NameTaken => Self::NameTaken { message },
            ErrorReason::Conflict => Self::Conflict { message },
            ErrorReason::Other => Self::Failed { kind, message, causes },
        }
    }
}

impl Output {
    /// Itself, or [`Error::CommandFailed`] if it did not end with 0.
    pub fn check(self) -> Result<Self> {
        if self.success() { Ok(self) } else { Err(Error::CommandFailed(Box::new(self))) }
    }
}

impl From<Complaint> for Error {
    fn from(Complaint { kind, reason, message }: Complaint) -> Self {
        Self::of_class(kind.into(), reason.unwrap_or_default(), message, Vec::new())
    }
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Self {
        if let SessionError::SessionNotRunning { session } = error {
            return Self::Ended { sandbox: session };
        }
        let message = match &error {
            SessionError::NoSuchSession { named, .. } => format!("there is no sandbox `{named}`"),
            other => other.to_string(),
        };
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self::of_class(error.kind().into(), error.reason(), message, causes)
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refused) => {
                Self::File { call: refused.call, path: refused.path, source: refused.errno.into() }
            }
            ClientError::TooLarge { .. } => Self::failed(ErrorKind::Resource, error.to_string()),
            ClientError::Lost(_) => Self::failed(ErrorKind::Cancelled, error.to_string()),
            ClientError::Unexpected | ClientError::OtherVersion | ClientError::Source(_) => {
                Self::internal(error.to_string())
            }
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
