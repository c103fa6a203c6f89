//! The spawner's configuration. The spawner is executed as a program of its own with empty memory, so the parts
//! of the plan that it needs are passed to it as one message in a file.
//!
//! Must stay a plain copy of the plan: nothing is decided here.

use crate::error::LaunchError;
use crate::filter;
use crate::inherited::Inherited;
use crate::selfcheck::Targets;
use palisade_bpf::{Insn, Listening};
use palisade_plan::layer::Layer;
use palisade_plan::model::{
    Confinement, Executables, Execution, Hardening, IdMapping, Landlock, Namespaces, Plan, Probe,
    Resource,
};
use palisade_sys::Pid;
use palisade_sys::proc::ResourceLimit;
use palisade_wire::{Raw, WireMessage};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub(super) const STEP: &str = "starting the spawner";

/// In flight, descriptors count for all processes of a user, and a sender fails whose own limit is lower than their
/// number (unix(7), ETOOMANYREFS). A command may send 253 in one message past its own limit.
const DESCRIPTORS_LEFT_FOR_US: u64 = 512;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnerConfig {
    pub(crate) supervisor: i32,
    pub(crate) namespaces: NamespaceSet,
    /// The ids inside, where root gives them.
    pub(crate) given_ids: Option<(u32, u32)>,
    pub(crate) hardening: SpawnerHardening,
    pub(crate) landlock: Option<LandlockRules>,
    /// Compiled, to be installed with a listener.
    pub(crate) filter: Option<Vec<(u16, u8, u8, u32)>>,
    pub(crate) rlimits: Vec<(LimitedResource, u64)>,
    pub(crate) affinity: Option<Vec<u32>>,
    pub(crate) open_files: (Option<u64>, Option<u64>),
    pub(crate) ignores_file_size: bool,
    pub(crate) probes: Vec<ProbeCopy>,
    /// The spawner's own, as the supervisor has it.
    pub(crate) umask: u32,
    /// The self-check's port on the host.
    pub(crate) port: Option<u16>,
}

/// Everything that a spawner starts with.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) config: SpawnerConfig,
    pub(super) socket: OwnedFd,
    pub(super) setup: OwnedFd,
    pub(super) broker: Option<OwnedFd>,
    /// To enter each control group by.
    pub(super) groups: Vec<OwnedFd>,
}

impl WireMessage for SpawnerConfig {
    const MAX_BYTES: usize = 4 * 1024 * 1024;
}

/// Which namespaces the sandbox has, besides that of users.
#[expect(clippy::struct_excessive_bools, reason = "each namespace is there or not")]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct NamespaceSet {
    pub(crate) mount: bool,
    pub(crate) pid: bool,
    pub(crate) net: bool,
    pub(crate) uts: bool,
    pub(crate) ipc: bool,
    pub(crate) cgroup: bool,
    pub(crate) time: bool,
}

impl From<&Namespaces> for NamespaceSet {
    fn from(planned: &Namespaces) -> Self {
        let Namespaces { mount, pid, net, uts, ipc, cgroup, time_offset } = *planned;
        Self { mount, pid, net, uts, ipc, cgroup, time: time_offset.is_some() }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a layer of its own")]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SpawnerHardening {
    pub(crate) no_new_privs: bool,
    pub(crate) drop_capabilities: bool,
    pub(crate) undumpable: bool,
    pub(crate) close_descriptors: bool,
    pub(crate) own_session: bool,
}

impl From<Hardening> for SpawnerHardening {
    fn from(planned: Hardening) -> Self {
        Self {
            no_new_privs: planned.no_new_privs,
            drop_capabilities: planned.drop_capabilities,
            undumpable: planned.init_undumpable,
            close_descriptors: planned.close_descriptors,
            own_session: planned.own_session,
        }
    }
}

/// A limit of a process that a plan or a request can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitedResource {
    Core,
    FileSize,
    OpenFiles,
    Processes,
    CpuSeconds,
}

impl From<Resource> for LimitedResource {
    fn from(planned: Resource) -> Self {
        match planned {
            Resource::Core => Self::Core,
            Resource::FileSize => Self::FileSize,
            Resource::OpenFiles => Self::OpenFiles,
            Resource::Processes => Self::Processes,
            Resource::CpuSeconds => Self::CpuSeconds,
        }
    }
}

