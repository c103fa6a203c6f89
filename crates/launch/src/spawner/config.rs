//! The spawner's configuration. The spawner is executed as a program of its own with empty memory, so the parts
//! of the plan that it needs are passed to it as one message in a file.
//!
//! Must stay a plain copy of the plan: nothing is decided here.

use crate::error::{LaunchError, Result};
use crate::filter;
use crate::inherited::Inherited;
use crate::selfcheck::Targets;
use palisade_bpf::Insn;
use palisade_plan::layer::Layer;
use palisade_plan::model::{
    Confinement, Detour, Executables, Execution, Hardening, IdMapping, Landlock, Namespaces, Plan,
    Probe, Resource,
};
use palisade_sys::Pid;
use palisade_sys::proc::ResourceLimit;
use palisade_wire::{Raw, WireMessage};
use rustix::thread::ThreadNameSpaceType;
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

pub(super) const STEP: &str = "starting the spawner";

/// In flight, descriptors count for all processes of a user, and a sender fails whose own limit is lower than their
/// number (unix(7), ETOOMANYREFS). A command may send 253 in one message past its own limit.
const DESCRIPTORS_LEFT_FOR_US: u64 = 512;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnerConfig {
    pub(crate) supervisor: i32,
    /// Those of the sandbox, as setns(2) takes them.
    pub(crate) namespaces: u32,
    /// The ids inside, where root gives them.
    pub(crate) given_ids: Option<(u32, u32)>,
    pub(crate) hardening: Hardening,
    pub(super) landlock: Option<EncodedLandlock>,
    /// Compiled, to be installed with a listener.
    pub(crate) filter: Option<Vec<(u16, u8, u8, u32)>>,
    pub(crate) rlimits: Vec<(Resource, u64)>,
    pub(crate) affinity: Option<Vec<u32>>,
    pub(crate) open_files: (Option<u64>, Option<u64>),
    pub(crate) ignores_file_size: bool,
    pub(super) probes: Vec<EncodedProbe>,
    /// The spawner's own, as the supervisor has it.
    pub(crate) umask: u32,
    /// The self-check's port on the host.
    pub(crate) port: Option<u16>,
    /// Whether its filter, which is that of commands, lets it give back memory.
    pub(crate) may_give_back_pages: bool,
    /// The path inside of a project whose changes are kept, byte by byte.
    pub(crate) transaction: Option<Vec<u8>>,
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

/// The encodings below are for types of the plan whose own is JSON for people: it leaves out fields and shows paths as
/// text, neither of which can be decoded again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EncodedLandlock(#[serde(with = "LandlockEncoding")] pub(super) Landlock);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Landlock")]
struct LandlockEncoding {
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
    build_dirs: Vec<PathBuf>,
    #[serde(with = "Raw")]
    devices: Vec<PathBuf>,
    #[serde(with = "ExecutionEncoding")]
    executables: Execution,
    refuse_tcp: bool,
    scope: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Execution")]
enum ExecutionEncoding {
    Readable,
    Listed(#[serde(with = "ExecutablesEncoding")] Executables),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Executables")]
struct ExecutablesEncoding {
    #[serde(with = "Raw")]
    listed: Vec<PathBuf>,
    #[serde(with = "Raw")]
    built: Vec<PathBuf>,
    #[serde(with = "Raw")]
    needed: Vec<PathBuf>,
    /// Only for display.
    #[serde(skip)]
    detours: Vec<Detour>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EncodedProbe(#[serde(with = "ProbeEncoding")] pub(super) Probe);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Probe")]
enum ProbeEncoding {
    ReadCanary {
        #[serde(with = "Raw")]
        path: PathBuf,
        layer: Layer,
    },
    WriteOutside {
        #[serde(with = "Raw")]
        path: PathBuf,
        layer: Layer,
    },
    WriteGuarded {
        #[serde(with = "Raw")]
        path: PathBuf,
        layer: Layer,
    },
    ReachNetwork {
        layer: Layer,
    },
    SeeSupervisor {
        layer: Layer,
    },
    RegainCapability {
        layer: Layer,
    },
    ForbiddenSyscall {
        layer: Layer,
    },
}

impl SpawnerConfig {
    pub(crate) fn of(
        plan: &Plan,
        inherited: &Inherited,
        targets: Targets,
        supervisor: Pid,
    ) -> Result<Self> {
        let Confinement::Namespaces(inside) = &plan.sandbox.confinement else {
            return Err(LaunchError::new(
                STEP,
                "a sandbox without namespaces runs no further commands",
            ));
        };
        let identity = &inside.identity;
        let given = identity.mapping == IdMapping::ByRoot;
        let program = filter::of_plan(plan)?;
        let instruction = |insn: &Insn| (insn.code, insn.jt, insn.jf, insn.k);
        let limit = open_files(inherited.open_files);
        Ok(Self {
            supervisor: supervisor.as_raw_nonzero().get(),
            namespaces: own_namespaces(&inside.namespaces).bits(),
            given_ids: given.then_some((identity.inside_uid, identity.inside_gid)),
            hardening: plan.sandbox.hardening,
            landlock: plan.sandbox.landlock.clone().map(EncodedLandlock),
            filter: program.map(|program| program.instructions().iter().map(instruction).collect()),
            rlimits: plan
                .sandbox
                .rlimits
                .iter()
                .map(|given| {
                    // What is above our own could not be set.
                    let most =
                        (given.resource == Resource::OpenFiles).then_some(limit.hard).flatten();
                    (given.resource, most.map_or(given.value, |most| given.value.min(most)))
                })
                .collect(),
            affinity: plan.sandbox.affinity.clone(),
            open_files: (limit.soft, limit.hard),
            ignores_file_size: inherited.ignores_file_size,
            probes: plan.sandbox.self_check.iter().cloned().map(EncodedProbe).collect(),
            umask: palisade_sys::proc::current_umask(),
            port: targets.port,
            may_give_back_pages: filter::lets_give_back_memory(plan),
            transaction: plan
                .transactions()
                .into_iter()
                .next()
                .map(|path| path.into_os_string().into_vec()),
        })
    }
}

/// The user namespace, and the others that the sandbox has of its own.
fn own_namespaces(planned: &Namespaces) -> ThreadNameSpaceType {
    let Namespaces { mount, pid, net, uts, ipc, cgroup, time_offset } = *planned;
    let mut flags = ThreadNameSpaceType::USER;
    flags.set(ThreadNameSpaceType::MOUNT, mount);
    flags.set(ThreadNameSpaceType::PROCESS_ID, pid);
    flags.set(ThreadNameSpaceType::NETWORK, net);
    flags.set(ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME, uts);
    flags.set(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION, ipc);
    flags.set(ThreadNameSpaceType::CONTROL_GROUP, cgroup);
    flags.set(ThreadNameSpaceType::TIME, time_offset.is_some());
    flags
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
