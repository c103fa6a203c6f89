//! Everything a process has started, held so that its end can be waited for: a program whose
//! terminal is gone still works for a moment, and may write where its test is removing files.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The processes below one process, at the moment of asking.
#[derive(Debug)]
pub struct Descendants {
    held: Vec<OwnedFd>,
}

impl Descendants {
    /// The children of a process, theirs, and so on. What ends meanwhile is not among them.
    #[must_use]
    pub fn of(process: i32) -> Self {
        let mut held = Vec::new();
        let mut open = vec![process];
        while let Some(parent) = open.pop() {
            for child in children(parent) {
                held.extend(
                    Pid::from_raw(child).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
                );
                open.push(child);
            }
        }
        Self { held }
    }

    /// Waits until all of them have ended; false if one has not when the time is up.
    #[must_use]
    pub fn wait_for_end(&self, until: Instant) -> bool {
        self.held.iter().all(|process| {
            let remaining = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(remaining).ok();
            poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref())
                .is_ok_and(|ready| ready > 0)
        })
    }
}

/// The children of every thread: each thread lists those it started itself.
fn children(process: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|listed| {
            listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}
