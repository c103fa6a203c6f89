//! Creates processes and namespaces with clone3(2) and unshare(2). Must never fork a threaded process, whose child
//! would inherit locks that are never released, except for a child that takes none ([`fork_among_threads`]).

#![expect(
    unsafe_code,
    reason = "clone3 and unshare have no safe wrapper that takes every namespace"
)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Result, SysError, check};
use crate::flags::flag_set;

flag_set! {
    /// Namespaces to create. There is deliberately no flag that shares memory or descriptors.
    pub struct CloneFlags: u64 {
        /// Time namespace (5.6); the first process to enter it fixes its offsets.
        NEWTIME = 0x80;
        NEWNS = 0x0002_0000;
        NEWCGROUP = 0x0200_0000;
        NEWUTS = 0x0400_0000;
        NEWIPC = 0x0800_0000;
        NEWUSER = 0x1000_0000;
        NEWPID = 0x2000_0000;
        NEWNET = 0x4000_0000;
    }
}

/// Which side of the fork we are on.
#[derive(Debug)]
pub enum Forked {
    /// The new process.
    Child,
    /// The caller. `pid` is the child in the caller's pid namespace; the pidfd is close-on-exec.
    Parent { pid: Pid, pidfd: OwnedFd },
}

/// `struct clone_args` in its third version (5.7).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// The size of its first version (5.3), which every kernel accepts.
const FIRST_VERSION: usize = 64;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks into new namespaces; with [`CloneFlags::NONE`] it is a plain fork that yields a pidfd.
///
/// Fails with `EINVAL` in a process with more than one thread. libc's fork handlers do not run.
/// See clone3(2).
pub fn clone3(flags: CloneFlags) -> Result<Forked> {
    fork_alone(|pidfd| match clone3_raw(flags, None, pidfd) {
        // Container profiles refuse every clone3, since a filter cannot read its arguments, and judge clone(2) by its
        // flags (docker answers ENOSYS, older profiles EPERM).
        Err(Errno::NOSYS | Errno::PERM) => clone(flags, pidfd),
        returned => returned,
    })
}

/// The same with the new process in the cgroup (v2, 5.7) whose directory is `cgroup`, from its start. Where this call
/// is refused there is no older one to fall back to.
pub fn clone3_into(flags: CloneFlags, cgroup: impl AsFd) -> Result<Forked> {
    fork_alone(|pidfd| clone3_raw(flags, Some(cgroup.as_fd()), pidfd))
}

type Returned = std::result::Result<libc::c_long, Errno>;

fn fork_alone(call: impl FnOnce(&mut libc::c_int) -> Returned) -> Result<Forked> {
    if !is_single_threaded()? {
        return Err(SysError::new("clone3", "in a process with several threads", Errno::INVAL));
    }
    forked(call)
}

/// Only for callers that have checked that the process has one thread, or whose child takes no lock.
fn forked(call: impl FnOnce(&mut libc::c_int) -> Returned) -> Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    let raw = call(&mut pidfd).map_err(|errno| SysError::new("clone3", "", errno))?;
    let Some(pid) = i32::try_from(raw).ok().and_then(Pid::from_raw) else {
        return Ok(Forked::Child);
    };
    // SAFETY: the call succeeded in the parent, so the kernel stored there a descriptor that is new
    // and that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent { pid, pidfd })
}

fn clone3_raw(
    flags: CloneFlags,
    cgroup: Option<BorrowedFd<'_>>,
    pidfd: &mut libc::c_int,
) -> Returned {
    let mut args = CloneArgs {
        flags: flags.bits() | CLONE_PIDFD,
        pidfd: (&raw mut *pidfd).expose_provenance() as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    let mut size = FIRST_VERSION;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
        size = size_of::<CloneArgs>();
    }
    // SAFETY: without CLONE_VM the child gets its own copy of memory and continues on its copy of this
    // stack, as after fork(2). We are the only thread (`fork_alone`), so no lock is held in that copy, or the child
    // waits for one at worst (`fork_among_threads`).
    // `args`, of which the kernel reads `size` bytes, and the `pidfd` it points to outlive the call.
    check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size) })
}

