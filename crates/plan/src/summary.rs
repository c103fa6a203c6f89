//! The plan in ten lines, for `sandbox plan`: what a user wants to know before a run. `render.rs` prints
//! everything.

use crate::layer::{Promise, Strength};
use crate::model::{
    Answers, Confinement, Egress, MountAccess, MountOp, Namespaced, OnUnknown, Plan, ProxyPlan,
    Weight,
};
use palisade_policy::model::{NetworkMode, OnAsk};
use std::collections::BTreeMap;
use std::path::Path;

/// How many entries of a list are shown.
const NAMED: usize = 4;

impl Plan {
    /// Ten lines, each starting with its subject. Callers must escape them.
    pub fn summary(&self) -> Vec<String> {
        let lines = [
            ("command", command(self)),
            ("project", project(self)),
            ("isolation", isolation(self)),
            ("files", files(self)),
            ("protected", protected(self)),
            ("variables", variables(self)),
            ("network", network(self)),
            ("questions", questions(self)),
            ("limits", limits(self)),
            ("promises", promises(self)),
        ];
        lines.iter().map(|(name, text)| format!("{name:<10} {text}")).collect()
    }
}

fn command(plan: &Plan) -> String {
    let argv: Vec<_> = plan.command.argv.iter().map(|word| word.to_string_lossy()).collect();
    format!("{}, in {}", argv.join(" "), plan.command.cwd.display())
}

fn inside(plan: &Plan) -> Option<&Namespaced> {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => Some(inside),
        Confinement::NoNamespaces | Confinement::None => None,
    }
}

fn project(plan: &Plan) -> String {
    let root = &plan.explanation.project.root;
    let is_granted = |op: &&MountOp| match op {
        MountOp::Bind { source, why, .. } => *why == "project" && source == root,
        MountOp::Overlay { lower, why, .. } => *why == "project" && lower == root,
        _ => false,
    };
    let granted = inside(plan).and_then(|inside| inside.mounts.iter().find(is_granted));
    let access = match granted {
        Some(MountOp::Bind { access: MountAccess::ReadWrite, target, .. }) => {
            at(root, target, "writable")
        }
        Some(op @ MountOp::Overlay { is_copied: true, .. }) => {
            at(root, op.target(), "a writable copy; changes wait until they are applied")
        }
        Some(op) if op.is_transaction() => {
            at(root, op.target(), "writable; changes wait until they are applied")
        }
        Some(op) => at(root, op.target(), "readable"),
        None if inside(plan).is_none() => "no mounts of its own; see --full".to_owned(),
        None => "only parts are granted; see --full".to_owned(),
    };
    format!("{} ({}), {access}", root.display(), plan.explanation.project.found_by)
}

fn at(root: &Path, target: &Path, access: &str) -> String {
    if root == target { access.to_owned() } else { format!("{access} at {}", target.display()) }
}

fn isolation(plan: &Plan) -> String {
    let level = match plan.explanation.level {
        palisade_policy::Level::None => "none (LEVEL_0)",
        palisade_policy::Level::Process => "process (LEVEL_1)",
        palisade_policy::Level::Full => "full (LEVEL_2)",
    };
    let mut parts = vec![level.to_owned()];
    if let Some(inside) = inside(plan) {
        let (uid, host) = (inside.identity.inside_uid, inside.identity.host_uid);
        parts.push("own namespaces".to_owned());
        parts.push(if uid == host {
            format!("uid {uid}")
        } else {
            format!("uid {uid}, on the host {host}")
        });
    }
    if let Some(landlock) = &plan.sandbox.landlock {
        parts.push(format!("Landlock ABI {}", landlock.abi));
    }
    if plan.sandbox.seccomp.is_some() {
        parts.push("system call filter".to_owned());
    }
    parts.join(", ")
}

