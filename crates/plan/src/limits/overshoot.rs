//! How far past a limit a run got when it was measured, for every holder.
//!
//! Figures are the worst of what `cargo xtask bench limits` saw; a holder that is the kernel's own
//! refusal has none.

use crate::limit::{Grip, Holder, Limit, Limited};

const NONE: &str = "none";

pub(super) fn limit(what: Limited, value: u64, holder: Holder, grip: Grip) -> Limit {
    Limit { what, value, holder, grip, overshoot: measured(what, holder, grip) }
}

pub(super) fn measured(what: Limited, holder: Holder, grip: Grip) -> &'static str {
    match (what, holder, grip) {
        (_, Holder::Rlimit | Holder::Tmpfs | Holder::Relay, _) => NONE,
        (Limited::MemoryHigh, ..) => "slowed down, not stopped",
        (Limited::WallTime, ..) => "the grace time and a few milliseconds",
        (Limited::CpuTime, Holder::CgroupV2 | Holder::CgroupV1, _) => {
            "30 ms at a limit of 500 ms in most runs; 871 ms at worst, on an overloaded machine"
        }
        (Limited::CpuTime, ..) => {
            "34 ms at a limit of 500 ms; children whose parents ignore SIGCHLD are not counted"
        }
        (Limited::Cpus, Holder::Affinity, Grip::Sampled) => "rounded up to whole CPUs",
        (Limited::IoBandwidth | Limited::IoOperations, Holder::CgroupV1, _) => {
            "writes that the kernel buffers are not counted"
        }
        (Limited::IoBandwidth | Limited::IoOperations, ..) => "bursts of 100 ms",
        (Limited::Cpus, Holder::CgroupV2 | Holder::CgroupV1, _) => "bursts of 100 ms",
        (Limited::Memory, Holder::Watchdog, _) => "about 376 MiB at a limit of 64 MiB, with 2 CPUs",
        (Limited::Disk, Holder::Watchdog, _) => "about 534 MiB at a limit of 64 MiB, with 2 CPUs",
        (Limited::Inodes, Holder::Watchdog, _) => {
            "about 2505 files at a limit of 1000, with 2 CPUs"
        }
        (Limited::Processes | Limited::Threads, Holder::Watchdog, _) => {
            "processes started between two polls"
        }
        _ => NONE,
    }
}
