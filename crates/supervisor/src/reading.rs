//! Reads that never wait.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// What can be read now, without waiting for it: a plain duplicate blocks as the caller's own descriptor does, and setting
/// that would change it for the caller, too.
pub(crate) fn read_now(source: impl AsFd, into: &mut [u8]) -> Result<usize, Errno> {
    let mut ready = [PollFd::new(&source, PollFlags::IN)];
    let at_once = Timespec::default();
    match rustix::event::poll(&mut ready, Some(&at_once))? {
        0 => Err(Errno::AGAIN),
        _ => rustix::io::read(&source, into),
    }
}