/// Grouped by the reason why they are visible.
fn files(plan: &Plan) -> String {
    let Some(inside) = inside(plan) else {
        let trees = plan.sandbox.landlock.as_ref().map_or(0, |landlock| landlock.writable.len());
        return format!("the host's, by Landlock; {trees} writable trees");
    };
    let (mut readable, mut writable) = (BTreeMap::new(), BTreeMap::new());
    for op in &inside.mounts {
        let (MountOp::Bind { access, why, .. } | MountOp::Overlay { access, why, .. }) = op else {
            continue;
        };
        let kind = if *access == MountAccess::ReadWrite { &mut writable } else { &mut readable };
        *kind.entry(*why).or_insert(0_usize) += 1;
    }
    let listed = |kinds: &BTreeMap<&str, usize>| {
        let name = |(why, count): (&&str, &usize)| match *why {
            "system" | "project" => (*why).to_owned(),
            why => format!("{count} {why}"),
        };
        kinds.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let writable = if writable.is_empty() { "none".to_owned() } else { listed(&writable) };
    let home = if inside.private_home.is_some() { "; the home directory is private" } else { "" };
    format!("readable: {}; writable: {writable}{home}", listed(&readable))
}

fn protected(plan: &Plan) -> String {
    match &plan.sandbox.guard {
        None => "no names".to_owned(),
        Some(guard) => {
            let names = palisade_guard::count() + guard.more.len();
            let opened = match guard.opened.len() + guard.build_dirs.len() {
                0 => String::new(),
                count => format!("; {count} not protected"),
            };
            format!(
                "{names} names that the host would run later, and git's hooks and settings{opened}"
            )
        }
    }
}

fn variables(plan: &Plan) -> String {
    let mut text = plan.command.env.len().to_string();
    if !plan.explanation.set_variables.is_empty() {
        text = format!("{text}; set: {}", some(&plan.explanation.set_variables));
    }
    if !plan.explanation.withheld_variables.is_empty() {
        text = format!("{text}; not passed on: {}", some(&plan.explanation.withheld_variables));
    }
    text
}

fn network(plan: &Plan) -> String {
    let mut text = match (&plan.sandbox.egress, plan.sandbox.network) {
        (Some(Egress::Proxy(proxy)), _) => proxied(proxy),
        (Some(Egress::Nat(nat)), _) => {
            format!("any host; {} private ranges are blocked", nat.blocked.len())
        }
        (None, NetworkMode::Host) => "the host's own".to_owned(),
        (None, _) => "none".to_owned(),
    };
    if !plan.sandbox.publish.is_empty() {
        let ports: Vec<String> =
            plan.sandbox.publish.iter().map(|it| it.port.to_string()).collect();
        text = format!("{text}; published: {}", some(&ports));
    }
    text
}

fn proxied(proxy: &ProxyPlan) -> String {
    let allowed: Vec<String> = proxy.rules.allowed().iter().map(ToString::to_string).collect();
    let allowed = if allowed.is_empty() { "no host".to_owned() } else { some(&allowed) };
    let others = match proxy.on_unknown {
        OnUnknown::Deny => "denied",
        OnUnknown::Ask => "asked about",
    };
    format!("{allowed}; others are {others}")
}

fn questions(plan: &Plan) -> String {
    let Some(gate) = &plan.sandbox.gate else {
        return "none; what is not granted is hidden".to_owned();
    };
    let on_ask = match gate.answers {
        Answers::OnAsk(on_ask) => on_ask,
        Answers::Readable(_) => {
            return "none; what is not granted is readable, except secrets".to_owned();
        }
    };
    match on_ask {
        OnAsk::Ask | OnAsk::Wait => {
            let seconds = gate.ask_timeout_ms / 1000;
            format!("about what is not granted; denied after {seconds} s without an answer")
        }
        OnAsk::Deny => "none; what is not granted is denied".to_owned(),
        OnAsk::Allow => "none; what is not granted is allowed, except secrets".to_owned(),
    }
}

fn limits(plan: &Plan) -> String {
    let limits: Vec<String> = plan
        .supervision
        .limits
        .iter()
        .map(|limit| format!("{} {}", limit.what.name(), limit.shown()))
        .collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(", ") }
}

fn promises(plan: &Plan) -> String {
    let of = |strength: Strength| -> Vec<String> {
        let promises =
            plan.explanation.promises.iter().filter(|promise| promise.strength == strength);
        promises.map(|Promise { id, .. }| (*id).to_owned()).collect()
    };
    let mut text = format!("{} enforced", of(Strength::Enforced).len());
    for (strength, word) in [(Strength::Advisory, "advisory"), (Strength::Absent, "absent")] {
        let ids = of(strength);
        if !ids.is_empty() {
            text = format!("{text}, {} {word} ({})", ids.len(), some(&ids));
        }
    }
    let notes = plan.explanation.notes.iter().filter(|note| note.weight != Weight::Routine).count();
    let notes = match notes {
        0 => String::new(),
        1 => "; 1 note".to_owned(),
        count => format!("; {count} notes"),
    };
    format!("{text}{notes}; details: sandbox plan --full")
}

fn some(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