/// The same by clone(2), which cannot create a time namespace: that bit belongs to the exit signal.
fn clone(flags: CloneFlags, pidfd: &mut libc::c_int) -> Returned {
    if flags.contains(CloneFlags::NEWTIME) {
        return Err(Errno::NOSYS);
    }
    let flags = flags.bits() | CLONE_PIDFD | libc::SIGCHLD as u64;
    // SAFETY: as for clone3: no CLONE_VM, and a null stack means a copy of this one. The kernel
    // stores the descriptor where `parent_tid` points, which outlives the call; the last two
    // arguments, whose order differs between architectures, are both unused.
    check(unsafe {
        libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut *pidfd, 0_usize, 0_usize)
    })
}

/// Proof that this process had one thread when it was checked. Its holder must never start a second one.
#[derive(Debug)]
pub struct SingleThreaded(());

impl SingleThreaded {
    pub fn check() -> Result<Self> {
        if is_single_threaded()? {
            return Ok(Self(()));
        }
        Err(SysError::new("clone", "in a process with several threads", Errno::INVAL))
    }
}

/// A plain fork by clone(2) that yields a pidfd. For processes whose filter refuses clone3(2) and the calls that count
/// threads.
pub fn fork_by_clone(_alone: &SingleThreaded) -> Result<Forked> {
    forked(|pidfd| clone(CloneFlags::NONE, pidfd))
}

/// A plain fork of a single-threaded process.
pub fn fork() -> Result<Forked> {
    clone3(CloneFlags::NONE)
}

/// A plain fork that yields a pidfd, in a process that may have several threads.
///
/// A lock that another thread holds now is held in the child forever, the allocator's among them: until it exits, the
/// child must make system calls only, and neither allocate nor free.
pub fn fork_among_threads() -> Result<Forked> {
    forked(|pidfd| match clone3_raw(CloneFlags::NONE, None, pidfd) {
        Err(Errno::NOSYS | Errno::PERM) => clone(CloneFlags::NONE, pidfd),
        returned => returned,
    })
}

/// Gives this thread an umask and a working directory of its own, which are those of the process until it changes them.
pub fn unshare_umask_and_directory() -> Result<()> {
    unshare_bits(libc::CLONE_FS).map_err(|errno| SysError::new("unshare", "CLONE_FS", errno))
}

/// Moves this process into new namespaces. See unshare(2).
pub fn unshare(flags: CloneFlags) -> Result<()> {
    let bits = libc::c_int::try_from(flags.bits())
        .map_err(|_| SysError::new("unshare", "", Errno::INVAL))?;
    unshare_bits(bits).map_err(|errno| SysError::new("unshare", "", errno))
}

/// Whether this is the only thread of the process.
///
/// unshare(2) of `CLONE_THREAD` does nothing in a single-threaded process and fails in any other, so this needs no
/// mounted /proc. Where a filter forbids unshare, it counts the entries of /proc/self/task.
pub fn is_single_threaded() -> Result<bool> {
    match unshare_bits(libc::CLONE_THREAD) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(_) => {
            let tasks = "/proc/self/task";
            let entries = std::fs::read_dir(tasks)
                .map_err(|error| SysError::new("opendir", tasks, crate::error::errno_of(&error)))?;
            Ok(entries.count() == 1)
        }
    }
}

fn unshare_bits(bits: libc::c_int) -> std::result::Result<(), Errno> {
    // SAFETY: the bits are namespaces, CLONE_THREAD or CLONE_FS: none touches memory or the descriptor table.
    check(unsafe { libc::unshare(bits) }.into()).map(drop)
}

#[cfg(test)]
#[path = "clone_tests.rs"]
mod tests;
