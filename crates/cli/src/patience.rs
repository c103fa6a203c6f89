//! Words on standard error that wait for their reader, and not for ever.
//!
//! When a run is over nobody listens for signals any more: a reader that takes nothing (a terminal that is
//! stopped, a pipe whose reader sleeps) would keep us from ending at a time limit.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a reader may take nothing.
const UNREAD: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
const NOT_AT_ALL: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A reader that did not read one line is not waited for again.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// What is not taken is lost; standard error may be closed, and there is nowhere else to say so.
pub(crate) fn say(words: &[u8]) {
    let caller = rustix::stdio::stderr();
    let own = opened_again(caller);
    let mut rest = words;
    while !rest.is_empty() {
        let written = match &own {
            Some(own) => rustix::io::write(own, rest),
            None => rustix::io::write(caller, rest),
        };
        match (written, &own) {
            (Ok(count), _) => rest = &rest[count..],
            (Err(Errno::INTR), _) => {}
            (Err(Errno::AGAIN), Some(own)) if takes_more(own) => {}
            _ => return,
        }
    }
}

/// An opening of our own that does not wait: the caller's is shared with others. None for what cannot be
/// opened again, and for files, which nobody waits for.
fn opened_again(caller: BorrowedFd<'_>) -> Option<OwnedFd> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(caller).ok()?.st_mode);
    matches!(kind, FileType::Fifo | FileType::CharacterDevice).then_some(())?;
    let path = format!("/proc/self/fd/{}", caller.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn takes_more(fd: &OwnedFd) -> bool {
    let patience = if GIVEN_UP.load(Ordering::Relaxed) { NOT_AT_ALL } else { UNREAD };
    let mut ready = [PollFd::new(fd, PollFlags::OUT)];
    let takes = match rustix::event::poll(&mut ready, Some(&patience)) {
        Ok(count) => count > 0,
        Err(errno) => errno == Errno::INTR,
    };
    GIVEN_UP.fetch_or(!takes, Ordering::Relaxed);
    takes
}
