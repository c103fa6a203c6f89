//! A descriptor of ours as a path: what a call that takes no descriptor, or none of `O_PATH`, needs. The working directory
//! is `/proc/self/fd`, on a mount of its own; on no other of our mounts are links followed (`startup.rs`).

use std::os::fd::{AsFd, AsRawFd as _};
use std::path::PathBuf;

pub(crate) fn by_number(file: impl AsFd) -> PathBuf {
    PathBuf::from(file.as_fd().as_raw_fd().to_string())
}
