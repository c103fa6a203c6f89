//! Chooses the probes of the self-check (ESC-2): each one tests one layer.

use crate::facts::{EntryKind, HostFacts, HostMount};
use crate::host::Host;
use crate::layer::Layer;
use crate::model::{Confinement, Guard, Landlock, MountAccess, MountOp, NodeKind, Probe, Seccomp};
use crate::path_text::PathText as _;
use palisade_policy::model::NetworkMode;
use std::path::{Path, PathBuf};

/// A name that no other program uses.
const FORBIDDEN_NAME: &str = ".palisade-self-check";

/// The layers that exist and can be tested.
pub(crate) struct CheckedLayers<'plan> {
    pub(crate) confinement: &'plan Confinement,
    pub(crate) landlock: Option<&'plan Landlock>,
    pub(crate) guard: Option<&'plan Guard>,
    pub(crate) seccomp: Option<&'plan Seccomp>,
    pub(crate) network: NetworkMode,
}

pub(crate) fn probes(facts: &HostFacts, host: &Host<'_>, walls: &CheckedLayers<'_>) -> Vec<Probe> {
    let CheckedLayers { confinement, landlock, guard, seccomp, network } = *walls;
    let mut probes = Vec::with_capacity(7);
    let canary = facts.canary.clone();
    match confinement {
        Confinement::None => return probes,
        Confinement::NoNamespaces => {
            let layer = Layer::Landlock;
            if landlock.is_some() {
                // Beside the canary, where the caller may write: only Landlock can refuse this.
                let beside = canary.as_deref().map(|canary| canary.with_file_name(FORBIDDEN_NAME));
                probes.extend(canary.map(|path| Probe::ReadCanary { path, layer }));
                probes.extend(beside.map(|path| Probe::WriteOutside { path, layer }));
            }
            if network != NetworkMode::Host {
                probes.push(Probe::ReachNetwork { layer: Layer::Seccomp });
            }
        }
        Confinement::Namespaces(inside) => {
            let layer = Layer::MountView;
            probes.extend(canary.map(|path| Probe::ReadCanary { path, layer }));
            let layer = Layer::ReadOnlyMounts;
            let path = read_only_by_us(&inside.mounts, facts).map(|dir| dir.join(FORBIDDEN_NAME));
            probes.extend(path.map(|path| Probe::WriteOutside { path, layer }));
            if inside.namespaces.net {
                probes.push(Probe::ReachNetwork { layer: Layer::NetNamespace });
            }
            if inside.namespaces.pid {
                probes.push(Probe::SeeSupervisor { layer: Layer::PidNamespace });
            }
        }
    }
    let tree = guard.and_then(|guard| guarded_by_us(guard, confinement, facts, host));
    probes.extend(tree.map(|tree| Probe::WriteGuarded {
        path: tree.join(FORBIDDEN_NAME),
        layer: Layer::Landlock,
    }));
    probes.push(Probe::RegainCapability { layer: Layer::Capabilities });
    probes.extend(seccomp.map(|_| Probe::ForbiddenSyscall { layer: Layer::Seccomp }));
    probes
}

/// A directory that is read-only in the sandbox, but not on the host: only our mount can refuse writing there.
fn read_only_by_us<'plan>(mounts: &'plan [MountOp], facts: &HostFacts) -> Option<&'plan Path> {
    let usr = mounts.iter().filter(|op| op.target() == Path::new("/usr"));
    usr.chain(mounts).find_map(|op| match op {
        MountOp::Bind {
            source,
            target,
            access: MountAccess::ReadOnly,
            kind: NodeKind::Dir,
            ..
        } => (!is_read_only_on_host(source, facts)).then_some(target.as_path()),
        _ => None,
    })
}

/// A tree in which only Landlock can refuse to create a file.
fn guarded_by_us<'plan>(
    guard: &'plan Guard,
    confinement: &Confinement,
    facts: &HostFacts,
    host: &Host<'_>,
) -> Option<&'plan Path> {
    let directory = |tree: &Path| match confinement {
        Confinement::Namespaces(inside) => inside.mounts.iter().find_map(|op| match op {
            MountOp::Bind { source, target, kind: NodeKind::Dir, .. } if target == tree => {
                Some(source.clone())
            }
            _ => None,
        }),
        Confinement::NoNamespaces | Confinement::None => {
            let found = host.resolve(tree).ok()?;
            (found.kind == EntryKind::Dir).then_some(found.path)
        }
    };
    let can_be_written =
        |tree: &Path| directory(tree).is_some_and(|source| !is_read_only_on_host(&source, facts));
    guard.trees.iter().map(PathBuf::as_path).find(|tree| can_be_written(tree))
}

fn is_read_only_on_host(path: &Path, facts: &HostFacts) -> bool {
    let holds = |mount: &&HostMount| path.is_in(&mount.mount_point);
    let length = |mount: &&HostMount| mount.mount_point.as_os_str().len();
    let mount = facts.mounts.iter().filter(holds).max_by_key(length);
    mount.is_some_and(|mount| mount.read_only)
}
