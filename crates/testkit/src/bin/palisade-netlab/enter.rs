//! Runs a program in the lab, as the same process: signals and exit codes are the program's own.
//! What is executed has none of the lab's capabilities.

use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::Result;

/// Returns only if that failed.
pub(crate) fn enter(process: &str, program: &str, arguments: &[&str]) -> Result<()> {
    let pid = Pid::from_raw(process.parse()?).ok_or("0 is no process")?;
    let here = std::env::current_dir()?;
    let mut spaces = ThreadNameSpaceType::NETWORK | ThreadNameSpaceType::MOUNT;
    // Root's lab has no user namespace of its own, and one's own cannot be entered again.
    let of = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/user"));
    if of(process)?.ino() != of("self")?.ino() {
        spaces |= ThreadNameSpaceType::USER;
    }
    move_into_thread_name_spaces(pidfd_open(pid, PidfdFlags::empty())?.as_fd(), spaces)?;
    std::env::set_current_dir(here)?;
    Err(format!("{program}: {}", Command::new(program).args(arguments).exec()).into())
}
