//! What is promised in this run, and which layers enforce it. Plan and report use the same words.
//!
//! Must state facts, never intentions: a promise without a layer is `Absent`.

use crate::layer::{Layer, Promise, Strength};
use crate::limit::{Grip, Limit, LimitKind};
use crate::model::{Answers, Confinement, Egress, MountOp, OnUnknown, Plan, Probe, ProxyPlan};
use crate::written;
use palisade_policy::model::{EnvMode, Mode, NetworkMode, OnAsk, Policy};

/// The promises of an otherwise complete plan.
pub(crate) fn of(plan: &Plan, policy: &Policy) -> Vec<Promise> {
    let env_mode = policy.process.env_mode;
    let mut promises = match &plan.sandbox.confinement {
        Confinement::None => without_isolation(),
        Confinement::NoNamespaces => without_namespaces(plan),
        Confinement::Namespaces(_) => with_namespaces(plan),
    };
    promises.extend(names(plan, policy));
    promises.extend(attempts(plan));
    let scrub = Promise::new("PROC-8", "secrets in the environment do not reach the command")
        .held(&[Layer::EnvScrub]);
    promises.push(match env_mode {
        EnvMode::Inherit => scrub.advisory("by name: a secret under a harmless name passes"),
        EnvMode::Clean | EnvMode::Explicit => scrub,
    });
    promises.extend(plan.supervision.limits.iter().map(limit));
    promises.extend(programs(plan, policy));
    if !plan.sandbox.self_check.is_empty() {
        promises.push(
            Promise::new("ESC-2", "the sandbox is tested from inside before the command starts")
                .held(&[Layer::SelfCheck]),
        );
    }
    promises
}

/// One promise for each limit, because they are enforced by different mechanisms.
fn limit(limit: &Limit) -> Promise {
    let (id, what) = limit.what.promise();
    let promise = Promise::new(id, what).held(limit.holder.layers());
    match limit.grip {
        Grip::Hard => promise,
        Grip::Sampled => promise.advisory(&format!("polled; overshoot: {}", limit.overshoot)),
    }
}

/// Limits that the user waived.
pub(crate) fn waived(limits: &[LimitKind]) -> impl Iterator<Item = Promise> {
    limits.iter().map(|what| {
        let (id, promised) = what.promise();
        let remark = format!("waived with --waive-limit {}", what.name());
        Promise::new(id, promised).absent(&remark)
    })
}

/// If settings are copied into the sandbox, removing their credentials is part of hiding secrets.
fn secrets_held(mounts: &[MountOp]) -> &'static [Layer] {
    match mounts.iter().any(MountOp::is_filtered_copy) {
        true => &[Layer::MountView, Layer::FilteredSettings],
        false => &[Layer::MountView],
    }
}

const HIDDEN: &str = "paths that are not granted cannot be read";
const WRITES: &str = "only granted paths can be written";
const SECRETS: &str = "secrets are hidden under every path";
const OWN_ROOT: &str = "own root; mounts do not propagate in or out; removed at the end";
const OVERLAY: &str = "writes to overlays are discarded";
const OWN_CACHES: &str = "what is written to caches is never read by the host";
const TRANSACTION: &str = "the project's files stay as they are until changes are applied";
const NAMES: &str = "files that the host would run later cannot be written";
const OWN_KERNEL_FILES: &str = "own /proc, /dev, /tmp, /run";
const PIDS: &str = "host processes are invisible; all processes end with the run";
const UTS_IPC: &str = "own host name and IPC";
const DEBUG: &str = "only processes of the sandbox can be traced, never the supervisor";
const PRIVILEGE: &str = "no capabilities, no way to gain any, not root on the host";
const SYSCALLS: &str = "dangerous system calls are denied";
const ATTEMPTS: &str = "denied system calls are reported; many suspicious ones stop the run";
const ASKED: &str = "you are asked about paths that are not granted";
const COVERED: &str = "every system call that names a path can trigger the question";
const NO_RACE: &str = "changing a path during a question gains nothing";
const NETWORK: &str = "no network access";
const BY_RULES: &str = "no network access except by the rules";
const SPECIAL: &str = "private and special addresses cannot be reached under any name";
const LOOPBACK: &str = "own loopback, ports never collide with the host's";
const TERMINAL: &str = "the caller's terminal and descriptors stay out of reach";