impl From<LimitedResource> for palisade_sys::proc::Resource {
    fn from(limited: LimitedResource) -> Self {
        match limited {
            LimitedResource::Core => Self::Core,
            LimitedResource::FileSize => Self::Fsize,
            LimitedResource::OpenFiles => Self::Nofile,
            LimitedResource::Processes => Self::Nproc,
            LimitedResource::CpuSeconds => Self::Cpu,
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "a copy of the plan's rules")]
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LandlockRules {
    abi: u32,
    restrict_reads: bool,
    refuse_truncation: bool,
    #[serde(with = "Raw")]
    readable: Vec<PathBuf>,
    #[serde(with = "Raw")]
    writable: Vec<PathBuf>,
    #[serde(with = "Raw")]
    guarded: Vec<PathBuf>,
    #[serde(with = "Raw")]
    devices: Vec<PathBuf>,
    executables: Option<ExecutableRules>,
    refuse_tcp: bool,
    scope: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct ExecutableRules {
    #[serde(with = "Raw")]
    listed: Vec<PathBuf>,
    #[serde(with = "Raw")]
    needed: Vec<PathBuf>,
}

impl From<&Landlock> for LandlockRules {
    fn from(planned: &Landlock) -> Self {
        let planned = planned.clone();
        let executables = match planned.executables {
            Execution::Readable => None,
            Execution::Listed(Executables { listed, needed, .. }) => {
                Some(ExecutableRules { listed, needed })
            }
        };
        Self {
            abi: planned.abi,
            restrict_reads: planned.restrict_reads,
            refuse_truncation: planned.refuse_truncation,
            readable: planned.readable,
            writable: planned.writable,
            guarded: planned.guarded,
            devices: planned.devices,
            executables,
            refuse_tcp: planned.refuse_tcp,
            scope: planned.scope,
        }
    }
}

impl From<LandlockRules> for Landlock {
    fn from(rules: LandlockRules) -> Self {
        let executables = match rules.executables {
            None => Execution::Readable,
            Some(ExecutableRules { listed, needed }) => {
                Execution::Listed(Executables { listed, needed, detours: Vec::new() })
            }
        };
        Self {
            abi: rules.abi,
            restrict_reads: rules.restrict_reads,
            refuse_truncation: rules.refuse_truncation,
            readable: rules.readable,
            writable: rules.writable,
            guarded: rules.guarded,
            devices: rules.devices,
            executables,
            refuse_tcp: rules.refuse_tcp,
            scope: rules.scope,
        }
    }
}

/// A probe of the self-check. The plan's own type is tagged for JSON, which this encoding does not support.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ProbeCopy {
    ReadCanary(#[serde(with = "Raw")] PathBuf, Layer),
    WriteOutside(#[serde(with = "Raw")] PathBuf, Layer),
    WriteGuarded(#[serde(with = "Raw")] PathBuf, Layer),
    ReachNetwork(Layer),
    SeeSupervisor(Layer),
    RegainCapability(Layer),
    ForbiddenSyscall(Layer),
}

impl From<&Probe> for ProbeCopy {
    fn from(planned: &Probe) -> Self {
        match planned.clone() {
            Probe::ReadCanary { path, layer } => Self::ReadCanary(path, layer),
            Probe::WriteOutside { path, layer } => Self::WriteOutside(path, layer),
            Probe::WriteGuarded { path, layer } => Self::WriteGuarded(path, layer),
            Probe::ReachNetwork { layer } => Self::ReachNetwork(layer),
            Probe::SeeSupervisor { layer } => Self::SeeSupervisor(layer),
            Probe::RegainCapability { layer } => Self::RegainCapability(layer),
            Probe::ForbiddenSyscall { layer } => Self::ForbiddenSyscall(layer),
        }
    }
}

impl From<ProbeCopy> for Probe {
    fn from(copy: ProbeCopy) -> Self {
        match copy {
            ProbeCopy::ReadCanary(path, layer) => Self::ReadCanary { path, layer },
            ProbeCopy::WriteOutside(path, layer) => Self::WriteOutside { path, layer },
            ProbeCopy::WriteGuarded(path, layer) => Self::WriteGuarded { path, layer },
            ProbeCopy::ReachNetwork(layer) => Self::ReachNetwork { layer },
            ProbeCopy::SeeSupervisor(layer) => Self::SeeSupervisor { layer },
            ProbeCopy::RegainCapability(layer) => Self::RegainCapability { layer },
            ProbeCopy::ForbiddenSyscall(layer) => Self::ForbiddenSyscall { layer },
        }
    }
}

impl SpawnerConfig {
    pub(crate) fn of(
        plan: &Plan,
        inherited: &Inherited,
        targets: Targets,
        supervisor: Pid,
    ) -> Result<Self, LaunchError> {
        let Confinement::Namespaces(inside) = &plan.sandbox.confinement else {
            return Err(LaunchError::new(
                STEP,
                "a sandbox without namespaces runs no further commands",
            ));
        };
        let identity = &inside.identity;
        let given = identity.mapping == IdMapping::ByRoot;
        let program = plan
            .sandbox
            .seccomp
            .as_ref()
            .map(|seccomp| filter::compile(&seccomp.filter, Listening::Yes))
            .transpose()?;
        let instruction = |insn: &Insn| (insn.code, insn.jt, insn.jf, insn.k);
        let limit = open_files(inherited.open_files());
        Ok(Self {
            supervisor: supervisor.as_raw_nonzero().get(),
            namespaces: (&inside.namespaces).into(),
            given_ids: given.then_some((identity.inside_uid, identity.inside_gid)),
            hardening: plan.sandbox.hardening.into(),
            landlock: plan.sandbox.landlock.as_ref().map(Into::into),
            filter: program.map(|program| program.instructions().iter().map(instruction).collect()),
            rlimits: plan
                .sandbox
                .rlimits
                .iter()
                .map(|given| {
                    // What is above our own could not be set.
                    let most =
                        (given.resource == Resource::OpenFiles).then_some(limit.hard).flatten();
                    (given.resource.into(), most.map_or(given.value, |most| given.value.min(most)))
                })
                .collect(),
            affinity: plan.sandbox.affinity.clone(),
            open_files: (limit.soft, limit.hard),
            ignores_file_size: inherited.ignores_file_size(),
            probes: plan.sandbox.self_check.iter().map(Into::into).collect(),
            umask: palisade_sys::proc::current_umask(),
            port: targets.port,
        })
    }
}

/// The caller's limit, and below what the supervisor has by now: see [`DESCRIPTORS_LEFT_FOR_US`].
fn open_files(callers: ResourceLimit) -> ResourceLimit {
    let ours = palisade_sys::proc::get_rlimit(palisade_sys::proc::Resource::Nofile).soft;
    let most = ours.map(|ours| ours.saturating_sub(DESCRIPTORS_LEFT_FOR_US).max(ours / 2));
    let within = |limit: Option<u64>| match (limit, most) {
        (Some(limit), Some(most)) => Some(limit.min(most)),
        (limit, most) => limit.or(most),
    };
    ResourceLimit { soft: within(callers.soft), hard: within(callers.hard) }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
