//! Why a running sandbox could not be watched to its end. Each error knows its class (ERR-1) and the exit code that
//! `sandbox run` ends with.

use palisade_launch::{CgroupError, Death, FailureKind, LaunchError};
use palisade_record::{ErrorKind, RecordError};
use palisade_sys::proc::sig::SIGKILL;
use palisade_sys::{Errno, SysError, io_error_text};
use palisade_usage::UsageError;
use palisade_wire::WireError;
use std::io;
use std::path::PathBuf;

/// The code for a failure of ours; see `env(1)` and `timeout(1)`.
pub const OWN_FAILURE: u8 = 125;
pub const TIMED_OUT: u8 = 124;
/// The exit code of a command that a signal ended, less the signal, as shells have it.
pub const SIGNAL_BASE: i32 = 128;

pub type Result<T, E = SupervisorError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error(transparent)]
    Launch(#[from] LaunchError),

    #[error(transparent)]
    System(#[from] SysError),

    #[error("{0}; no command runs without an audit log")]
    Record(#[from] RecordError),

    #[error("the terminal: {}", io_error_text(&(*.0).into()))]
    Terminal(Errno),

    #[error("cannot open the approvals socket in {}: {}", directory.display(), io_error_text(source))]
    ApprovalSocket { directory: PathBuf, source: io::Error },

    #[error("{0}; limits could no longer be enforced, so the run was stopped")]
    Usage(#[from] UsageError),

    #[error("{0}; limits could no longer be enforced, so the run was stopped")]
    Group(#[from] CgroupError),

    /// A run without one of its helpers is not the run that was planned.
    #[error("{0}")]
    HelperDied(Death),

    #[error("the broker failed: {0}")]
    BrokerFailed(String),

    #[error("the gate failed: {0}")]
    GateFailed(String),

    #[error("the egress process failed: {0}")]
    EgressFailed(String),

    #[error("the control connection: {0}")]
    Control(#[from] WireError),

    #[error("time limit reached before the command could start")]
    TimedOut,

    /// Pid 1 tells of the start, and the kernel may end it for what the command holds.
    #[error("memory limit reached before the command could start; raise it with --memory")]
    OutOfMemory,

    #[error("stopped by {name} before the command could start")]
    Cancelled { number: i32, name: String },

    #[error("the client closed its control socket before a command could start")]
    ClientGone,
}

impl SupervisorError {
    /// What `sandbox run` ends with.
    pub fn exit_code(&self) -> u8 {
        let by_signal = |signal| u8::try_from(SIGNAL_BASE + signal).unwrap_or(OWN_FAILURE);
        match self {
            Self::Launch(error) => u8::try_from(error.exit_code()).unwrap_or(OWN_FAILURE),
            Self::TimedOut => TIMED_OUT,
            Self::OutOfMemory => by_signal(SIGKILL),
            Self::Cancelled { number, .. } => by_signal(*number),
            _ => OWN_FAILURE,
        }
    }

    /// The class that reports and APIs give it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_) | Self::Group(_) | Self::OutOfMemory => ErrorKind::Resource,
            Self::Launch(error) if error.kind == FailureKind::LayerMissing => ErrorKind::Security,
            Self::TimedOut => ErrorKind::Timeout,
            Self::Cancelled { .. } | Self::ClientGone => ErrorKind::Cancelled,
            _ => ErrorKind::Initialisation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Errno, SupervisorError};

    #[test]
    fn an_errno_has_its_name() {
        let terminal = SupervisorError::Terminal(Errno::NOTTY).to_string();
        assert!(terminal.ends_with("(ENOTTY)"), "{terminal}");
    }
}
