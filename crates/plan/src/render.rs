//! The whole plan as text and as JSON, for `sandbox plan --full` and `--json`. Plain text: colour is the command line's part.

use crate::layer::{Layer, Strength};
use crate::limit::{Limit, Limited};
use crate::model::{
    Access, Confinement, Egress, Grace, MountOp, Namespaced, NatHelper, OnUnknown, Plan, ProxyPlan,
    Publish, Resource,
};
use palisade_policy::model::OnAsk;
use palisade_policy::network::shown_upstream;
use palisade_policy::units;
use std::fmt::{self, Display, Formatter, Write as _};
use std::net::SocketAddr;

impl Plan {
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

/// All of the plan, section by section, each with its name alone on a line.
impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        command(self, f)?;
        match &self.confinement {
            Confinement::None => writeln!(f, "\nconfinement\n  none")?,
            Confinement::NoNamespaces => {
                writeln!(f, "\nconfinement\n  Landlock and seccomp alone, no namespaces")?;
            }
            Confinement::Namespaces(inside) => {
                identity(inside, f)?;
                namespaces(inside, f)?;
                mounts(inside, f)?;
            }
        }
        network(self, f)?;
        limits(self, f)?;
        filters(self, f)?;
        executables(self, f)?;
        guard(self, f)?;
        gate(self, f)?;
        promises(self, f)?;
        list("approvals", self.approvals.iter().map(|a| format!("{}: {}", a.what, a.reason)), f)?;
        list("notes", self.notes.iter().map(|note| note.text.clone()), f)
    }
}

fn command(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    let argv: Vec<_> = plan.command.argv.iter().map(|word| word.to_string_lossy()).collect();
    writeln!(f, "command")?;
    writeln!(f, "  {}", argv.join(" "))?;
    writeln!(f, "  in {}, {} variables", plan.command.cwd.display(), plan.command.env.len())?;
    writeln!(f, "  project {}, {}", plan.project.root.display(), plan.project.found_by)?;
    for dir in &plan.create_dirs {
        writeln!(f, "  makes {} first", dir.display())?;
    }
    Ok(())
}

fn identity(inside: &Namespaced, f: &mut Formatter<'_>) -> fmt::Result {
    let id = &inside.identity;
    writeln!(f, "\nidentity")?;
    writeln!(f, "  uid {} inside, {} on the host", id.inside_uid, id.host_uid)?;
    writeln!(f, "  gid {} inside, {} on the host", id.inside_gid, id.host_gid)
}

fn namespaces(inside: &Namespaced, f: &mut Formatter<'_>) -> fmt::Result {
    let has = &inside.namespaces;
    let named = [
        ("user", true),
        ("mount", has.mount),
        ("pid", has.pid),
        ("net", has.net),
        ("uts", has.uts),
        ("ipc", has.ipc),
        ("cgroup", has.cgroup),
        ("time", has.time_offset.is_some()),
    ];
    let pick = |wanted: bool| {
        let names = named.iter().filter(|(_, own)| *own == wanted).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(" ")
    };
    writeln!(f, "\nnamespaces")?;
    writeln!(f, "  own:    {}", pick(true))?;
    writeln!(f, "  host's: {}", pick(false))?;
    if let Some(hostname) = &inside.hostname {
        writeln!(f, "  host name {hostname}")?;
    }
    match has.time_offset {
        Some(seconds) => writeln!(f, "  clocks {seconds:+} s"),
        None => Ok(()),
    }
}

