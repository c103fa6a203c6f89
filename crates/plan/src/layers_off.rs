//! Removes single layers from a finished plan, so that tests can show which one stops an attack.
//!
//! Compiled only into test builds. The self-check stays unless it is named itself: a run with a missing layer
//! must stop.

use crate::facts::{EntryKind, HostFacts, HostTree};
use crate::layer::Layer;
use crate::model::{
    Checks, Confinement, Egress, Gate, MountAccess, MountOp, Namespaced, NodeKind, Plan, Watch,
};
use palisade_bpf::{CallAnswer, FilterSpec};
use std::path::Path;

/// The same run without these layers. `facts` contains what was removed from the environment, `tree` what the
/// view leaves out.
pub fn without(mut plan: Plan, facts: &HostFacts, tree: &dyn HostTree, layers: &[Layer]) -> Plan {
    let mut in_order = layers.to_vec();
    // The view comes first: it keeps only what the plan grants for writing.
    in_order.sort();
    for layer in in_order {
        if layer == Layer::MountView {
            // Everything is visible, so there is nothing to ask about.
            if let Some(gate) = &mut plan.sandbox.gate {
                gate.grounds.clear();
            }
            show_whole_host(&mut plan, tree, layers);
        } else if layer == Layer::FilteredSettings {
            carry_whole_settings(&mut plan, tree);
        } else {
            take_out(&mut plan, facts, layer);
        }
    }
    plan
}

fn take_out(plan: &mut Plan, facts: &HostFacts, layer: Layer) {
    match layer {
        Layer::Capabilities => plan.sandbox.hardening.drop_capabilities = false,
        Layer::NoNewPrivs => plan.sandbox.hardening.no_new_privs = false,
        Layer::UndumpableInit => plan.sandbox.hardening.init_undumpable = false,
        Layer::ClosedDescriptors => plan.sandbox.hardening.close_descriptors = false,
        Layer::OwnSession => plan.sandbox.hardening.own_session = false,
        Layer::MountFlags => plan.sandbox.hardening.mount_flags = false,
        Layer::Seccomp => {
            plan.sandbox.seccomp = None;
            plan.sandbox.gate = None;
        }
        Layer::Landlock => {
            let landlock = plan.sandbox.landlock.take();
            if landlock.is_some_and(|landlock| landlock.executables.listed().is_some()) {
                // The broker gets these calls only to report what Landlock refuses.
                let_through(plan, &|syscall, execs| execs.contains(&syscall));
            }
        }
        Layer::Guard => unguard(plan),
        Layer::SelfCheck => plan.sandbox.self_check.clear(),
        Layer::Rlimits => {
            plan.sandbox.rlimits.clear();
            plan.sandbox.affinity = None;
        }
        Layer::Cgroup => plan.sandbox.group = None,
        Layer::SizedFiles => give_room(plan),
        Layer::Watchdog => plan.supervision.watch = Watch::default(),
        Layer::OutputCap => plan.supervision.max_output = None,
        Layer::Timer => plan.supervision.timeout_ms = None,
        Layer::EscapedText => plan.sandbox.hardening.escaped_text = false,
        Layer::AuditBudgets => plan.sandbox.hardening.audit_budgets = false,
        Layer::ReviewedChanges => plan.sandbox.hardening.reviewed_changes = false,
        Layer::KnownTerminal => plan.sandbox.hardening.known_terminal = false,
        Layer::ArmedKeys => plan.sandbox.hardening.armed_keys = false,
        Layer::KnownCallers | Layer::BoundedQuestions => {
            if let Some(gate) = &mut plan.sandbox.gate {
                answer_anybody(gate, layer);
            }
        }
        Layer::EnvScrub => give_back_environment(plan, facts),
        Layer::PacketRules => match &mut plan.sandbox.egress {
            Some(Egress::Proxy(proxy)) => proxy.packet_rules = false,
            Some(Egress::Nat(nat)) => nat.packet_rules = false,
            None => {}
        },
        Layer::EgressRules
        | Layer::AddressCheck
        | Layer::NamesAgree
        | Layer::StrictHttp
        | Layer::BoundedConnections => {
            if let Some(Egress::Proxy(proxy)) = &mut plan.sandbox.egress {
                leave_unchecked(&mut proxy.checks, layer);
            }
        }
        Layer::MountView
        | Layer::FilteredSettings
        | Layer::ReadOnlyMounts
        | Layer::NoexecMounts
        | Layer::PrivateProc
        | Layer::MinimalDev
        | Layer::PidNamespace
        | Layer::NetNamespace
        | Layer::IpcNamespace
        | Layer::UtsNamespace
        | Layer::Identity => {
            // The same, for the mounts of the host that streams are on.
            plan.sandbox.hardening.no_file_streams &= layer != Layer::NoexecMounts;
            forget_queues(plan, layer);
            forget_way_out(plan, layer);
            if let Confinement::Namespaces(inside) = &mut plan.sandbox.confinement {
                take_out_of_namespaces(inside, layer);
            }
        }
    }
}

