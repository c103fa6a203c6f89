//! Terminals: pairs of pseudo-terminals, the controlling terminal, raw mode.
//! Must never open a terminal so that it becomes the controlling one by accident (`O_NOCTTY`).

#![expect(unsafe_code, reason = "TIOCOUTQ and TIOCSIG have no wrappers")]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios};

use crate::error::{At, Result, check};

pub use rustix::termios::Winsize;

/// The settings a terminal had before [`make_raw`].
#[derive(Clone, Debug)]
pub struct SavedTermios(Termios);

/// The master of a new pseudo-terminal from the `ptmx` below `dir`, such as a devpts that is not mounted anywhere yet.
/// Close-on-exec.
pub fn open_ptmx_in(dir: impl AsFd, ptmx: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ptmx, flags, Mode::empty()).at("open", ptmx)
}

/// Unlocks the slave of `master` and opens it without a path, so that it is the right one in any mount namespace
/// (`TIOCGPTPEER`, 4.13).
pub fn open_slave(master: impl AsFd) -> Result<OwnedFd> {
    rustix::pty::unlockpt(&master).call("ioctl TIOCSPTLCK")?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(&master, flags).call("ioctl TIOCGPTPEER")
}

/// Makes `terminal` the controlling terminal of our session; we must be its leader, and it must have none.
pub fn set_controlling_tty(terminal: impl AsFd) -> Result<()> {
    rustix::process::ioctl_tiocsctty(terminal).call("ioctl TIOCSCTTY")
}

/// The size of a terminal's window.
pub fn window_size(terminal: impl AsFd) -> Result<Winsize> {
    rustix::termios::tcgetwinsize(terminal).call("ioctl TIOCGWINSZ")
}

/// Sets the size of a terminal's window; its foreground group gets SIGWINCH.
pub fn set_window_size(terminal: impl AsFd, size: Winsize) -> Result<()> {
    rustix::termios::tcsetwinsize(terminal, size).call("ioctl TIOCSWINSZ")
}

/// Sets raw mode, in which every byte passes unchanged. Returns the previous settings.
pub fn make_raw(terminal: impl AsFd) -> Result<SavedTermios> {
    let saved = rustix::termios::tcgetattr(&terminal).call("tcgetattr")?;
    let mut raw = saved.clone();
    raw.make_raw();
    rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw).call("tcsetattr")?;
    Ok(SavedTermios(saved))
}

/// Restores the settings of a terminal after its pending output was written.
pub fn restore(terminal: impl AsFd, saved: &SavedTermios) -> Result<()> {
    rustix::termios::tcsetattr(terminal, OptionalActions::Drain, &saved.0).call("tcsetattr")
}

/// Makes `group` the foreground process group of a terminal. A caller in the background must block SIGTTOU.
pub fn tcsetpgrp(terminal: impl AsFd, group: Pid) -> Result<()> {
    rustix::termios::tcsetpgrp(terminal, group).call("tcsetpgrp")
}

/// Bytes written to a terminal that its line has not sent yet (`TIOCOUTQ`). Always 0 for a pseudo-terminal, where all
/// output counts as sent.
pub fn unsent(terminal: impl AsFd) -> Result<usize> {
    let mut count: libc::c_int = 0;
    let fd = terminal.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one int, to a variable that outlives the call (TIOCOUTQ(2const)).
    let asked = unsafe { libc::ioctl(fd, libc::TIOCOUTQ as _, &raw mut count) };
    check(asked.into()).call("ioctl TIOCOUTQ")?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Sends SIGINT to the foreground process group of a pseudo-terminal, given its master (`TIOCSIG`). Takes effect at
/// once, unlike a key written to the master, which a kernel thread handles later.
pub fn interrupt(master: impl AsFd) -> Result<()> {
    let fd = master.as_fd().as_raw_fd();
    // SAFETY: the argument is a number (`pty_signal` in drivers/tty/pty.c).
    let sent = unsafe { libc::ioctl(fd, libc::TIOCSIG as _, libc::SIGINT) };
    check(sent.into()).call("ioctl TIOCSIG").map(drop)
}

/// Whether `fd` is a terminal.
pub fn isatty(fd: impl AsFd) -> bool {
    rustix::termios::isatty(fd)
}

#[cfg(test)]
#[path = "tty_tests.rs"]
mod tests;
