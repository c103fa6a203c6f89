//! Sandboxes that stay: a file a command. What they share is how a person names a session and how times are written.

pub(crate) mod attach;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod exec;
pub(crate) mod extend;
pub(crate) mod hold;
pub(crate) mod inspect;
pub(crate) mod keep;
mod lasting;
pub(crate) mod logs;
pub(crate) mod prune;
pub(crate) mod ps;
pub(crate) mod remove;
pub(crate) mod stop;

pub(crate) use hold::end as end_now;
pub(crate) use lasting::{Lasting, shown};

use palisade_session::foreground::{self, Left};
use palisade_session::sessions::{self, SessionDirectory, SessionRecord, SessionSummary};
use palisade_session::supervise::client::Client;
use palisade_session::supervise::interface::ExitCause;
use palisade_session::{AppDirs, SIGNAL_BASE, SessionError};

/// The session that is meant, running or not.
pub(crate) fn find(named: &str) -> Result<(SessionDirectory, SessionRecord), SessionError> {
    sessions::find(&AppDirs::here()?, named.trim())
}

/// The session in which a command is to start.
fn find_for_command(named: &str) -> Result<(SessionDirectory, SessionSummary), SessionError> {
    sessions::find_for_command(&AppDirs::here()?, named.trim())
}

/// A connection to a session that runs.
fn connect(named: &str) -> Result<(Client, SessionRecord), SessionError> {
    let (directory, record) = find(named)?;
    Ok((foreground::connect(&directory)?, record))
}

/// What this process ends with, after a command was in its foreground.
fn exit_code(left: &Left, label: &str) -> u8 {
    let code = match left {
        Left::Exited(ExitCause::Code(code)) => *code,
        Left::Exited(ExitCause::Signal(signal)) => SIGNAL_BASE + signal,
        Left::NotStarted { exit_code, message } => {
            crate::output::complain(&anyhow::anyhow!("{message}"));
            *exit_code
        }
        Left::Detached => {
            crate::output::note(&format!("detached; `sandbox attach {label}` shows it again"));
            0
        }
        Left::DetachedBy(signal) => SIGNAL_BASE + signal,
        Left::SessionEnded => {
            crate::output::complain(&anyhow::anyhow!("session {label} has ended"));
            i32::from(crate::OWN_FAILURE)
        }
    };
    u8::try_from(code).unwrap_or(crate::OWN_FAILURE)
}
