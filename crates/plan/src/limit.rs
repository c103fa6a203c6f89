//! The limits of a run, what enforces each and how strictly: types that plan, report and audit share. Pure
//! data; `limits` decides what enforces a limit, and the policy's table names it.

use crate::layer::Layer;
pub use palisade_policy::limit::LimitKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Who sees to it that a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    CgroupV2,
    CgroupV1,
    /// `setrlimit`, for each process or for the user namespace.
    Rlimit,
    /// A CPU mask that the filter lets nobody change.
    Affinity,
    /// The size of file systems of the run's own.
    Tmpfs,
    /// The supervisor's clock.
    Timer,
    /// The supervisor stands between the command and its reader.
    Relay,
    /// The supervisor looks now and then.
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

    /// What would have to be missing for the limit to be passed.
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
    /// Nothing gets past it, or no further than the overshoot says.
    Hard,
    /// Looked at now and then: in between it can be passed.
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

/// One limit of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    pub what: LimitKind,
    /// In the unit of `what`.
    pub value: u64,
    pub holder: Holder,
    pub grip: Grip,
    /// How far past it a run got when that was measured, for people.
    pub overshoot: &'static str,
}

impl Limit {
    /// Its value with the unit.
    pub(crate) fn shown(&self) -> String {
        self.what.unit().show(self.value)
    }
}

/// Where a run can make a control group of its own, as far as looking tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "version")]
pub enum CgroupHome {
    V2 {
        /// The directory to make it in, or for a scope the mount of the hierarchy.
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
    /// Of v1: what the CPU controller of v2 counts by itself.
    CpuAccount,
    Pids,
    Io,
    CpuSet,
}

/// How an own group comes about in the unified hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupCreation {
    /// Below the supervisor's own group, which is nobody else's.
    OwnGroup,
    /// In the parent of the supervisor's own group.
    BesideOwn,
    /// A transient scope that the user's service manager makes and hands over.
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
    /// Above this the kernel reclaims and slows down, but ends nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<u64>,
    /// Beyond the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milli_cpus: Option<u64>,
    /// Threads of all processes, pid 1's included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Bytes a second, each way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_bandwidth: Option<u64>,
    /// Operations a second, each way.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    Core,
    FileSize,
    OpenFiles,
    /// Counts per user namespace since 5.14 when set inside it.
    Processes,
    /// Of each process by itself.
    CpuSeconds,
}

/// What is looked at now and then while the command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// Bytes of all processes together, swapped out or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Bytes added to the host's trees and held by the run's own file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// On the host; what lies in one of them is not named again.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<PathBuf>,
}

impl Watch {
    /// Whether something is held only if the processes can be seen.
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
    /// Of each file system that has a size of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes_apart: Option<u64>,
    /// Directories that the launcher makes in it: the command does not pay for them.
    pub own_inodes: u64,
}

/// How long the command may take to end once it was asked to; then it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grace {
    pub after_signal_ms: u64,
    pub after_timeout_ms: u64,
}