fn leave_unchecked(checks: &mut Checks, layer: Layer) {
    match layer {
        Layer::EgressRules => checks.rules = false,
        Layer::AddressCheck => checks.addresses = false,
        Layer::NamesAgree => checks.agreement = false,
        Layer::StrictHttp => checks.strict_http = false,
        Layer::BoundedConnections => checks.bounded = false,
        _ => {}
    }
}

fn answer_anybody(gate: &mut Gate, layer: Layer) {
    match layer {
        Layer::KnownCallers => gate.known_callers = false,
        Layer::BoundedQuestions => gate.most_questions = usize::MAX,
        _ => {}
    }
}

/// Gives file systems the kernel's default size.
fn give_room(plan: &mut Plan) {
    plan.sandbox.scratch = None;
    let Confinement::Namespaces(inside) = &mut plan.sandbox.confinement else { return };
    for op in &mut inside.mounts {
        if let MountOp::Tmpfs { size, .. } = op {
            *size = None;
        }
    }
}

/// As if the guard were disabled: the command writes by itself again.
fn unguard(plan: &mut Plan) {
    plan.sandbox.guard = None;
    if let Some(landlock) = &mut plan.sandbox.landlock {
        landlock.writable.append(&mut landlock.guarded);
    }
    let_through(plan, &|syscall, execs| !execs.contains(&syscall));
}

/// Allows calls without the broker. `wanted` selects them by their number and those of exec.
fn let_through(plan: &mut Plan, wanted: &dyn Fn(u32, &[u32]) -> bool) {
    let Some(seccomp) = &mut plan.sandbox.seccomp else { return };
    let explained = ["execve", "execveat"].map(|name| seccomp.rules.explain(name));
    let execs: Vec<u32> = explained.into_iter().flatten().filter_map(|call| call.number).collect();
    let mut rules = seccomp.filter.rules().to_vec();
    for rule in &mut rules {
        if rule.answer == CallAnswer::Broker && wanted(rule.syscall, &execs) {
            rule.answer = CallAnswer::Allow;
        }
    }
    seccomp.filter = FilterSpec::new(seccomp.filter.arch(), seccomp.filter.default(), rules);
}

