//! The limits of a run, what enforces each and how strictly: types that plan, report and audit share. Pure
//! data; `limits` decides what enforces a limit, and the policy's table of limits names it.

use crate::layer::Layer;
pub use palisade_policy::limit::LimitKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    CgroupV2,
    CgroupV1,
    /// `setrlimit`, for each process or for the user namespace.
    Rlimit,
    /// A CPU mask that the filter protects against changes.
    Affinity,
    /// The size of the run's own file systems.
    Tmpfs,
    /// A timer of the supervisor.
    Timer,
    /// The supervisor passes on the command's output.
    Relay,
    /// The supervisor polls.
    Watchdog,
}

impl Holder {
    pub fn name(self) -> &'static str {
        match self {
            Self::CgroupV2 => "cgroup-v2",
            Self::CgroupV1 => "cgroup-v1",
            Self::Rlimit => "rlimit",
            Self::Affinity => "affinity",
            Self::Tmpfs => "tmpfs",
            Self::Timer => "timer",
            Self::Relay => "relay",
            Self::Watchdog => "watchdog",
        }
    }

    /// The layers without which the limit could be exceeded.
    pub(crate) fn layers(self) -> &'static [Layer] {
        match self {
            Self::CgroupV2 | Self::CgroupV1 => &[Layer::Cgroup],
            Self::Rlimit => &[Layer::Rlimits],
            Self::Affinity => &[Layer::Rlimits, Layer::Seccomp],
            Self::Tmpfs => &[Layer::SizedFiles],
            Self::Timer => &[Layer::Timer],
            Self::Relay => &[Layer::OutputCap],
            Self::Watchdog => &[Layer::Watchdog],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grip {
    /// Cannot be exceeded, or not by more than the documented overshoot.
    Hard,
    /// Polled, so it can be exceeded between two polls.
    Sampled,
}

impl Grip {
    pub fn name(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Sampled => "sampled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    pub what: LimitKind,
    /// In the unit of `what`.
    pub value: u64,
    pub holder: Holder,
    pub grip: Grip,
    /// By how much a run exceeded it when that was measured, for display.
    pub overshoot: &'static str,
}

impl Limit {
    /// The value with its unit.
    pub(crate) fn shown(&self) -> String {
        self.what.unit().show(self.value)
    }
}

/// Where a run can create its own control group, as far as an inspection shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "version")]
pub enum CgroupHome {
    V2 {
        /// The directory to create it in, or for a scope the mount point of the hierarchy.
        #[serde(serialize_with = "crate::text::path")]
        parent: PathBuf,
        controllers: BTreeSet<Controller>,
        way: GroupCreation,
    },
    V1 {
        #[serde(skip)]
        parents: BTreeMap<Controller, PathBuf>,
    },
    Nowhere {
        why: String,
    },
}

impl CgroupHome {
    pub fn has(&self, controller: Controller) -> bool {
        match self {
            Self::V2 { controllers, .. } => controllers.contains(&controller),
            Self::V1 { parents } => parents.contains_key(&controller),
            Self::Nowhere { .. } => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controller {
    Memory,
    /// A part of the memory controller that a kernel may lack.
    Swap,
    Cpu,
    /// Only in v1; in v2 the CPU controller includes it.
    CpuAccount,
    Pids,
    Io,
    CpuSet,
}

/// How the run's own group is created in the unified hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupCreation {
    /// Below the supervisor's own group, which no other process uses.
    OwnGroup,
    /// In the parent of the supervisor's own group.
    BesideOwn,
    /// In a transient scope that the user's service manager creates and delegates.
    SystemdScope,
}

/// The control group of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    pub home: CgroupHome,
    pub settings: GroupSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Above this the kernel reclaims memory and slows the run down, but kills nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<u64>,
    /// In addition to the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milli_cpus: Option<u64>,
    /// Threads of all processes, including pid 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Bytes per second, in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_bandwidth: Option<u64>,
    /// Operations per second, in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rlimit {
    pub resource: Resource,
    pub value: u64,
}

/// A limit of a process that a plan or a request can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    Core,
    FileSize,
    OpenFiles,
    /// Since Linux 5.14 it counts per user namespace when set inside it.
    Processes,
    /// For each process separately.
    CpuSeconds,
}

/// What the supervisor polls while the command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// Bytes of all processes together, including swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Bytes added to the host's trees and used in the run's own file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// Paths on the host; none is inside another.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<PathBuf>,
}

impl Watch {
    /// Whether enforcement requires that the processes are visible.
    pub fn needs_processes(&self) -> bool {
        self.memory.is_some() || self.cpu_time_ms.is_some() || self.tasks.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scratch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// For each file system with its own size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes_apart: Option<u64>,
    /// Directories that the launcher creates; they do not count for the command.
    pub own_inodes: u64,
}

/// How long the command may take to end after it was asked to; then it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grace {
    pub after_signal_ms: u64,
    pub after_timeout_ms: u64,
}