fn with_namespaces(plan: &Plan) -> Vec<Promise> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return Vec::new() };
    let floor = |layers: &[Layer]| -> Vec<Layer> {
        let landlock = plan.sandbox.landlock.is_some().then_some(Layer::Landlock);
        layers.iter().copied().chain(landlock).collect()
    };
    let no_floor =
        plan.sandbox.landlock.is_none().then_some("no Landlock on this host: one layer less");
    let mut promises = vec![
        Promise::new("FS-1", WRITES).held(&floor(&[Layer::ReadOnlyMounts])).remark(no_floor),
        Promise::new("FS-1", HIDDEN).held(&[Layer::MountView]),
        Promise::new("FS-2", SECRETS).held(secrets_held(&inside.mounts)),
        Promise::new("FS-3", OWN_ROOT).held(&[Layer::MountView]),
        Promise::new("FS-7", OWN_KERNEL_FILES).held(&[
            Layer::PrivateProc,
            Layer::MinimalDev,
            Layer::MountView,
        ]),
    ];
    if inside.mounts.iter().any(MountOp::discards_changes) {
        promises.push(Promise::new("FS-5", OVERLAY).held(&[Layer::MountView]));
    }
    if !inside.caches.is_empty() {
        promises.push(Promise::new("FS-5", OWN_CACHES).held(&[Layer::MountView]));
    }
    if inside.mounts.iter().any(MountOp::is_transaction) {
        promises.push(Promise::new("LIFE-2", TRANSACTION).held(&[Layer::MountView]));
    }
    promises.extend(gate(plan));
    promises.push(Promise::new("PROC-1", PIDS).held(&[Layer::PidNamespace]));
    promises.push(if inside.namespaces.uts && inside.namespaces.ipc {
        Promise::new("PROC-4", UTS_IPC).held(&[Layer::UtsNamespace, Layer::IpcNamespace])
    } else {
        Promise::new("PROC-4", UTS_IPC).absent("LEVEL_1 shares them with the host; use LEVEL_2")
    });
    promises
        .push(Promise::new("PROC-5", DEBUG).held(&[Layer::PidNamespace, Layer::UndumpableInit]));
    promises.push(Promise::new("PROC-6", PRIVILEGE).held(&[
        Layer::Capabilities,
        Layer::NoNewPrivs,
        Layer::Identity,
        Layer::MountFlags,
    ]));
    promises.push(
        Promise::new("PROC-3", TERMINAL).held(&[Layer::OwnSession, Layer::ClosedDescriptors]),
    );
    promises.push(Promise::new("SYS-1", SYSCALLS).held(&[Layer::Seccomp]));
    promises.extend(network(plan));
    promises
}

fn gate(plan: &Plan) -> Vec<Promise> {
    if plan.explanation.mode == Mode::Static {
        let promise = Promise::new("GATE-7", "read-only view less the deny-list, no questions");
        let hidden = "what nothing grants in the home directory is hidden";
        let has_private_home = matches!(&plan.sandbox.confinement,
            Confinement::Namespaces(inside) if inside.private_home.is_some());
        let is_hidden = has_private_home && plan.sandbox.gate.is_none();
        return vec![promise.held(&[Layer::MountView]).remark(is_hidden.then_some(hidden))];
    }
    let Some(gate) = &plan.sandbox.gate else {
        let absent = |(id, what)| Promise::new(id, what).absent("the minimal view asks nothing");
        return [("GATE-1", ASKED), ("GATE-2", COVERED)].map(absent).into();
    };
    let unasked = match gate.answers {
        Answers::OnAsk(OnAsk::Deny) => {
            Some("nothing is asked: what would be asked is denied (--on-ask deny)")
        }
        Answers::OnAsk(OnAsk::Allow) => {
            Some("nothing is asked: what would be asked is granted (--on-ask allow)")
        }
        Answers::OnAsk(OnAsk::Ask | OnAsk::Wait) | Answers::Readable(_) => None,
    };
    let programs = "programs are not asked about: the policy says which may start";
    vec![
        Promise::new("GATE-1", ASKED).held(&[Layer::Seccomp, Layer::MountView]).remark(unasked),
        Promise::new("GATE-2", COVERED)
            .held(&[Layer::Seccomp])
            .remark((!gate.executes).then_some(programs)),
        Promise::new("GATE-3", NO_RACE).held(&[Layer::MountView]),
    ]
}

fn names(plan: &Plan, policy: &Policy) -> Option<Promise> {
    let promise = Promise::new("FS-9", NAMES);
    let nothing_writable: &[Layer] = match &plan.sandbox.confinement {
        Confinement::None => return None,
        Confinement::NoNamespaces => &[Layer::Landlock],
        Confinement::Namespaces(_) => &[Layer::ReadOnlyMounts],
    };
    Some(match (&plan.sandbox.guard, policy.filesystem.protect_names) {
        (Some(_), _) => promise.held(&[Layer::Guard, Layer::Landlock]),
        (None, true) => {
            promise.held(nothing_writable).remark(Some("nothing of the host is writable"))
        }
        (None, false) => promise.absent("turned off by --no-protect-names"),
    })
}

