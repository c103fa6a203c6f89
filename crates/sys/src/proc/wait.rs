//! Waits for children, and returns what they used. See wait4(2). Must never turn a death by signal into an exit
//! code: that is the caller's convention.

#![expect(unsafe_code, reason = "wait4 has no safe wrapper")]

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{At, Result, SysError, check};
use crate::flags::flag_set;

flag_set! {
    /// What to wait for in addition to exits.
    pub struct WaitFlags: i32 {
        /// Do not block.
        NOHANG = libc::WNOHANG;
        /// Report children that stopped.
        UNTRACED = libc::WUNTRACED;
        /// Report children that continued.
        CONTINUED = libc::WCONTINUED;
    }
}

/// A change of a child's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signaled { signal: i32, core_dumped: bool },
    /// It was stopped by this signal.
    Stopped(i32),
    /// It continued after a stop.
    Continued,
}

/// Resources a process and its waited-for descendants used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    pub user_time: Duration,
    pub system_time: Duration,
    /// The largest resident size of any single process among them.
    pub max_rss_bytes: u64,
}

/// A child that changed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    pub pid: Pid,
    pub status: Status,
    pub usage: ResourceUsage,
}

/// Waits for any child; `None` only with [`WaitFlags::NOHANG`]. `ECHILD`: there are no children.
pub fn wait_any(flags: WaitFlags) -> Result<Option<Reaped>> {
    wait4(-1, flags)
}

/// Waits for one child to end and returns its resource usage.
pub fn wait_pid_rusage(pid: Pid) -> Result<Reaped> {
    wait4(pid.as_raw_pid(), WaitFlags::NONE)?
        .ok_or_else(|| SysError::new("wait4", pid.as_raw_pid().to_string(), Errno::CHILD))
}

fn wait4(pid: libc::pid_t, flags: WaitFlags) -> Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let waited = rustix::io::retry_on_intr(|| {
        // SAFETY: both pointers are to memory of the right type that outlives the call.
        check(unsafe { libc::wait4(pid, &raw mut status, flags.bits(), usage.as_mut_ptr()) }.into())
    });
    let waited = waited.call("wait4")?;
    let Some(pid) = i32::try_from(waited).ok().and_then(Pid::from_raw) else { return Ok(None) };
    // SAFETY: zeroed above, and all zeroes is a valid rusage: it holds numbers only.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(Reaped { pid, status: decode(status), usage: convert(&usage) }))
}

fn decode(status: libc::c_int) -> Status {
    if libc::WIFEXITED(status) {
        Status::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Status::Signaled { signal: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
    } else if libc::WIFSTOPPED(status) {
        Status::Stopped(libc::WSTOPSIG(status))
    } else {
        Status::Continued
    }
}

fn convert(usage: &libc::rusage) -> ResourceUsage {
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    ResourceUsage {
        user_time: time(usage.ru_utime),
        system_time: time(usage.ru_stime),
        // Linux counts the resident size in KiB.
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    }
}