fn take_out_of_namespaces(inside: &mut Namespaced, layer: Layer) {
    match layer {
        Layer::ReadOnlyMounts => {
            let is_seal = |op: &MountOp| matches!(op, MountOp::Seal { .. });
            inside.mounts.retain(|op| !is_seal(op) || op.target().starts_with("/proc"));
            for op in &mut inside.mounts {
                if let MountOp::Bind { access, .. } = op {
                    *access = MountAccess::ReadWrite;
                }
            }
        }
        Layer::NoexecMounts => {
            for op in &mut inside.mounts {
                if let MountOp::Bind { exec, .. }
                | MountOp::Overlay { exec, .. }
                | MountOp::Tmpfs { exec, .. } = op
                {
                    *exec = true;
                }
            }
        }
        Layer::PrivateProc => replace(inside, "/proc"),
        Layer::MinimalDev => replace(inside, "/dev"),
        Layer::PidNamespace => {
            inside.namespaces.pid = false;
            // Without its own pid namespace, a process cannot mount a procfs.
            for op in &mut inside.mounts {
                if matches!(op, MountOp::Proc { .. }) {
                    *op = host_bind(Path::new("/proc"), MountAccess::ReadWrite);
                }
            }
        }
        Layer::NetNamespace => {
            inside.namespaces.net = false;
            inside.loopback = false;
            inside.network_settings.clear();
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

/// Replaces every copied file by the host's unfiltered one.
fn carry_whole_settings(plan: &mut Plan, tree: &dyn HostTree) {
    let Confinement::Namespaces(inside) = &mut plan.sandbox.confinement else { return };
    for op in &mut inside.mounts {
        if let MountOp::Copy { source, content, .. } = op
            && let Some(text) = tree.read_small(source)
        {
            *content = text;
        }
    }
}

/// Shows the host's whole tree: each directory at its top is one mount that follows the host's. Keeps the
/// sandbox's own `/proc` and `/dev`, and the writable grants if the rest is read-only.
fn show_whole_host(plan: &mut Plan, tree: &dyn HostTree, all: &[Layer]) {
    plan.sandbox.hardening.private_mounts = false;
    let Confinement::Namespaces(inside) = &mut plan.sandbox.confinement else { return };
    let all_writable = all.contains(&Layer::ReadOnlyMounts);
    let access = if all_writable { MountAccess::ReadWrite } else { MountAccess::ReadOnly };
    let is_own = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev");
    inside.mounts.retain(|op| {
        let is_writable_grant = matches!(
            op,
            MountOp::Bind { access: MountAccess::ReadWrite, .. } | MountOp::Seal { .. }
        );
        is_own(op.target()) || (is_writable_grant && !all_writable)
    });
    for (name, kind) in tree.children(Path::new("/")) {
        let path = Path::new("/").join(name);
        match kind {
            _ if is_own(&path) => {}
            EntryKind::Dir => inside.mounts.push(host_bind(&path, access)),
            EntryKind::Symlink => {
                let points_to = tree.read_link(&path).unwrap_or_default();
                inside.mounts.push(MountOp::Symlink { target: path, points_to });
            }
            EntryKind::File | EntryKind::Other => {}
        }
    }
    // A parent must come before what is mounted on it.
    inside.mounts.sort_by(|a, b| a.target().cmp(b.target()));
}

/// Without our own `/dev` or an IPC namespace, there may be no mount point for message queues.
fn forget_queues(plan: &mut Plan, layer: Layer) {
    if let (Some(landlock), Layer::MinimalDev | Layer::IpcNamespace) =
        (&mut plan.sandbox.landlock, layer)
    {
        landlock.writable.retain(|path| path != Path::new("/dev/mqueue"));
    }
}

/// Without a network namespace there is no egress process, and names are resolved as on the host.
fn forget_way_out(plan: &mut Plan, layer: Layer) {
    if layer != Layer::NetNamespace {
        return;
    }
    plan.sandbox.egress = None;
    plan.sandbox.publish.clear();
    let is_about_names = |op: &MountOp| {
        let names = ["/etc/resolv.conf", "/etc/hosts"];
        matches!(op, MountOp::File { target, .. } if names.iter().any(|name| target == Path::new(name)))
    };
    if let Confinement::Namespaces(inside) = &mut plan.sandbox.confinement {
        inside.mounts.retain(|op| !is_about_names(op));
    }
}

/// Replaces our own mount by the host's.
fn replace(inside: &mut Namespaced, area: &str) {
    inside.mounts.retain(|op| !op.target().starts_with(area));
    let at = inside.mounts.partition_point(|op| op.target() < Path::new(area));
    inside.mounts.insert(at, host_bind(Path::new(area), MountAccess::ReadWrite));
}

fn host_bind(path: &Path, access: MountAccess) -> MountOp {
    MountOp::Bind {
        source: path.into(),
        target: path.into(),
        access,
        exec: true,
        kind: NodeKind::Dir,
        idmap: None,
        may_vanish: false,
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

#[cfg(test)]
#[path = "layers_off_tests.rs"]
mod tests;