fn attempts(plan: &Plan) -> Option<Promise> {
    let seccomp = plan.sandbox.seccomp.as_ref()?;
    let unlimited = seccomp.max_blocked.is_none().then_some("no number of them stops the run");
    Some(Promise::new("SYS-2", ATTEMPTS).held(&[Layer::Seccomp]).remark(unlimited))
}

/// Promises about which programs may start. What a program does in its own memory cannot be seen, and each
/// remark says so.
fn programs(plan: &Plan, policy: &Policy) -> Vec<Promise> {
    let mut promises = Vec::new();
    if !policy.process.allow_fork {
        promises
            .push(Promise::new("PROC-2", "no new processes, only threads").held(&[Layer::Seccomp]));
    }
    if !policy.process.allow_exec {
        promises.push(
            Promise::new("PROC-2", "only the command itself is executed")
                .held(&[Layer::Seccomp])
                .remark(Some("code that a program loads or interprets itself is not restricted")),
        );
    }
    promises.extend(written(plan, policy));
    let executables =
        plan.sandbox.landlock.as_ref().and_then(|landlock| landlock.executables.listed());
    promises.extend(executables.map(|executables| {
        let listed = Promise::new("PROC-2", "only the listed programs are executed")
            .held(&[Layer::Landlock, Layer::Seccomp]);
        match executables.detours_told() {
            Some(detours) => listed.advisory(&detours),
            None => listed
                .remark(Some("code that a program loads or interprets itself is not restricted")),
        }
    }));
    promises
}

fn written(plan: &Plan, policy: &Policy) -> Option<Promise> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return None };
    if policy.filesystem.execute_written {
        return None;
    }
    let places = written::executable_places(&policy.filesystem, &inside.mounts);
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let mut remark =
        "code that a program interprets or makes in its memory is not restricted".to_owned();
    if !places.is_empty() {
        remark = format!("except in {}; {remark}", places.join(", "));
    }
    let promise = Promise::new("FS-1", "no file that the command wrote is executed");
    Some(promise.held(&[Layer::NoexecMounts, Layer::Seccomp]).remark(Some(&remark)))
}

fn network(plan: &Plan) -> Vec<Promise> {
    if plan.sandbox.network == NetworkMode::Host {
        let why = "the host's network was approved";
        return vec![
            Promise::new("NET-1", NETWORK).absent(why),
            Promise::new("NET-2", LOOPBACK).absent(why),
        ];
    }
    let loopback = Promise::new("NET-2", LOOPBACK).held(&[Layer::NetNamespace]);
    let mut promises = match &plan.sandbox.egress {
        None => vec![Promise::new("NET-1", NETWORK).held(&[Layer::NetNamespace]), loopback],
        Some(Egress::Proxy(proxy)) => {
            let by_rules = Promise::new("NET-1", BY_RULES).held(&[Layer::NetNamespace]);
            [by_rules, loopback]
                .into_iter()
                .chain(proxied(proxy, plan.supervision.on_ask))
                .collect()
        }
        Some(Egress::Nat(_)) => vec![
            Promise::new("NET-1", NETWORK).absent("any host may be reached: nat was approved"),
            loopback,
            Promise::new("NET-9", SPECIAL).held(&[Layer::PacketRules]),
        ],
    };
    if !plan.sandbox.publish.is_empty() {
        let published = "only published ports accept connections";
        promises.push(Promise::new("NET-9", published).held(&[Layer::NetNamespace]));
    }
    promises
}

fn proxied(proxy: &ProxyPlan, on_ask: OnAsk) -> Vec<Promise> {
    // With an upstream proxy, names are resolved elsewhere.
    let by_upstream = |promise: Promise| match proxy.upstream {
        Some(_) => {
            promise.advisory("the upstream proxy resolves names and decides about addresses")
        }
        None => promise,
    };
    let unknown = match (proxy.on_unknown, on_ask) {
        (OnUnknown::Deny, _) => "a host that no rule names is denied",
        (OnUnknown::Ask, OnAsk::Allow) => {
            "a host that no rule names is allowed without asking (--on-ask allow)"
        }
        (OnUnknown::Ask, _) => "a host that no rule names is asked about",
    };
    vec![
        Promise::new("NET-3", "only hosts and ports that rules allow are reached")
            .held(&[Layer::EgressRules, Layer::NetNamespace]),
        by_upstream(Promise::new("NET-3", SPECIAL).held(&[Layer::AddressCheck])),
        by_upstream(
            Promise::new("NET-4", "a name is resolved once, and only the checked address is used")
                .held(&[Layer::AddressCheck]),
        ),
        Promise::new("NET-4", "the host named in TLS and HTTP is the one that the rules checked")
            .held(&[Layer::NamesAgree, Layer::StrictHttp]),
        Promise::new("NET-5", "programs that ignore proxy variables obey the same rules")
            .held(&[Layer::NetNamespace, Layer::PacketRules]),
        Promise::new("NET-6", "only allowed names are resolved, at a limited rate")
            .held(&[Layer::EgressRules, Layer::BoundedConnections]),
        Promise::new("NET-7", "connections are limited, and every attempt is reported")
            .held(&[Layer::BoundedConnections]),
        Promise::new("NET-8", "nothing is opened without approval")
            .held(&[Layer::EgressRules])
            .remark(Some(unknown)),
    ]
}

