//! What the child tries before the command starts (ESC-2): each attempt aims at one layer.

use crate::facts::{HostFacts, HostMount};
use crate::layer::Layer;
use crate::model::{Access, Confinement, Landlock, MountOp, NodeKind, Probe, Seccomp};
use palisade_policy::model::NetworkMode;
use std::path::Path;

/// A name that nobody has.
const FORBIDDEN_NAME: &str = ".palisade-self-check";

pub(crate) fn probes(
    facts: &HostFacts,
    network: NetworkMode,
    confinement: &Confinement,
    landlock: Option<&Landlock>,
    seccomp: Option<&Seccomp>,
) -> Vec<Probe> {
    let mut probes = Vec::with_capacity(6);
    let canary = facts.canary.clone();
    match confinement {
        Confinement::None => return probes,
        Confinement::NoNamespaces => {
            let layer = Layer::Landlock;
            if landlock.is_some() {
                // Beside the canary, where the caller may write: only Landlock can refuse it.
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
    probes.push(Probe::RegainCapability { layer: Layer::Capabilities });
    probes.extend(seccomp.map(|_| Probe::ForbiddenSyscall { layer: Layer::Seccomp }));
    probes
}

/// A directory that is read-only inside and not for everybody on the host: only our mount can be what
/// refuses writing there.
fn read_only_by_us<'plan>(mounts: &'plan [MountOp], facts: &HostFacts) -> Option<&'plan Path> {
    let usr = mounts.iter().filter(|op| op.target() == Path::new("/usr"));
    usr.chain(mounts).find_map(|op| match op {
        MountOp::Bind { source, target, access: Access::ReadOnly, kind: NodeKind::Dir, .. } => {
            let holds = |mount: &&HostMount| source.starts_with(&mount.mount_point);
            let mount = facts
                .mounts
                .iter()
                .filter(holds)
                .max_by_key(|mount| mount.mount_point.as_os_str().len());
            mount.is_none_or(|mount| !mount.read_only).then_some(target.as_path())
        }
        _ => None,
    })
}
