//! What a stream of a process leads to.

use rustix::fs::{FileType, OFlags};
use std::os::fd::AsFd;

/// Whether it is a regular file that is only read. Who has it can empty it by its name in `/proc/self/fd`: opened with
/// `O_RDONLY | O_TRUNC` it needs no right of Landlock's but truncation, and its mount is the host's.
pub fn only_reads_file(stream: impl AsFd) -> bool {
    let stream = stream.as_fd();
    let is_file = rustix::fs::fstat(stream)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    // What was opened for writing can be truncated through its own descriptor.
    let is_written = rustix::fs::fcntl_getfl(stream)
        .is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR));
    is_file && !is_written
}