fn without_namespaces(plan: &Plan) -> Vec<Promise> {
    let shared = "shared with the host: no namespaces";
    let mut promises = vec![
        Promise::new("FS-1", WRITES).held(&[Layer::Landlock]),
        Promise::new("FS-1", HIDDEN)
            .held(&[Layer::Landlock])
            .remark(Some("names and attributes stay visible, contents do not")),
        // Landlock restricts files and the filter restricts sockets, because Landlock has no rule for
        // connecting to them.
        Promise::new("FS-2", SECRETS).held(&[Layer::Landlock, Layer::Seccomp]),
        Promise::new("FS-3", OWN_ROOT).absent(shared),
        Promise::new("FS-7", OWN_KERNEL_FILES).absent(shared),
        Promise::new("PROC-1", PIDS).absent(shared),
        Promise::new("PROC-4", UTS_IPC).absent(shared),
        Promise::new("PROC-5", DEBUG).held(&[Layer::Landlock, Layer::UndumpableInit]),
        Promise::new("PROC-6", PRIVILEGE).held(&[Layer::Capabilities, Layer::NoNewPrivs]),
        Promise::new("PROC-3", TERMINAL).held(&[Layer::OwnSession, Layer::ClosedDescriptors]),
        Promise::new("SYS-1", SYSCALLS).held(&[Layer::Seccomp]),
    ];
    let refuses_tcp = plan.sandbox.landlock.as_ref().is_some_and(|landlock| landlock.refuse_tcp);
    promises.push(match plan.sandbox.network {
        NetworkMode::Host => {
            Promise::new("NET-1", NETWORK).absent("the host's network was approved")
        }
        _ if refuses_tcp => Promise::new("NET-1", NETWORK).held(&[Layer::Seccomp, Layer::Landlock]),
        _ => Promise::new("NET-1", NETWORK).held(&[Layer::Seccomp]),
    });
    promises.push(Promise::new("NET-2", LOOPBACK).absent(shared));
    promises
}

fn without_isolation() -> Vec<Promise> {
    [
        ("FS-1", WRITES),
        ("FS-1", HIDDEN),
        ("FS-2", SECRETS),
        ("FS-3", OWN_ROOT),
        ("FS-7", OWN_KERNEL_FILES),
        ("FS-9", NAMES),
        ("PROC-1", PIDS),
        ("PROC-4", UTS_IPC),
        ("PROC-5", DEBUG),
        ("PROC-6", PRIVILEGE),
        ("SYS-1", SYSCALLS),
        ("SYS-2", ATTEMPTS),
        ("NET-1", NETWORK),
        ("NET-2", LOOPBACK),
    ]
    .map(|(id, what)| Promise::new(id, what).absent("LEVEL_0 was approved: nothing is isolated"))
    .into()
}

impl Promise {
    /// Whether the probe tests this promise: it attempts what the promise rules out, at a layer that enforces
    /// it.
    pub fn is_tried_by(&self, probe: &Probe) -> bool {
        let tried: &[&str] = match probe {
            Probe::ReadCanary { .. } => &[HIDDEN, SECRETS, OWN_ROOT],
            Probe::WriteOutside { .. } => &[WRITES],
            Probe::WriteGuarded { .. } => &[NAMES],
            Probe::ReachNetwork { .. } => &[NETWORK, BY_RULES, LOOPBACK],
            Probe::SeeSupervisor { .. } => &[PIDS],
            Probe::RegainCapability { .. } => &[PRIVILEGE],
            Probe::ForbiddenSyscall { .. } => &[SYSCALLS],
        };
        tried.contains(&self.what) && self.layers.contains(&probe.layer())
    }

    fn new(id: &'static str, what: &'static str) -> Self {
        Self { id, what, strength: Strength::Absent, layers: Vec::new(), remark: None }
    }

    fn held(self, layers: &[Layer]) -> Self {
        Self { strength: Strength::Enforced, layers: layers.to_vec(), ..self }
    }

    fn advisory(self, remark: &str) -> Self {
        Self { strength: Strength::Advisory, remark: Some(remark.to_owned()), ..self }
    }

    fn absent(self, remark: &str) -> Self {
        Self { strength: Strength::Absent, remark: Some(remark.to_owned()), ..self }
    }

    fn remark(self, remark: Option<&str>) -> Self {
        Self { remark: remark.map(str::to_owned), ..self }
    }
}
