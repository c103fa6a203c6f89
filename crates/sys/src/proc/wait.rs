//! Waiting for children and what they used. See wait4(2), waitid(2), getrusage(2).
//! Must never turn a death by signal into an exit code: that is the caller's convention.

#![expect(unsafe_code, reason = "wait4 and getrusage have no safe wrapper")]

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::error::{At, Result, SysError, check};
use crate::flags::flag_set;

flag_set! {
    /// What to wait for besides an end.
    pub struct WaitFlags: i32 {
        /// Do not block.
        NOHANG = libc::WNOHANG;
        /// Report children that stopped.
        UNTRACED = libc::WUNTRACED;
        /// Report children that went on.
        CONTINUED = libc::WCONTINUED;
    }
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ended with this code.
    Exited(i32),
    /// It was ended by this signal.
    Signaled { signal: i32, core_dumped: bool },
    /// It was stopped by this signal.
    Stopped(i32),
    /// It goes on after a stop.
    Continued,
}

/// Resources a process and its waited-for descendants used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user_time: Duration,
    pub system_time: Duration,
    /// The largest resident size of any single process among them.
    pub max_rss_bytes: u64,
    /// Reads that reached a disk, in 512-byte blocks.
    pub block_reads: u64,
    /// Writes that reached a disk, in 512-byte blocks.
    pub block_writes: u64,
}

/// A child that changed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    pub pid: Pid,
    pub status: Status,
    pub usage: Usage,
}

/// Waits for any child; `None` only with [`WaitFlags::NOHANG`]. `ECHILD` says that there are none.
pub fn wait_any(flags: WaitFlags) -> Result<Option<Reaped>> {
    wait4(-1, flags)
}

/// Waits for the end of one child and says what it used.
pub fn wait_pid_rusage(pid: Pid) -> Result<Reaped> {
    wait4(pid.as_raw_pid(), WaitFlags::NONE)?
        .ok_or_else(|| SysError::new("wait4", pid.as_raw_pid().to_string(), Errno::CHILD))
}

/// Waits for the end of the child `pidfd` stands for and reaps it; `None` only with
/// [`WaitFlags::NOHANG`].
pub fn waitid_pidfd(pidfd: impl AsFd, flags: WaitFlags) -> Result<Option<Status>> {
    let mut options = WaitIdOptions::EXITED;
    if flags.contains(WaitFlags::NOHANG) {
        options |= WaitIdOptions::NOHANG;
    }
    if flags.contains(WaitFlags::UNTRACED) {
        options |= WaitIdOptions::STOPPED;
    }
    if flags.contains(WaitFlags::CONTINUED) {
        options |= WaitIdOptions::CONTINUED;
    }
    let waited = rustix::io::retry_on_intr(|| {
        rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), options)
    });
    let Some(info) = waited.call("waitid")? else { return Ok(None) };
    let status = if let Some(code) = info.exit_status() {
        Status::Exited(code)
    } else if let Some(signal) = info.terminating_signal() {
        Status::Signaled { signal, core_dumped: info.dumped() }
    } else if let Some(signal) = info.stopping_signal() {
        Status::Stopped(signal)
    } else {
        Status::Continued
    };
    Ok(Some(status))
}

/// What this process used so far.
pub fn rusage_self() -> Result<Usage> {
    getrusage(libc::RUSAGE_SELF)
}

/// What the children we have waited for used, with their descendants.
pub fn rusage_children() -> Result<Usage> {
    getrusage(libc::RUSAGE_CHILDREN)
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

fn getrusage(who: libc::c_int) -> Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage there.
    check(unsafe { libc::getrusage(who, usage.as_mut_ptr()) }.into()).call("getrusage")?;
    // SAFETY: zeroed above, and all zeroes is a valid rusage: it holds numbers only.
    Ok(convert(&unsafe { usage.assume_init() }))
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

fn convert(usage: &libc::rusage) -> Usage {
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    Usage {
        user_time: time(usage.ru_utime),
        system_time: time(usage.ru_stime),
        // Linux counts the resident size in KiB.
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        block_reads: usage.ru_inblock.unsigned_abs(),
        block_writes: usage.ru_oublock.unsigned_abs(),
    }
}