fn mounts(inside: &Namespaced, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nmounts")?;
    let rows: Vec<[String; 4]> = inside.mounts.iter().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let (first, second) = (widest(0).unwrap_or(0), widest(1).unwrap_or(0).min(48));
    for [kind, path, source, why] in &rows {
        let mut line = format!("  {kind:first$}  {path:second$}");
        if !source.is_empty() {
            write!(line, "  ← {source}")?;
        }
        if !why.is_empty() {
            write!(line, "  ({why})")?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What it is, where, from where, why.
fn row(op: &MountOp) -> [String; 4] {
    let target = op.target().display().to_string();
    let no = String::new;
    match op {
        MountOp::Bind { source, target: at, access, exec, why, .. } => {
            let access = if *access == Access::ReadWrite { "rw" } else { "ro" };
            let exec = if *exec { "exec" } else { "noexec" };
            let source = if source == at { no() } else { source.display().to_string() };
            [format!("{access} {exec}"), target, source, (*why).to_owned()]
        }
        MountOp::Overlay { hidden, access, why, .. } => {
            let why = match hidden.len() {
                0 => (*why).to_owned(),
                count => format!("{why}, {count} paths hidden"),
            };
            let kind = if *access == Access::ReadWrite { "overlay" } else { "overlay ro" };
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

fn network(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    if plan.egress.is_none() && plan.publish.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nnetwork")?;
    match &plan.egress {
        None => {}
        Some(Egress::Proxy(proxy)) => proxied(proxy, f)?,
        Some(Egress::Nat(nat)) => {
            let helper = match &nat.helper {
                NatHelper::Pasta(path) | NatHelper::Slirp4netns(path) => path.display().to_string(),
                NatHelper::Veth => "the kernel's own forwarding".to_owned(),
            };
            writeln!(f, "  any host, by {helper}; {} ranges are blocked", nat.blocked.len())?;
        }
    }
    for Publish { address, port, inner } in &plan.publish {
        writeln!(f, "  published: {}, leads to {inner} inside", SocketAddr::new(*address, *port))?;
    }
    Ok(())
}

fn proxied(proxy: &ProxyPlan, f: &mut Formatter<'_>) -> fmt::Result {
    for host in proxy.rules.allowed() {
        writeln!(f, "  allowed: {host}")?;
    }
    for host in proxy.rules.denied() {
        writeln!(f, "  denied: {host}")?;
    }
    let ports: Vec<String> = proxy.rules.all_ports().iter().map(u16::to_string).collect();
    writeln!(f, "  ports: {}", ports.join(" "))?;
    match proxy.on_unknown {
        OnUnknown::Deny => writeln!(f, "  other hosts: denied")?,
        OnUnknown::Ask => writeln!(f, "  other hosts: asked about")?,
    }
    if let Some(upstream) = &proxy.upstream {
        writeln!(f, "  through: {}", shown_upstream(upstream))?;
    }
    for credential in &proxy.credentials {
        let hosts: Vec<String> = credential.hosts.iter().map(ToString::to_string).collect();
        let (name, header) = (&credential.name, &credential.header);
        writeln!(f, "  credential {name}: {header} of requests to {}", hosts.join(", "))?;
    }
    let bytes = proxy.bytes.map_or(String::new(), |most| format!(", {}", units::show_size(most)));
    let (connections, queries) = (proxy.connections, proxy.queries_a_second);
    writeln!(f, "  at most {connections} connections, {queries} look-ups a second{bytes}")
}

fn limits(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nlimits")?;
    for limit in &plan.limits {
        let (name, value) = (limit.what.name(), told(limit));
        write!(f, "  {name:12}  {value:>14}  {}, {}", limit.holder.name(), limit.grip.name())?;
        writeln!(f, "; past it: {}", limit.overshoot)?;
    }
    if plan.rlimits.iter().any(|limit| limit.resource == Resource::Core) {
        writeln!(f, "  no core files")?;
    }
    let Grace { after_signal_ms, after_timeout_ms } = plan.grace;
    if plan.timeout_ms.is_some() {
        writeln!(f, "  to end after the timeout: {after_timeout_ms} ms")?;
    }
    if let Some(most) = plan.seccomp.as_ref().and_then(|seccomp| seccomp.max_blocked) {
        writeln!(f, "  suspicious system calls: {most}, then the run is ended")?;
    }
    writeln!(f, "  to end after a signal: {after_signal_ms} ms")
}

pub(crate) fn told(limit: &Limit) -> String {
    let value = limit.value;
    match limit.what {
        Limited::Cpus => format!("{} CPUs", units::show_cpus(value)),
        Limited::CpuSet => format!("{value} CPUs"),
        Limited::CpuTime | Limited::WallTime => units::show_millis(value),
        Limited::Memory
        | Limited::MemoryHigh
        | Limited::Swap
        | Limited::FileSize
        | Limited::Disk
        | Limited::Output => units::show_size(value),
        Limited::IoBandwidth => format!("{}/s", units::show_size(value)),
        Limited::IoOperations => format!("{value}/s"),
        Limited::Processes | Limited::Threads | Limited::OpenFiles | Limited::Inodes => {
            value.to_string()
        }
    }
}

fn filters(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nsystem calls")?;
    match &plan.seccomp {
        None => writeln!(f, "  not filtered")?,
        Some(seccomp) => {
            writeln!(f, "  {}", seccomp.profile)?;
            for group in crate::seccomp::summary(&seccomp.rules) {
                writeln!(
                    f,
                    "  {:11}  {:3}  {}: {}",
                    group.decision, group.syscalls, group.name, group.reason
                )?;
            }
        }
    }
    match &plan.landlock {
        None => writeln!(f, "\nlandlock\n  none"),
        Some(landlock) => {
            let what = if landlock.restrict_reads { "reading and writing" } else { "writing" };
            let (paths, guarded) = (landlock.writable.len(), landlock.guarded.len());
            write!(
                f,
                "\nlandlock\n  ABI {}: restricts {what}; {paths} writable trees",
                landlock.abi
            )?;
            match guarded {
                0 => writeln!(f),
                guarded => writeln!(f, ", {guarded} where the broker writes"),
            }
        }
    }
}

fn executables(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    let landlock = plan.landlock.as_ref();
    let Some(executables) = landlock.and_then(|landlock| landlock.executables.as_ref()) else {
        return Ok(());
    };
    writeln!(f, "\nexecutables")?;
    for path in &executables.listed {
        writeln!(f, "  {}", path.display())?;
    }
    for path in &executables.needed {
        writeln!(f, "  {}  (to start those)", path.display())?;
    }
    Ok(())
}

fn guard(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(guard) = &plan.guard else { return Ok(()) };
    let names = palisade_guard::count() + guard.more.len();
    writeln!(f, "\nprotected names\n  {names} names, and git's hooks and settings, in")?;
    for tree in &guard.trees {
        writeln!(f, "  {}", tree.display())?;
    }
    for path in &guard.opened {
        writeln!(f, "  not protected: {}", path.display())?;
    }
    Ok(())
}

fn gate(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(gate) = &plan.gate else { return Ok(()) };
    let what = if gate.executes { "files, directories and programs" } else { "files, directories" };
    writeln!(f, "\nquestions")?;
    match gate.on_ask {
        OnAsk::Ask | OnAsk::Wait => {
            let seconds = gate.ask_timeout_ms / 1000;
            writeln!(f, "  about {what} missing inside; no answer in {seconds} s denies")?;
            writeln!(f, "  {} puts a question in the terminal aside", plan.ask_key)?;
        }
        OnAsk::Deny => writeln!(f, "  none asked: {what} missing inside are denied")?,
        OnAsk::Allow => writeln!(f, "  none asked: {what} missing inside are granted")?,
    }
    let (never, secrets) = (gate.never.len(), gate.secrets.len());
    writeln!(f, "  {never} paths are never asked about, {secrets} known secrets one at a time")
}

fn promises(plan: &Plan, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\npromises")?;
    for promise in &plan.promises {
        let strength = match promise.strength {
            Strength::Enforced => "enforced",
            Strength::Advisory => "advisory",
            Strength::Absent => "absent",
        };
        let layers: Vec<_> = promise.layers.iter().copied().map(Layer::name).collect();
        let held =
            if layers.is_empty() { String::new() } else { format!(" [{}]", layers.join(", ")) };
        write!(f, "  {:6}  {strength:8}  {}{held}", promise.id, promise.what)?;
        match &promise.remark {
            Some(remark) => writeln!(f, "; {remark}")?,
            None => writeln!(f)?,
        }
    }
    Ok(())
}

fn list(
    title: &str,
    items: impl ExactSizeIterator<Item = String>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if items.len() > 0 {
        writeln!(f, "\n{title}")?;
    }
    for item in items {
        writeln!(f, "  {item}")?;
    }
    Ok(())
}
