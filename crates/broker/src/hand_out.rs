//! Passes an open file to a caller.

use palisade_sys::Errno;
use palisade_sys::notify::{Listener, Response};
use std::os::fd::{AsFd as _, OwnedFd};

/// Our own copy is closed before the caller continues: it would keep a program from being executed (ETXTBSY),
/// keep a lock after its owner released it (flock(2)), and delay a watcher's `IN_CLOSE_WRITE`.
pub(crate) fn hand_out(
    listener: &Listener,
    id: u64,
    file: OwnedFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let number = listener.give(id, file.as_fd(), close_on_exec)?;
    drop(file);
    listener.respond(id, Response::Value(number))
}
