//! Takes single layers out of a finished plan, so that tests can show which one holds an attack.
//!
//! Compiled only into test builds. The self-check stays unless it is named itself: a run with a wall
//! missing must stop.

use crate::facts::HostFacts;
use crate::layer::Layer;
use crate::model::{Access, Confinement, MountOp, Namespaced, NodeKind, Plan};
use std::path::Path;

/// The same run with these layers off. `facts` hold what the environment was scrubbed of.
pub fn without(mut plan: Plan, facts: &HostFacts, layers: &[Layer]) -> Plan {
    for layer in layers {
        take_out(&mut plan, facts, *layer, layers);
    }
    plan
}

fn take_out(plan: &mut Plan, facts: &HostFacts, layer: Layer, all: &[Layer]) {
    match layer {
        Layer::Capabilities => plan.hardening.drop_capabilities = false,
        Layer::NoNewPrivs => plan.hardening.no_new_privs = false,
        Layer::UndumpableInit => plan.hardening.init_undumpable = false,
        Layer::ClosedDescriptors => plan.hardening.close_descriptors = false,
        Layer::OwnSession => plan.hardening.own_session = false,
        Layer::MountFlags => plan.hardening.mount_flags = false,
        Layer::Seccomp => plan.seccomp = None,
        Layer::Landlock => plan.landlock = None,
        Layer::SelfCheck => plan.self_check.clear(),
        Layer::Rlimits => plan.rlimits.clear(),
        Layer::Timer => plan.timeout_ms = None,
        Layer::EnvScrub => give_back_environment(plan, facts),
        Layer::MountView
        | Layer::ReadOnlyMounts
        | Layer::PrivateProc
        | Layer::MinimalDev
        | Layer::PidNamespace
        | Layer::NetNamespace
        | Layer::IpcNamespace
        | Layer::UtsNamespace
        | Layer::Identity => {
            if let Confinement::Namespaces(inside) = &mut plan.confinement {
                take_out_of_namespaces(inside, layer, all);
            }
        }
    }
}

fn take_out_of_namespaces(inside: &mut Namespaced, layer: Layer, all: &[Layer]) {
    match layer {
        Layer::MountView => show_whole_host(inside, all),
        Layer::ReadOnlyMounts => {
            for op in &mut inside.mounts {
                if let MountOp::Bind { access, .. } = op {
                    *access = Access::ReadWrite;
                }
            }
        }
        Layer::PrivateProc => replace(inside, "/proc"),
        Layer::MinimalDev => replace(inside, "/dev"),
        Layer::PidNamespace => inside.namespaces.pid = false,
        Layer::NetNamespace => {
            inside.namespaces.net = false;
            inside.loopback = false;
        }
        Layer::IpcNamespace => {
            inside.namespaces.ipc = false;
            inside.mounts.retain(|op| !matches!(op, MountOp::Mqueue { .. }));
        }
        Layer::UtsNamespace => {
            inside.namespaces.uts = false;
            inside.hostname = None;
        }
        Layer::Identity => {
            inside.identity.host_uid = 0;
            inside.identity.host_gid = 0;
        }
        _ => {}
    }
}

/// The host's whole tree at `/`, with the sandbox's own `/proc`, `/dev` and the writable grants on it.
fn show_whole_host(inside: &mut Namespaced, all: &[Layer]) {
    let access =
        if all.contains(&Layer::ReadOnlyMounts) { Access::ReadWrite } else { Access::ReadOnly };
    let stays = |op: &MountOp| {
        let in_own = ["/proc", "/dev"].into_iter().any(|area| op.target().starts_with(area));
        in_own || matches!(op, MountOp::Bind { access: Access::ReadWrite, .. })
    };
    inside.mounts.retain(stays);
    inside.mounts.insert(0, host_bind("/", access));
}

/// The host's own instead of ours.
fn replace(inside: &mut Namespaced, area: &str) {
    inside.mounts.retain(|op| !op.target().starts_with(area));
    let at = inside.mounts.partition_point(|op| op.target() < Path::new(area));
    inside.mounts.insert(at, host_bind(area, Access::ReadWrite));
}

fn host_bind(path: &str, access: Access) -> MountOp {
    MountOp::Bind {
        source: path.into(),
        target: path.into(),
        access,
        exec: true,
        kind: NodeKind::Dir,
        idmap: None,
        why: "layer off",
    }
}

fn give_back_environment(plan: &mut Plan, facts: &HostFacts) {
    let env = &mut plan.command.env;
    let missing: Vec<_> = facts
        .env
        .iter()
        .filter(|(name, _)| !env.iter().any(|(known, _)| known == *name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(missing);
}
