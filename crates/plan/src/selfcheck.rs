//! What the child tries before the command starts (ESC-2): each attempt aims at one layer.

use crate::facts::HostFacts;
use crate::layer::Layer;
use crate::model::{Confinement, Landlock, MountOp, Probe, Seccomp};
use palisade_policy::model::NetworkMode;
use std::path::Path;

/// Writable by nobody inside, whoever may write there outside.
const FORBIDDEN_FILE: &str = "/usr/.palisade-self-check";

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
                probes.extend(canary.map(|path| Probe::ReadCanary { path, layer }));
                probes.push(Probe::WriteOutside { path: FORBIDDEN_FILE.into(), layer });
            }
            if network != NetworkMode::Host {
                probes.push(Probe::ReachNetwork { layer: Layer::Seccomp });
            }
        }
        Confinement::Namespaces(inside) => {
            let layer = Layer::MountView;
            probes.extend(canary.map(|path| Probe::ReadCanary { path, layer }));
            let has_usr = |op: &MountOp| matches!(op, MountOp::Bind { target, .. } if target == Path::new("/usr"));
            if inside.mounts.iter().any(has_usr) {
                let layer = Layer::ReadOnlyMounts;
                probes.push(Probe::WriteOutside { path: FORBIDDEN_FILE.into(), layer });
            }
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
