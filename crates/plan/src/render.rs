//! Prints the whole plan as text and as JSON, for `sandbox plan --full` and `--json`. Plain text: the command
//! line adds colour.

use crate::layer::{Layer, Promise, Strength};
use crate::model::{
    Answers, Confinement, Egress, Grace, MountAccess, MountOp, Namespaced, NatHelper, OnUnknown,
    Plan, ProxyPlan, Publish, Resource, Transaction,
};
use palisade_policy::model::{OnAsk, OnExpiry};
use palisade_policy::network::shown_upstream;
use palisade_policy::units;
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;

impl Plan {
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl Plan {
    /// The whole plan in sections, each with its name alone on a line. A path that contains a line break is
    /// still one element; the printer escapes it.
    pub fn lines(&self) -> Vec<String> {
        let mut page = Page::default();
        command(self, &mut page);
        match &self.sandbox.confinement {
            Confinement::None => {
                page.section("confinement");
                page.line("none");
            }
            Confinement::NoNamespaces => {
                page.section("confinement");
                page.line("Landlock and seccomp alone, no namespaces");
            }
            Confinement::Namespaces(inside) => {
                identity(inside, &mut page);
                namespaces(inside, &mut page);
                mounts(inside, &mut page);
            }
        }
        network(self, &mut page);
        limits(self, &mut page);
        filters(self, &mut page);
        executables(self, &mut page);
        guard(self, &mut page);
        gate(self, &mut page);
        promises(self, &mut page);
        let approvals =
            self.supervision.approvals.iter().map(|a| format!("{}: {}", a.what, a.reason));
        list("approvals", approvals, &mut page);
        list("notes", self.explanation.notes.iter().map(|note| note.text.clone()), &mut page);
        page.lines
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[derive(Default)]
struct Page {
    lines: Vec<String>,
}

impl Page {
    /// Adds an empty line before every section but the first.
    fn section(&mut self, title: &str) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        self.lines.push(title.to_owned());
    }

    fn line(&mut self, text: impl Display) {
        self.lines.push(format!("  {text}"));
    }
}

fn command(plan: &Plan, page: &mut Page) {
    let argv: Vec<_> = plan.command.argv.iter().map(|word| word.to_string_lossy()).collect();
    page.section("command");
    page.line(format_args!("{}", argv.join(" ")));
    page.line(format_args!(
        "in {}, {} variables",
        plan.command.cwd.display(),
        plan.command.env.len()
    ));
    page.line(format_args!(
        "project {}, {}",
        plan.explanation.project.root.display(),
        plan.explanation.project.found_by
    ));
    for dir in &plan.sandbox.create_dirs {
        page.line(format_args!("makes {} first", dir.display()));
    }
}

fn identity(inside: &Namespaced, page: &mut Page) {
    let id = &inside.identity;
    page.section("identity");
    page.line(format_args!("uid {} inside, {} on the host", id.inside_uid, id.host_uid));
    page.line(format_args!("gid {} inside, {} on the host", id.inside_gid, id.host_gid));
}

fn namespaces(inside: &Namespaced, page: &mut Page) {
    let has = &inside.namespaces;
    let pick = |wanted: bool| {
        let kinds = has.by_name().into_iter();
        let names = kinds.filter(|(_, own)| *own == wanted).map(|(name, _)| name);
        names.collect::<Vec<_>>().join(" ")
    };
    page.section("namespaces");
    page.line(format_args!("own:    {}", pick(true)));
    page.line(format_args!("host's: {}", pick(false)));
    if let Some(hostname) = &inside.hostname {
        page.line(format_args!("host name {hostname}"));
    }
    if let Some(seconds) = has.time_offset {
        page.line(format_args!("clocks {seconds:+} s"));
    }
}

fn mounts(inside: &Namespaced, page: &mut Page) {
    page.section("mounts");
    let rows: Vec<[String; 4]> = inside.mounts.iter().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let (first, second) = (widest(0).unwrap_or(0), widest(1).unwrap_or(0).min(48));
    for [kind, path, source, why] in &rows {
        let mut line = format!("{kind:first$}  {path:second$}");
        if !source.is_empty() {
            line += &format!("  ← {source}");
        }
        if !why.is_empty() {
            line += &format!("  ({why})");
        }
        page.line(line.trim_end());
    }
}

/// The kind of mount, its path, its source, and why it exists.
fn row(op: &MountOp) -> [String; 4] {
    let target = op.target().display().to_string();
    let no = String::new;
    match op {
        MountOp::Bind { source, target: at, access, exec, why, .. } => {
            let access = if *access == MountAccess::ReadWrite { "rw" } else { "ro" };
            let exec = if *exec { "exec" } else { "noexec" };
            let source = if source == at { no() } else { source.display().to_string() };
            [format!("{access} {exec}"), target, source, (*why).to_owned()]
        }
        MountOp::Overlay { hidden, access, layer, is_copied, stack, why, .. } => {
            let why = match hidden.len() {
                0 => (*why).to_owned(),
                count => format!("{why}, {count} paths hidden"),
            };
            let kind = match (access, layer, stack) {
                (MountAccess::ReadOnly, ..) => "overlay ro",
                (MountAccess::ReadWrite, Some(_), _) if *is_copied => "transaction by copy",
                (MountAccess::ReadWrite, Some(_), _) => "transaction",
                (MountAccess::ReadWrite, None, Some(_)) => "own cache",
                (MountAccess::ReadWrite, None, None) => "overlay",
            };
            [kind.to_owned(), target, no(), why]
        }
        MountOp::Symlink { points_to, .. } => {
            ["link".to_owned(), target, points_to.display().to_string(), no()]
        }
        MountOp::Tmpfs { size, exec, .. } => {
            let size = size.map_or_else(no, |bytes| format!("{bytes} bytes at most"));
            let kind = if *exec { "tmpfs" } else { "tmpfs noexec" };
            [kind.to_owned(), target, no(), size]
        }
        MountOp::Dir { .. } | MountOp::Frame { .. } => ["directory".to_owned(), target, no(), no()],
        MountOp::Copy { is_filtered, why, .. } => {
            let left_out = if *is_filtered { ", without credentials" } else { "" };
            ["copy".to_owned(), target, no(), format!("{why}{left_out}")]
        }
        MountOp::File { .. } => ["file".to_owned(), target, no(), "made for this run".to_owned()],
        MountOp::Seal { .. } => ["sealed ro".to_owned(), target, no(), no()],
        MountOp::Blank { .. } => ["blank".to_owned(), target, no(), no()],
        MountOp::Proc { .. } => ["proc".to_owned(), target, no(), no()],
        MountOp::DevPts { .. } => ["devpts".to_owned(), target, no(), no()],
        MountOp::Mqueue { .. } => ["mqueue".to_owned(), target, no(), no()],
        MountOp::Device { major, minor, .. } => {
            ["device".to_owned(), target, no(), format!("{major}:{minor}")]
        }
    }
}

fn network(plan: &Plan, page: &mut Page) {
    if plan.sandbox.egress.is_none() && plan.sandbox.publish.is_empty() {
        return;
    }
    page.section("network");
    match &plan.sandbox.egress {
        None => {}
        Some(Egress::Proxy(proxy)) => proxied(proxy, page),
        Some(Egress::Nat(nat)) => {
            let helper = match &nat.helper {
                NatHelper::Pasta(path) | NatHelper::Slirp4netns(path) => path.display().to_string(),
                NatHelper::Veth => "the kernel's own forwarding".to_owned(),
            };
            page.line(format_args!(
                "any host, by {helper}; {} ranges are blocked",
                nat.blocked.len()
            ));
        }
    }
    for Publish { address, port, inner } in &plan.sandbox.publish {
        page.line(format_args!(
            "published: {}, forwarded to {inner} in the sandbox",
            SocketAddr::new(*address, *port)
        ));
    }
}

fn proxied(proxy: &ProxyPlan, page: &mut Page) {
    for host in proxy.rules.allowed() {
        page.line(format_args!("allowed: {host}"));
    }
    for host in proxy.rules.denied() {
        page.line(format_args!("denied: {host}"));
    }
    let ports: Vec<String> = proxy.rules.all_ports().iter().map(u16::to_string).collect();
    page.line(format_args!("ports: {}", ports.join(" ")));
    match proxy.on_unknown {
        OnUnknown::Deny => page.line("other hosts: denied"),
        OnUnknown::Ask => page.line("other hosts: asked about"),
    }
    if let Some(upstream) = &proxy.upstream {
        page.line(format_args!("through: {}", shown_upstream(upstream)));
    }
    for credential in &proxy.credentials {
        let hosts: Vec<String> = credential.hosts.iter().map(ToString::to_string).collect();
        let (name, header) = (&credential.name, &credential.header);
        page.line(format_args!("credential {name}: {header} of requests to {}", hosts.join(", ")));
    }
    let bytes = proxy.bytes.map_or(String::new(), |most| format!(", {}", units::show_size(most)));
    let (connections, queries) = (proxy.connections, proxy.queries_a_second);
    page.line(format_args!(
        "at most {connections} connections, {queries} DNS queries per second{bytes}"
    ));
}

fn limits(plan: &Plan, page: &mut Page) {
    page.section("limits");
    for limit in &plan.supervision.limits {
        let (name, value) = (limit.what.name(), limit.shown());
        let (holder, grip) = (limit.holder.name(), limit.grip.name());
        let overshoot = &limit.overshoot;
        page.line(format_args!("{name:12}  {value:>14}  {holder}, {grip}; overshoot: {overshoot}"));
    }
    if plan.sandbox.rlimits.iter().any(|limit| limit.resource == Resource::Core) {
        page.line(format_args!("no core files"));
    }
    let Grace { after_signal_ms, after_timeout_ms } = plan.supervision.grace;
    if plan.supervision.timeout_ms.is_some() {
        page.line(format_args!("to end after the timeout: {after_timeout_ms} ms"));
    }
    if let Some(most) = plan.sandbox.seccomp.as_ref().and_then(|seccomp| seccomp.max_blocked) {
        page.line(format_args!("suspicious system calls: {most}, then the run is stopped"));
    }
    page.line(format_args!("to end after a signal: {after_signal_ms} ms"));
    if let Some(time) = plan.supervision.time_to_live_ms {
        page.line(format_args!("time to live: {time} ms"));
    }
    if let Some(time) = plan.supervision.idle_time_to_live_ms {
        page.line(format_args!("time to live without a command: {time} ms"));
    }
    let is_discarded = |transaction: &Transaction| transaction.on_expiry == OnExpiry::Discard;
    if plan.supervision.transaction.as_ref().is_some_and(is_discarded) {
        page.line("at the end of the time to live: changes that wait are discarded");
    }
    if let Some(recording) = plan.supervision.recording {
        let what = if recording.input { "output and input" } else { "output" };
        let most = recording.max_bytes;
        page.line(format_args!("terminal: {what} recorded, up to {most} bytes"));
    }
    if plan.supervision.records_operations() {
        page.line("audit log: file operations that write, too");
    }
}

fn filters(plan: &Plan, page: &mut Page) {
    page.section("system calls");
    match &plan.sandbox.seccomp {
        None => page.line("not filtered"),
        Some(seccomp) => {
            page.line(format_args!("{}", seccomp.profile));
            for group in crate::model::summary(&seccomp.rules) {
                page.line(format_args!(
                    "{:11}  {:3}  {}: {}",
                    group.decision, group.syscalls, group.name, group.reason
                ));
            }
        }
    }
    page.section("landlock");
    match &plan.sandbox.landlock {
        None => page.line("none"),
        Some(landlock) => {
            let what = if landlock.restrict_reads { "reading and writing" } else { "writing" };
            let (paths, guarded) = (landlock.writable.len(), landlock.guarded.len());
            let guarded = match guarded {
                0 => String::new(),
                guarded => format!(", {guarded} where the broker writes"),
            };
            page.line(format_args!(
                "ABI {}: restricts {what}; {paths} writable trees{guarded}",
                landlock.abi
            ));
        }
    }
}

fn executables(plan: &Plan, page: &mut Page) {
    let landlock = plan.sandbox.landlock.as_ref();
    let Some(executables) = landlock.and_then(|landlock| landlock.executables.listed()) else {
        return;
    };
    page.section("executables");
    for path in executables.listed.iter().chain(&executables.built) {
        page.line(format_args!("{}", path.display()));
    }
    for path in &executables.needed {
        page.line(format_args!("{}  (to start those)", path.display()));
    }
}

fn guard(plan: &Plan, page: &mut Page) {
    let Some(guard) = &plan.sandbox.guard else { return };
    let names = palisade_guard::count() + guard.more.len();
    page.section("protected names");
    page.line(format_args!("{names} names, and git's hooks and settings, in"));
    for tree in &guard.trees {
        page.line(format_args!("{}", tree.display()));
    }
    for path in &guard.opened {
        page.line(format_args!("not protected: {}", path.display()));
    }
    for path in &guard.build_dirs {
        let path = path.display();
        page.line(format_args!("not protected, written without the broker: {path}"));
    }
}

fn gate(plan: &Plan, page: &mut Page) {
    let Some(gate) = &plan.sandbox.gate else { return };
    let what = if gate.executes { "files, directories and programs" } else { "files, directories" };
    page.section("questions");
    match &gate.answers {
        Answers::OnAsk(OnAsk::Ask | OnAsk::Wait) => {
            let seconds = gate.ask_timeout_ms / 1000;
            page.line(format_args!(
                "about {what} that are not granted; denied after {seconds} s without an answer"
            ));
            page.line(format_args!(
                "{} hides a question in the terminal",
                plan.supervision.ask_key
            ));
        }
        Answers::OnAsk(OnAsk::Deny) => {
            page.line(format_args!("none: {what} that are not granted are denied"));
        }
        Answers::OnAsk(OnAsk::Allow) => {
            page.line(format_args!(
                "none: {what} that are not granted are allowed, except secrets"
            ));
        }
        Answers::Readable(shown) => {
            let shown: Vec<String> = shown.iter().map(|top| top.display().to_string()).collect();
            page.line(format_args!(
                "none: {what} are shown when they are used, except secrets and .env files, in {}",
                shown.join(", ")
            ));
        }
    }
    page.line(format_args!("noticed by {} ({})", gate.trigger.word(), gate.trigger_reason));
    let (never, secrets) = (gate.never.len(), gate.secrets.len());
    let (never_used, secret) = match gate.uses_on_ask() {
        true => ("are never asked about", "one at a time"),
        false => ("are never shown", "are denied"),
    };
    page.line(format_args!("{never} paths {never_used}, {secrets} known secrets {secret}"));
}

fn promises(plan: &Plan, page: &mut Page) {
    page.section("promises");
    for promise in &plan.explanation.promises {
        let strength = match promise.strength {
            Strength::Enforced => "enforced",
            Strength::Advisory => "advisory",
            Strength::Absent => "absent",
        };
        let layers: Vec<_> = promise.layers.iter().copied().map(Layer::name).collect();
        let held =
            if layers.is_empty() { String::new() } else { format!(" [{}]", layers.join(", ")) };
        let remark =
            promise.remark.as_ref().map(|remark| format!("; {remark}")).unwrap_or_default();
        let Promise { id, what, .. } = promise;
        page.line(format_args!("{id:6}  {strength:8}  {what}{held}{remark}"));
    }
}

fn list(title: &str, items: impl ExactSizeIterator<Item = String>, page: &mut Page) {
    if items.len() > 0 {
        page.section(title);
    }
    for item in items {
        page.line(format_args!("{item}"));
    }
}
