//! A throw-away process that tries one thing, says how it went, and is gone.
//! Must never outlive the call: it is killed at the limit, with its parent, and in every other case.

use crate::probe::mend;
use palisade_sys::SysError;
use palisade_sys::clone::{CloneFlags, Forked, clone3};
use palisade_sys::creds::{self, IdKind, MapLine};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A trial takes a few milliseconds; one that hangs must not hang the doctor.
const LIMIT: Duration = Duration::from_secs(2);
/// Longer than any answer; a longer one is cut by its sender.
const ANSWER: usize = 8 * 1024;
/// Between the parts of an answer.
const SEPARATOR: char = '\0';

/// What was seen when it worked, or why it does not.
pub(super) type Outcome = Result<String, Fault>;

/// Why something does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) detail: String,
    pub(super) mend: Option<String>,
}

impl Fault {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), mend: None }
    }

    pub(super) fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }

    /// The mend, unless a better one is known already.
    pub(super) fn or_mended_by(self, mend: &str) -> Self {
        if self.mend.is_some() { self } else { self.mended_by(mend) }
    }
}

impl From<SysError> for Fault {
    fn from(error: SysError) -> Self {
        Self { detail: error.to_string(), mend: mend::for_call(&error) }
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
            let _ = send_with_fds(&theirs, &encode(&outcome), &[]);
            proc::exit_now(0)
        }
        Forked::Parent { pid, pidfd } => {
            drop(theirs);
            let answer = hear(&ours);
            // As pid 1 of a namespace it takes its own children along.
            let killed = proc::pidfd_send_signal(&pidfd, sig::SIGKILL);
            let status = proc::wait_pid_rusage(pid)?.status;
            killed?;
            answer.unwrap_or_else(|| Err(Fault::new(silence(status))))
        }
    }
}

/// The ids as they are outside.
#[derive(Clone, Copy)]
struct Own {
    uid: u32,
    gid: u32,
}

fn settle(namespaces: CloneFlags, own: Own) -> Result<(), Fault> {
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
    let mut answer = [0; ANSWER];
    let (length, _) = recv_with_fds(socket, &mut answer).ok()?;
    decode(&answer[..length])
}

fn silence(status: Status) -> String {
    match status {
        // Ours, at the limit.
        Status::Signaled { signal: sig::SIGKILL, .. } => format!("no answer within {LIMIT:?}"),
        Status::Signaled { signal: sig::SIGSYS, .. } => {
            "the process that tried it was killed for a forbidden system call (SIGSYS)".to_owned()
        }
        other => format!("the process that tried it gave no answer: {other:?}"),
    }
}

fn encode(outcome: &Outcome) -> Vec<u8> {
    let parts = match outcome {
        Ok(detail) => vec!["works", detail],
        Err(Fault { detail, mend: None }) => vec!["fails", detail],
        Err(Fault { detail, mend: Some(mend) }) => vec!["fails", detail, mend],
    };
    let mut bytes = parts.join(&SEPARATOR.to_string()).into_bytes();
    bytes.truncate(ANSWER);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Outcome> {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split(SEPARATOR);
    match (parts.next()?, parts.next()?.to_owned(), parts.next()) {
        ("works", detail, None) => Some(Ok(detail)),
        ("fails", detail, mend) => Some(Err(Fault { detail, mend: mend.map(str::to_owned) })),
        _ => None,
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
