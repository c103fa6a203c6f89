//! How far a run exceeded a limit when measured, for each mechanism.
//!
//! The figures are the worst results of `cargo xtask bench limits`; limits that the kernel itself refuses to
//! exceed have none.

use crate::limit::{Grip, Holder, Limit, LimitKind};

const NONE: &str = "none";

pub(super) fn limit(what: LimitKind, value: u64, holder: Holder, grip: Grip) -> Limit {
    Limit { what, value, holder, grip, overshoot: measured(what, holder, grip) }
}

pub(super) fn measured(what: LimitKind, holder: Holder, grip: Grip) -> &'static str {
    match (what, holder, grip) {
        (_, Holder::Rlimit | Holder::Tmpfs | Holder::Relay, _) => NONE,
        (LimitKind::MemoryHigh, ..) => "slowed down, not stopped",
        (LimitKind::WallTime, ..) => "the grace time and a few milliseconds",
        (LimitKind::CpuTime, Holder::CgroupV2 | Holder::CgroupV1, _) => {
            "30 ms at a limit of 500 ms in most runs; 871 ms at worst, on an overloaded machine"
        }
        (LimitKind::CpuTime, ..) => {
            "34 ms at a limit of 500 ms; children whose parents ignore SIGCHLD are not counted"
        }
        (LimitKind::Cpus, Holder::Affinity, Grip::Sampled) => "rounded up to whole CPUs",
        (LimitKind::IoBandwidth | LimitKind::IoOperations, Holder::CgroupV1, _) => {
            "writes that the kernel buffers are not counted"
        }
        (LimitKind::IoBandwidth | LimitKind::IoOperations, ..) => "bursts of 100 ms",
        (LimitKind::Cpus, Holder::CgroupV2 | Holder::CgroupV1, _) => "bursts of 100 ms",
        (LimitKind::Memory, Holder::Watchdog, _) => {
            "about 376 MiB at a limit of 64 MiB, with 2 CPUs"
        }
        (LimitKind::Disk, Holder::Watchdog, _) => "about 534 MiB at a limit of 64 MiB, with 2 CPUs",
        (LimitKind::Inodes, Holder::Watchdog, _) => {
            "about 2505 files at a limit of 1000, with 2 CPUs"
        }
        (LimitKind::Processes | LimitKind::Threads, Holder::Watchdog, _) => {
            "processes started between two polls"
        }
        _ => NONE,
    }
}
