//! Job control: process groups, sessions, and the foreground of a terminal. Must never take such an id for a
//! [`Pid`] unchecked: in a pid namespace made by another program (`unshare --pid`, a container's entry point)
//! the leader may be outside, and its number is 0.

#![expect(unsafe_code, reason = "rustix takes an id of 0 for impossible")]

use std::os::fd::{AsFd, AsRawFd};

use rustix::process::Pid;

use crate::error::{At, Result, check};

/// A process group or session as numbered in our pid namespace; `None` if its leader is outside. All of those look the
/// same, as they do to programs inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(Option<Pid>);

impl JobId {
    fn from_raw(raw: libc::pid_t) -> Self {
        Self(Pid::from_raw(raw))
    }

    pub fn is(self, leader: Pid) -> bool {
        self.0 == Some(leader)
    }
}

/// The process group we are in.
pub fn own_group() -> JobId {
    // SAFETY: getpgrp(2) takes nothing and always succeeds.
    JobId::from_raw(unsafe { libc::getpgrp() })
}

/// The session of a process, or ours.
pub fn session_of(process: Option<Pid>) -> Result<JobId> {
    // SAFETY: getsid(2) takes a number.
    let session = unsafe { libc::getsid(Pid::as_raw(process)) };
    check(session.into()).call("getsid")?;
    Ok(JobId::from_raw(session))
}

/// The foreground process group of a terminal.
pub fn foreground_group(terminal: impl AsFd) -> Result<JobId> {
    // SAFETY: the descriptor is open; tcgetpgrp(3) takes nothing else.
    let group = unsafe { libc::tcgetpgrp(terminal.as_fd().as_raw_fd()) };
    check(group.into()).call("tcgetpgrp")?;
    Ok(JobId::from_raw(group))
}

/// Sends `signal` to every process of our own group, including ourselves.
pub fn kill_own_group(signal: i32) -> Result<()> {
    super::kill_raw(0, signal).call("kill")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_child::in_child;

    #[test]
    fn who_leads_a_session_leads_a_group_too() {
        in_child(|| {
            let us = rustix::process::setsid().unwrap();
            assert!(own_group().is(us));
            assert_eq!(session_of(None).unwrap(), own_group());
            assert!(session_of(Some(us)).unwrap().is(us));
        });
    }
}
