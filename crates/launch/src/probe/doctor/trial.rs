//! A child process that tries one thing, reports the result, and exits. Must never outlive the call: it is
//! killed at the time limit, with its parent, and on every other path.

use crate::remedy;
use palisade_sys::SysError;
use palisade_sys::clone::{CloneFlags, Forked, clone3};
use palisade_sys::creds::{self, IdKind, MapLine};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_wire::{Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A trial takes a few milliseconds; one that hangs must not hang the doctor.
const LIMIT: Duration = Duration::from_secs(2);
/// Limits on the texts of a report; together they fit into one message.
const MAX_DETAIL: usize = 4096;
const MAX_FIX_BYTES: usize = 2048;

/// What was observed when it worked, or why it does not.
pub(super) type Outcome = Result<String, TrialError>;

/// Why something does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrialError {
    #[serde(with = "Truncated::<MAX_DETAIL>")]
    pub(super) detail: String,
    #[serde(with = "Truncated::<MAX_FIX_BYTES>")]
    pub(super) fix: Option<String>,
}

/// An [`Outcome`] as it is sent over the socket.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Works(#[serde(with = "Truncated::<MAX_DETAIL>")] String),
    Fails(TrialError),
}

impl WireMessage for Answer {
    const MAX_BYTES: usize = 8 * 1024;
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        outcome.map_or_else(Self::Fails, Self::Works)
    }
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Works(detail) => Ok(detail),
            Answer::Fails(fault) => Err(fault),
        }
    }
}

impl TrialError {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), fix: None }
    }

    pub(super) fn fixed_by(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// The fix, unless a better one is known already.
    pub(super) fn or_fixed_by(self, fix: &str) -> Self {
        if self.fix.is_some() { self } else { self.fixed_by(fix) }
    }
}

impl From<SysError> for TrialError {
    fn from(error: SysError) -> Self {
        Self { detail: error.to_string(), fix: remedy::for_call(&error) }
    }
}

/// Tries `body` in a child with these namespaces. In a user namespace our own id is mapped first.
pub(super) fn trial(namespaces: CloneFlags, body: impl FnOnce() -> Outcome) -> Outcome {
    let own =
        Own { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
    let (ours, theirs) = socketpair()?;
    match clone3(namespaces)? {
        Forked::Child => {
            drop(ours);
            let outcome = settle(namespaces, own).and_then(|()| body());
            let _ = palisade_wire::send(&theirs, &Answer::from(outcome), &[]);
            proc::exit_now(0)
        }
        Forked::Parent { pid, pidfd } => {
            drop(theirs);
            let answer = hear(&ours);
            // As pid 1 of a namespace, it takes its own children with it.
            let killed = proc::pidfd_send_signal(&pidfd, sig::SIGKILL);
            let status = proc::wait_pid_rusage(pid)?.status;
            killed?;
            answer.unwrap_or_else(|| Err(TrialError::new(silence(status))))
        }
    }
}

/// The ids outside the namespace.
#[derive(Clone, Copy)]
struct Own {
    uid: u32,
    gid: u32,
}

fn settle(namespaces: CloneFlags, own: Own) -> Result<(), TrialError> {
    creds::set_pdeathsig(sig::SIGKILL)?;
    if namespaces.contains(CloneFlags::NEWUSER) {
        let line = |id| [MapLine { inside: id, outside: id, count: 1 }];
        creds::deny_setgroups(None)?;
        creds::write_map(None, IdKind::Gid, &line(own.gid))?;
        creds::write_map(None, IdKind::Uid, &line(own.uid))?;
    }
    Ok(())
}

fn hear(socket: &OwnedFd) -> Option<Outcome> {
    let mut watched = [PollFd::new(socket, PollFlags::IN)];
    if !matches!(proc::poll(&mut watched, Some(LIMIT)), Ok(1)) {
        return None;
    }
    let received = palisade_wire::receive::<Answer>(socket, &mut [0; Answer::MAX_BYTES]).ok()?;
    Some(received.message.into())
}

fn silence(status: Status) -> String {
    match status {
        // Killed by us, at the time limit.
        Status::Signaled { signal: sig::SIGKILL, .. } => format!("no answer within {LIMIT:?}"),
        Status::Signaled { signal: sig::SIGSYS, .. } => {
            "the test process was killed for a forbidden system call (SIGSYS)".to_owned()
        }
        other => format!("the test process did not answer: {other:?}"),
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
