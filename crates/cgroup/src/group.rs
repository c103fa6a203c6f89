//! What a group of either hierarchy reports: usage, limits that were reached, descriptors to poll.

use crate::error::CgroupError;
use palisade_plan::limit::Controller;
use palisade_sys::proc::PollFlags;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The combined usage of all processes of the group; `None` where this kernel does not count it, or counts it in a
/// hierarchy that is not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUsage {
    pub cpu_user: Option<Duration>,
    pub cpu_system: Option<Duration>,
    /// Including the page cache of files that were read and written.
    pub memory: Option<u64>,
    /// v2: since 5.19.
    pub memory_peak: Option<u64>,
    pub tasks: Option<u64>,
    /// Since 6.1 in v2, 6.6 in v1.
    pub tasks_peak: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub read_operations: Option<u64>,
    pub write_operations: Option<u64>,
}

/// How often limits were reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Processes that the kernel killed because memory ran out.
    pub oom_kills: u64,
    /// The kernel reported that memory ran out, and has killed no process since. v1 reports it before the kill, and
    /// also if a group above ran out: check again soon.
    pub oom_expected: bool,
    /// Processes and threads that could not be created.
    pub forks_refused: Option<u64>,
    /// Periods in which the CPU quota was used up.
    pub throttled_periods: Option<u64>,
    pub throttled: Option<Duration>,
}

/// A descriptor to poll, and the events to poll for.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    pub fd: BorrowedFd<'a>,
    pub interest: PollFlags,
}

pub(crate) fn lacks(controller: Controller) -> CgroupError {
    let limit = match controller {
        Controller::Memory => "memory",
        Controller::Swap => "swap",
        Controller::Cpu | Controller::CpuAccount => "the CPU",
        Controller::Pids => "the number of processes",
        Controller::Io => "reading and writing",
        Controller::CpuSet => "the set of CPUs",
    };
    CgroupError::NoSuchLimit {
        limit,
        why: "the control group here lacks its controller".to_owned(),
        fix: "enable it in cgroup.subtree_control of the groups above, or waive the limit",
    }
}
