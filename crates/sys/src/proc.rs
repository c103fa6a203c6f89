//! Processes: exec, signals to others, sessions, descriptors at exec, host name. Must never hide the target of
//! a signal: pids are typed, and "all processes" has its own function.

#![expect(unsafe_code, reason = "execve, kill of realtime signals and close_range need libc")]

mod at_exec;
mod command_line;
mod jobs;
mod kernel_file;
mod rlimit;
mod signals;
mod slice;
mod wait;

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{At, Result, check, last_errno};

pub use at_exec::{keep_over_exec, take_inherited};
pub use command_line::replace_command_line;
pub use jobs::{JobId, foreground_group, kill_own_group, own_group, session_of};
pub use kernel_file::read_kernel_file;
pub use rlimit::{Resource, ResourceLimit, get_rlimit, run_only_on, set_rlimit, usable_cpus};
pub use rustix::event::{PollFd, PollFlags};
pub use signals::{
    SigInfo, block_signals, ignore, is_ignored, read_signalfd, reset_action, sig, signalfd,
    unblock_all, unblock_signals,
};
pub use slice::run_soon_after_waking;
pub use wait::{Reaped, ResourceUsage, Status, WaitFlags, wait_any, wait_pid_rusage};

/// Replaces this process by `path`; returns only on failure. See execve(2).
pub fn exec(path: &CStr, argv: &[CString], envp: &[CString]) -> Errno {
    let argv = null_terminated(argv);
    let envp = null_terminated(envp);
    // SAFETY: both arrays end in a null pointer, and every other entry points to a C string that the
    // slices borrowed by our caller keep alive.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    last_errno()
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Ends the process at once: no destructors, no exit handlers, no flushing of shared buffers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Sends `signal` to one process; 0 only checks whether it could be sent.
pub fn kill(pid: Pid, signal: i32) -> Result<()> {
    kill_raw(pid.as_raw_pid(), signal).call("kill")
}

/// Sends `signal` to every process of a group.
pub fn kill_group(group: Pid, signal: i32) -> Result<()> {
    kill_raw(-group.as_raw_pid(), signal).call("kill")
}

/// Sends `signal` to every process we may signal but ourselves and pid 1. Meant for the init of a pid namespace, where
/// these are the processes of that namespace.
pub fn kill_all(signal: i32) -> Result<()> {
    kill_raw(-1, signal).call("kill")
}

pub(crate) fn kill_raw(pid: libc::pid_t, signal: i32) -> std::result::Result<(), Errno> {
    // SAFETY: kill(2) takes numbers and touches no memory of ours.
    check(unsafe { libc::kill(pid, signal) }.into()).map(drop)
}

/// Sends `signal` to the process that `pidfd` refers to, even if its pid was reused (5.1).
pub fn pidfd_send_signal(pidfd: impl AsFd, signal: i32) -> Result<()> {
    // SAFETY: a null siginfo is allowed and means "as kill(2) would fill it".
    let returned = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_fd().as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    check(returned).map(drop).call("pidfd_send_signal")
}

/// Starts a new session with this process as its leader and no controlling terminal.
pub fn setsid() -> Result<Pid> {
    rustix::process::setsid().call("setsid")
}

/// Moves `pid` (`None`: us) into the process group `group` (`None`: one of its own).
pub fn setpgid(pid: Option<Pid>, group: Option<Pid>) -> Result<()> {
    rustix::process::setpgid(pid, group).call("setpgid")
}

/// Sets the name that ps(1) and `/proc/PID/comm` show; the kernel truncates it to 15 bytes.
pub fn set_name(name: &CStr) -> Result<()> {
    rustix::thread::set_name(name).call("prctl PR_SET_NAME")
}

/// Sets the host name of this UTS namespace.
pub fn sethostname(name: &str) -> Result<()> {
    rustix::system::sethostname(name.as_bytes())
        .map_err(|errno| crate::SysError::new("sethostname", name, errno))
}

/// Closes every descriptor from `first` to `last` (5.9), even if another value owns it. Only for a process that will
/// not use or drop anything in that range.
pub fn close_range(first: RawFd, last: RawFd) -> Result<()> {
    close_range_with(first, last, 0)
}

/// Makes exec close every descriptor from `first` to `last` (5.11).
pub fn close_range_cloexec(first: RawFd, last: RawFd) -> Result<()> {
    close_range_with(first, last, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range_with(first: RawFd, last: RawFd, flags: libc::c_uint) -> Result<()> {
    // SAFETY: takes numbers only. Closing what an `OwnedFd` holds is what `close_range` warns of.
    let returned = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    check(returned).map(drop).call("close_range")
}

/// Waits until one of `fds` is ready (returns how many) or `timeout` has passed (returns 0). After an interruption it
/// continues with the remaining time.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A duration too long for the kernel's clock is treated as no limit.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(fds, left.as_ref()) {
            Err(Errno::INTR) => {}
            polled => return polled.call("poll"),
        }
    }
}

/// After this long without work a process gives back the pages of the program.
const IDLE: Duration = Duration::from_secs(2);

/// The same for a process that serves others, perhaps after hours: while it has nothing to do it gives back the pages of the
/// program.
pub fn poll_for_work(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    if timeout.is_some_and(|timeout| timeout <= IDLE) {
        return poll(fds, timeout);
    }
    match poll(fds, Some(IDLE))? {
        0 => {}
        ready => return Ok(ready),
    }
    crate::program_pages::give_back();
    poll(fds, timeout.map(|timeout| timeout.saturating_sub(IDLE)))
}

/// The umask of this process. It can only be read by changing it, so no other thread may create a file meanwhile.
pub fn current_umask() -> u32 {
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    umask.bits()
}

#[cfg(test)]
#[path = "proc_tests.rs"]
mod tests;
