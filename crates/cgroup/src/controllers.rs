//! The names of the controllers in each version, and which of them a group needs.

use palisade_plan::limit::{Controller, GroupSettings};
use std::collections::BTreeSet;

/// Names in v2. Swap belongs to memory, and CPU time is counted without a controller.
pub(crate) const V2: [(Controller, &str); 5] = [
    (Controller::Memory, "memory"),
    (Controller::Cpu, "cpu"),
    (Controller::Pids, "pids"),
    (Controller::Io, "io"),
    (Controller::CpuSet, "cpuset"),
];

pub(crate) const V1: [(Controller, &str); 6] = [
    (Controller::Memory, "memory"),
    (Controller::Cpu, "cpu"),
    (Controller::CpuAccount, "cpuacct"),
    (Controller::Pids, "pids"),
    (Controller::Io, "blkio"),
    (Controller::CpuSet, "cpuset"),
];

/// The controllers in a list such as `cgroup.controllers`.
pub(crate) fn named_in(text: &str) -> BTreeSet<Controller> {
    let is_named = |name: &str| text.split_whitespace().any(|word| word == name);
    V2.iter().filter(|(_, name)| is_named(name)).map(|(controller, _)| *controller).collect()
}

/// The controllers without which the settings cannot be made.
pub(crate) fn needed(settings: &GroupSettings) -> BTreeSet<Controller> {
    let GroupSettings { memory, memory_high, swap, milli_cpus, tasks, io_bandwidth, iops, cpus } =
        settings;
    let asked = [
        (Controller::Memory, memory.or(*memory_high).or(*swap).is_some()),
        (Controller::Cpu, milli_cpus.is_some()),
        (Controller::Pids, tasks.is_some()),
        (Controller::Io, io_bandwidth.or(*iops).is_some()),
        (Controller::CpuSet, cpus.is_some()),
    ];
    asked.into_iter().filter(|(_, asked)| *asked).map(|(controller, _)| controller).collect()
}

/// Controllers that count usage, whether limited or not.
pub(crate) const COUNTING: [Controller; 4] =
    [Controller::Memory, Controller::CpuAccount, Controller::Pids, Controller::Io];
