//! Incoming signals: masks, handlers, signalfd(2). Must never install a handler: signals are read as data, at a
//! time of our choosing.

#![expect(unsafe_code, reason = "signal sets are libc's")]

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{At, Result, SysError, check};

/// The numbers of the signals Palisade names.
pub mod sig {
    pub use libc::{
        SIGABRT, SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGQUIT, SIGSEGV,
        SIGSTOP, SIGSYS, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGWINCH, SIGXCPU,
        SIGXFSZ,
    };
}

/// A signal that arrived, and its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigInfo {
    pub signo: i32,
    /// The sender; `None` for the kernel, or for a process outside our pid namespace.
    pub pid: Option<Pid>,
    pub uid: u32,
    /// `SI_USER`, `SI_KERNEL`, `CLD_EXITED` and so on, see sigaction(2).
    pub code: i32,
}

/// The size of `struct signalfd_siginfo`: one read gives one signal.
const SIGNALFD_RECORD: usize = 128;

/// Blocks `signals` in addition to those already blocked; a signalfd receives only blocked signals.
pub fn block_signals(signals: &[i32]) -> Result<()> {
    set_mask(libc::SIG_BLOCK, &signal_set(signals)?)
}

/// Unblocks `signals`, also those that were blocked on entry.
pub fn unblock_signals(signals: &[i32]) -> Result<()> {
    set_mask(libc::SIG_UNBLOCK, &signal_set(signals)?)
}

/// Unblocks all signals.
pub fn unblock_all() -> Result<()> {
    set_mask(libc::SIG_SETMASK, &signal_set(&[])?)
}

/// Resets a signal to its default action.
pub fn reset_action(signal: i32) {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Ignores a signal, also after exec(2).
pub fn ignore(signal: i32) {
    // SAFETY: ignoring runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Whether this process ignores a signal. nohup(1) and a shell's `&` make a program ignore signals by inheritance.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer asks for the present action only; it is written where we point.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: written by the call, which succeeded.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// A descriptor (close-on-exec, non-blocking) from which `signals` can be read. Block them first.
pub fn signalfd(signals: &[i32]) -> Result<OwnedFd> {
    let set = signal_set(signals)?;
    // SAFETY: `set` is an initialised signal set; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    check(fd.into()).call("signalfd")?;
    // SAFETY: the call succeeded, so `fd` is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next signal, or `None` if none is waiting.
pub fn read_signalfd(fd: impl AsFd) -> Result<Option<SigInfo>> {
    let mut record = [0_u8; SIGNALFD_RECORD];
    let length = match rustix::io::retry_on_intr(|| rustix::io::read(fd.as_fd(), &mut record)) {
        Ok(length) => length,
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno).call("read signalfd"),
    };
    if length != SIGNALFD_RECORD {
        return Err(SysError::new("read signalfd", "short record", Errno::IO));
    }
    // The record starts with signo, errno, code, pid, uid, four bytes each.
    let word = |index: usize| {
        let mut bytes = [0_u8; 4];
        bytes.copy_from_slice(&record[index * 4..index * 4 + 4]);
        i32::from_ne_bytes(bytes)
    };
    Ok(Some(SigInfo {
        signo: word(0),
        code: word(2),
        pid: Pid::from_raw(word(3)),
        uid: word(4).cast_unsigned(),
    }))
}

fn signal_set(signals: &[i32]) -> Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises what it points to.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised just above; sigemptyset cannot fail.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: `set` is initialised; a number that is no signal is refused.
        check(unsafe { libc::sigaddset(&raw mut set, *signal) }.into())
            .map_err(|errno| SysError::new("sigaddset", signal.to_string(), errno))?;
    }
    Ok(set)
}

fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> Result<()> {
    // SAFETY: `set` is initialised, and a null pointer for the old mask is allowed.
    check(unsafe { libc::sigprocmask(how, set, std::ptr::null_mut()) }.into())
        .map(drop)
        .call("sigprocmask")
}
