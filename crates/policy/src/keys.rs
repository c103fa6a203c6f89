//! The one table of policy keys: name, type, and which direction is tighter.
//!
//! Parser, schema, merge, locks, trust, diff and `show` all read this table, so that a key cannot be known to
//! one of them and unknown to another. The entries for limits come from the table of limits.

use crate::limit::{LimitKind, Unit};

#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueKind {
    /// One of a few words, each with its canonical form.
    Word(&'static [(&'static str, &'static str)]),
    Bool,
    /// Bytes, or text such as `512m`.
    Size,
    /// The same, but zero is valid.
    SizeOrZero,
    /// Milliseconds, or text such as `300s`.
    Millis,
    /// A whole number above zero.
    Count,
    /// A whole number; zero is valid.
    CountOrZero,
    /// In thousandths.
    Cpus,
    /// Numbers of CPUs, such as `0-3,5`.
    CpuSet,
    /// Names of limits, as in their options.
    LimitNames,
    /// Seconds, may be negative.
    Seconds,
    /// A user or group id.
    Id,
    Path,
    Hostname,
    Paths,
    Hosts,
    /// CIDRs of private address ranges.
    PrivateRanges,
    /// Package managers and other tools, by the names in [`TOOL_NAMES`].
    Tools,
    /// The URL of a proxy.
    Upstream,
    /// Where alerts are posted: `https://…`, or `http://` and a loopback address.
    Webhook,
    /// `[ADDRESS:]PORT:INNER`.
    Published,
    Credentials,
    Ports,
    EnvNames,
    Executables,
    SyscallNames,
    EnvMap,
    Approvals,
    Rules,
}

/// Which direction is tighter. Determines what an untrusted project may set, and what a lock permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Words from the loosest to the tightest.
    Ranked(&'static [&'static str]),
    /// Only comparisons with this word are possible; it is tighter than all others.
    Towards(&'static str),
    TrueIsTighter,
    FalseIsTighter,
    /// Smaller is tighter; unset is the loosest.
    Limit,
    /// Smaller is tighter; unset means zero.
    Allowance,
    /// Fewer are tighter; unset means all.
    Subset,
    /// A multiple of the step reveals less, so it is tighter; unset is the loosest.
    Step,
    /// Fewer entries are tighter.
    AllowList,
    /// More entries are tighter.
    DenyList,
    /// Empty means no restriction; otherwise fewer entries are tighter.
    Restriction,
    /// Fewer are tighter; unset means [`USUAL_PORTS`].
    Ports,
    /// `filesystem.rules`: a permission loosens, a denial tightens.
    Rules,
    /// `syscalls.syscalls`: depends on `syscalls.mode`.
    Syscalls,
    /// No order: only a trusted layer may set it, and a lock freezes it.
    Fixed,
}

impl Order {
    /// Whether the key can have a maximum.
    pub(crate) fn has_maximum(self) -> bool {
        matches!(self, Order::Limit | Order::Allowance)
    }
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) path: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) order: Order,
    /// The description in the JSON Schema.
    pub(crate) about: &'static str,
}

const fn key(path: &'static str, kind: ValueKind, order: Order, about: &'static str) -> Key {
    Key { path, kind, order, about }
}

/// The key of a limit, from the table of limits.
const fn limit(limit: LimitKind) -> Key {
    let kind = match (limit, limit.unit()) {
        (LimitKind::Swap, _) => ValueKind::SizeOrZero,
        (_, Unit::Bytes | Unit::BytesPerSecond) => ValueKind::Size,
        (_, Unit::Milliseconds) => ValueKind::Millis,
        (_, Unit::MilliCpus) => ValueKind::Cpus,
        (_, Unit::CpuCount) => ValueKind::CpuSet,
        (_, Unit::OperationsPerSecond | Unit::Count) => ValueKind::Count,
    };
    let order = match limit {
        LimitKind::Swap => Order::Allowance,
        LimitKind::CpuSet => Order::Subset,
        _ => Order::Limit,
    };
    key(limit.key(), kind, order, limit.about())
}

const LEVELS: &[(&str, &str)] = &[
    ("LEVEL_0", "LEVEL_0"),
    ("LEVEL_1", "LEVEL_1"),
    ("LEVEL_2", "LEVEL_2"),
    ("0", "LEVEL_0"),
    ("1", "LEVEL_1"),
    ("2", "LEVEL_2"),
    ("none", "LEVEL_0"),
    ("logical", "LEVEL_0"),
    ("process", "LEVEL_1"),
    ("container", "LEVEL_2"),
    ("bwrap", "LEVEL_2"),
    ("nsjail", "LEVEL_2"),
];

/// Level names that also select the minimal view (POL-1).
pub(crate) const MINIMAL_VIEW_LEVELS: [&str; 3] = ["container", "bwrap", "nsjail"];

const VIEWS: &[(&str, &str)] = &[("host", "host"), ("minimal", "minimal")];
const MODES: &[(&str, &str)] = &[("dynamic", "dynamic"), ("static", "static")];
const ON_ASK: &[(&str, &str)] =
    &[("ask", "ask"), ("deny", "deny"), ("allow", "allow"), ("wait", "wait")];
/// Excludes the keys that terminals use themselves: signals, backspace, tab, Enter in two forms, flow control.
#[rustfmt::skip] // A table.
const ASK_KEYS: &[(&str, &str)] = &[
    ("ctrl-a", "ctrl-a"), ("ctrl-b", "ctrl-b"), ("ctrl-d", "ctrl-d"), ("ctrl-e", "ctrl-e"), ("ctrl-f", "ctrl-f"),
    ("ctrl-g", "ctrl-g"), ("ctrl-k", "ctrl-k"), ("ctrl-l", "ctrl-l"), ("ctrl-n", "ctrl-n"), ("ctrl-o", "ctrl-o"),
    ("ctrl-p", "ctrl-p"), ("ctrl-r", "ctrl-r"), ("ctrl-t", "ctrl-t"), ("ctrl-u", "ctrl-u"), ("ctrl-v", "ctrl-v"),
    ("ctrl-w", "ctrl-w"), ("ctrl-x", "ctrl-x"), ("ctrl-y", "ctrl-y"), ("ctrl-]", "ctrl-]"),
];
const GATES: &[(&str, &str)] = &[("auto", "auto"), ("fuse", "fuse"), ("notify", "notify")];
const FILE_OPERATIONS: &[(&str, &str)] = &[("off", "off"), ("writes", "writes")];
const RECORDED: &[(&str, &str)] = &[("off", "off"), ("output", "output"), ("input", "input")];
const PROJECT: &[(&str, &str)] = &[
    ("read-write", "read-write"),
    ("transaction-auto", "transaction-auto"),
    ("transaction", "transaction"),
    ("read-only", "read-only"),
    ("none", "none"),
];
const TRANSACTION_BY: &[(&str, &str)] =
    &[("auto", "auto"), ("overlay", "overlay"), ("copy", "copy")];
const ON_EXPIRY: &[(&str, &str)] = &[("keep", "keep"), ("discard", "discard")];
const CACHES: &[(&str, &str)] =
    &[("host", "host"), ("own", "own"), ("off", "off"), ("true", "own"), ("false", "off")];
const ENV_MODES: &[(&str, &str)] =
    &[("inherit", "inherit"), ("clean", "clean"), ("explicit", "explicit")];
const NETWORK_MODES: &[(&str, &str)] =
    &[("none", "none"), ("proxy", "proxy"), ("nat", "nat"), ("host", "host")];
const ESCAPE_ACTIONS: &[(&str, &str)] =
    &[("ignore", "ignore"), ("warn", "warn"), ("kill", "kill"), ("quarantine", "quarantine")];
const BY_HARDNESS: Order = Order::Ranked(&["ignore", "warn", "kill", "quarantine"]);
const SYSCALL_MODES: &[(&str, &str)] = &[("WHITELIST", "WHITELIST"), ("BLACKLIST", "BLACKLIST")];

/// What `network.allowedFor` may name.
pub(crate) const TOOL_NAMES: [&str; 13] = palisade_hosts::registry::Tool::WORDS;

/// Used if no ports are set.
pub(crate) const USUAL_PORTS: [u16; 2] = [80, 443];

#[rustfmt::skip] // A table: one key a line or two.
pub(crate) const KEYS: &[Key] = &[
    key("isolationLevel", ValueKind::Word(LEVELS), Order::Ranked(&["LEVEL_0", "LEVEL_1", "LEVEL_2"]),
        "How strongly the command is isolated from the host. container, bwrap and nsjail are LEVEL_2 with the minimal view."),
    key("view", ValueKind::Word(VIEWS), Order::Ranked(&["host", "minimal"]),
        "The host's tree at its usual paths, or system directories with the project at /workspace."),
    // Dynamic shows only what is granted; static shows everything that is not denied.
    key("mode", ValueKind::Word(MODES), Order::Ranked(&["static", "dynamic"]),
        "What happens to a path that is not granted: asked about on first use, or readable unless denied."),
    key("onAsk", ValueKind::Word(ON_ASK), Order::Ranked(&["allow", "wait", "ask", "deny"]),
        "What happens on first use of something not granted: ask (deny if nobody can be asked), wait for an answer, deny, or allow."),
    key("askTimeout", ValueKind::Millis, Order::Limit,
        "How long a question waits for an answer; then access is denied."),
    // Fixed, so that a project cannot choose it: a key that the command uses as well would hide questions
    // before anybody reads them.
    key("askKey", ValueKind::Word(ASK_KEYS), Order::Fixed,
        "The key that hides a question in the terminal and shows it again."),
    // Fixed: both enforce the same, so a project has no reason to choose.
    key("gate", ValueKind::Word(GATES), Order::Fixed,
        "What notices the first use of a path: a file system (fuse) or every path call (notify); auto chooses."),

    key("filesystem.rootPath", ValueKind::Path, Order::Fixed,
        "A directory whose contents appear at /, read-only, below all other mounts."),
    key("filesystem.readOnlyPaths", ValueKind::Paths, Order::AllowList, "Paths readable in the sandbox."),
    key("filesystem.readWritePaths", ValueKind::Paths, Order::AllowList, "Paths writable in the sandbox."),
    key("filesystem.overlayPaths", ValueKind::Paths, Order::AllowList,
        "Paths that look writable; changes are discarded."),
    key("filesystem.deniedPaths", ValueKind::Paths, Order::DenyList, "Paths that are hidden, under every alias."),
    key("filesystem.rules", ValueKind::Rules, Order::Rules,
        "Permanent answers about paths that would otherwise be asked about."),
    key("filesystem.project", ValueKind::Word(PROJECT),
        Order::Ranked(&["read-write", "transaction-auto", "transaction", "read-only", "none"]),
        "Access to the project directory (git root or working directory); in a transaction its changes are kept apart until they are applied."),
    // Fixed: both keep the same promise, so a project has no reason to choose.
    key("filesystem.transactionBy", ValueKind::Word(TRANSACTION_BY), Order::Fixed,
        "How a transaction keeps changes apart: by an overlay, by a copy of the project, or auto: by a copy where the kernel mounts no overlay."),
    // Fixed: each of them is a copy that takes room on the host.
    key("filesystem.checkpointEachCommand", ValueKind::Bool, Order::Fixed,
        "In a session with a transaction: keep the state of the project before each command (`sandbox checkpoints`)."),
    // Fixed: to discard loses somebody's work, and to keep leaves what an organisation wants gone. So neither is tighter, and a
    // project that nobody trusts chooses neither.
    key("filesystem.onExpiry", ValueKind::Word(ON_EXPIRY), Order::Fixed,
        "What happens to the changes of a transaction, and to its checkpoints, when the session's time to live is over: they are kept, or discarded."),
    key("filesystem.caches", ValueKind::Word(CACHES), Order::Ranked(&["host", "own", "off"]),
        "The known tool caches: the host's own (host), the host's for reading and the project's for writing (own), or none (off)."),
    // Fixed: it is about the caches of other projects, too.
    key("filesystem.cacheSize", ValueKind::Size, Order::Fixed,
        "How much the sandboxes of all projects keep in caches of their own, in bytes."),
    key("filesystem.toolchains", ValueKind::Bool, Order::FalseIsTighter,
        "Grant the known toolchains in the home directory."),
    key("filesystem.hideSecrets", ValueKind::Bool, Order::TrueIsTighter,
        "Hide the built-in list of secret paths."),
    key("filesystem.protectNames", ValueKind::Bool, Order::TrueIsTighter,
        "Deny writing files that the host would run later."),
    key("filesystem.unprotectedPaths", ValueKind::Paths, Order::AllowList,
        "Paths that protectNames does not protect; they must be writable already."),
    key("filesystem.buildDirs", ValueKind::Paths, Order::AllowList,
        "Directories of build output, written at full speed; names in them are not protected."),
    key("filesystem.executeWritten", ValueKind::Bool, Order::FalseIsTighter,
        "Whether files in writable directories may be executed, or mapped as code."),
    key("filesystem.executableDirs", ValueKind::Paths, Order::AllowList,
        "Writable directories whose files may be executed although executeWritten is false; a missing one is created."),
    limit(LimitKind::FileSize),
    limit(LimitKind::Disk),
    limit(LimitKind::Inodes),
    key("filesystem.tmpSize", ValueKind::Size, Order::Limit, "Size of the private /tmp, in bytes."),
    key("filesystem.varTmpSize", ValueKind::Size, Order::Limit, "Size of the private /var/tmp, in bytes."),

    limit(LimitKind::Processes),
    key("process.allowFork", ValueKind::Bool, Order::FalseIsTighter, "Whether new processes may be created."),
    key("process.allowExec", ValueKind::Bool, Order::FalseIsTighter,
        "Whether programs may be executed; the command's own first exec always may."),
    key("process.allowedExecutables", ValueKind::Executables, Order::Restriction,
        "The only programs that may be executed; empty allows all."),
    key("process.debug", ValueKind::Bool, Order::FalseIsTighter,
        "Whether processes of the sandbox may use ptrace and process_vm_* on each other."),
    key("process.hostname", ValueKind::Hostname, Order::Fixed, "The host name inside."),
    key("process.timeOffset", ValueKind::Seconds, Order::Fixed,
        "Seconds added to the monotonic and boot clocks."),
    // An explicit list may name variables that `inherit` would remove, so neither of the two is tighter.
    key("process.envMode", ValueKind::Word(ENV_MODES), Order::Towards("clean"),
        "Pass on the caller's environment without secrets, nothing, or only allowedEnvVars."),
    key("process.allowedEnvVars", ValueKind::EnvNames, Order::AllowList,
        "Variables passed on with envMode explicit."),
    key("process.env", ValueKind::EnvMap, Order::Fixed, "Variables set inside, whatever the mode."),
    key("process.cwd", ValueKind::Path, Order::Fixed, "The working directory inside."),
    key("process.uid", ValueKind::Id, Order::Fixed, "The user id inside."),
    key("process.gid", ValueKind::Id, Order::Fixed, "The group id inside."),
    key("process.userNamespace", ValueKind::Bool, Order::TrueIsTighter,
        "False uses Landlock and seccomp without namespaces."),

    key("network.mode", ValueKind::Word(NETWORK_MODES), Order::Ranked(&["host", "nat", "proxy", "none"]),
        "Loopback only, hosts by allow-list, any host, or the host's own network."),
    key("network.allowedHosts", ValueKind::Hosts, Order::AllowList,
        "Hosts that may be reached, such as api.example, *.example (below it), **.example (with itself), 203.0.113.0/24, each with optional ports (api.example:8443); empty allows none."),
    key("network.deniedHosts", ValueKind::Hosts, Order::DenyList,
        "Hosts that may not be reached, even if allowed elsewhere; same forms."),
    key("network.allowedPorts", ValueKind::Ports, Order::Ports,
        "Ports of allowed hosts that name none themselves; 80 and 443 if not stated, empty allows none."),
    key("network.allowedPrivate", ValueKind::PrivateRanges, Order::AllowList,
        "CIDRs of private addresses that allowed names may resolve to; needs the approval network:private."),
    key("network.allowedFor", ValueKind::Tools, Order::AllowList,
        "Allow the hosts that these tools are configured to use, such as npm, pip, cargo and git."),
    key("network.maxConnections", ValueKind::CountOrZero, Order::Limit, "Connections at any moment; 512 if not stated."),
    key("network.maxBytes", ValueKind::Size, Order::Limit, "Bytes sent and received in the whole run."),
    key("network.maxQueries", ValueKind::Count, Order::Limit, "DNS queries per second; 100 if not stated."),
    key("network.followRedirects", ValueKind::Bool, Order::FalseIsTighter,
        "Whether the explicit proxy follows redirects of plain HTTP itself; it checks each one."),
    key("network.upstreamProxy", ValueKind::Upstream, Order::Fixed,
        "A proxy for all connections, http://[USER:PASSWORD@]HOST:PORT."),
    key("network.publish", ValueKind::Published, Order::AllowList,
        "Ports of the host that are forwarded to the sandbox, [ADDRESS:]PORT:INNER; the default address is 127.0.0.1."),
    key("network.credentials", ValueKind::Credentials, Order::AllowList,
        "Secrets that are added to requests outside the sandbox; the sandbox has a placeholder."),
    key("network.intercept", ValueKind::Bool, Order::FalseIsTighter,
        "Decrypt TLS to the hosts of credentials, with a certificate authority made for the run, so that credentials can be added."),

    limit(LimitKind::CpuTime),
    limit(LimitKind::Memory),
    limit(LimitKind::MemoryHigh),
    limit(LimitKind::Swap),
    limit(LimitKind::OpenFiles),
    limit(LimitKind::Threads),
    limit(LimitKind::IoBandwidth),
    limit(LimitKind::IoOperations),
    limit(LimitKind::Cpus),
    limit(LimitKind::CpuSet),
    limit(LimitKind::WallTime),
    key("resources.grace", ValueKind::Millis, Order::Limit,
        "How long the command may take to end after it was asked to, in milliseconds; by default 10 s after a signal and 2 s at the time limit."),
    key("resources.timeToLive", ValueKind::Millis, Order::Limit,
        "How long a session may stay, in milliseconds; `sandbox extend` gives it more."),
    key("resources.idleTimeToLive", ValueKind::Millis, Order::Limit,
        "How long a session may stay without a command, in milliseconds."),
    limit(LimitKind::Output),
    key("resources.normalizeTime", ValueKind::Millis, Order::Step,
        "The duration of a run, and what is reported of it, is rounded up to a multiple of this, in milliseconds."),
    key("resources.bestEffort", ValueKind::Bool, Order::FalseIsTighter,
        "Accept limits that are only polled, where the host cannot enforce them strictly."),
    key("resources.waived", ValueKind::LimitNames, Order::AllowList,
        "Limits that may be ignored where the host cannot enforce them, by the names of their options."),

    key("syscalls.mode", ValueKind::Word(SYSCALL_MODES), Order::Ranked(&["BLACKLIST", "WHITELIST"]),
        "Whether the list names what is allowed or what is denied."),
    key("syscalls.syscalls", ValueKind::SyscallNames, Order::Syscalls,
        "WHITELIST: exactly these, or the built-in baseline if empty. BLACKLIST: denied in addition to the baseline."),
    key("syscalls.maxBlocked", ValueKind::Count, Order::Limit,
        "Suspicious attempts after which the run is stopped; calls that ordinary programs try are not counted."),

    key("audit.fileOperations", ValueKind::Word(FILE_OPERATIONS), Order::Ranked(&["off", "writes"]),
        "Which operations on files are in the audit log: none, or those that write and go through the sandbox's broker."),

    key("recording.terminal", ValueKind::Word(RECORDED), Order::Fixed,
        "Record what the command writes to its terminal, or what is typed as well while it is echoed."),
    key("recording.maxSize", ValueKind::Size, Order::Fixed, "The size of one recording, in bytes; 64 MiB if not stated."),

    key("escape.onLow", ValueKind::Word(ESCAPE_ACTIONS), BY_HARDNESS,
        "What follows an indicator of low severity: ignore, warn, kill the run, or kill it, roll back and quarantine the tool."),
    key("escape.onMedium", ValueKind::Word(ESCAPE_ACTIONS), BY_HARDNESS, "The same for medium severity."),
    key("escape.onHigh", ValueKind::Word(ESCAPE_ACTIONS), BY_HARDNESS, "The same for high severity."),
    key("escape.onCritical", ValueKind::Word(ESCAPE_ACTIONS), BY_HARDNESS, "The same for critical severity."),
    key("escape.strict", ValueKind::Bool, Order::TrueIsTighter,
        "Quarantine at the first indicator, whatever its severity."),
    key("escape.desktop", ValueKind::Bool, Order::TrueIsTighter,
        "Show a desktop notification when a run is ended for an indicator."),
    // Fixed: who chooses it is told which commands run here.
    key("escape.webhook", ValueKind::Webhook, Order::Fixed,
        "Post a JSON document there when a run is ended for an indicator: https, or http to a loopback address."),

    key("approvals", ValueKind::Approvals, Order::AllowList,
        "Approved relaxations: what, and the reason."),
];

/// The list of calls has a meaning only together with its mode, so the two are judged together.
pub(crate) fn is_syscall_rule(path: &str) -> bool {
    matches!(path, "syscalls.mode" | "syscalls.syscalls")
}

pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether `path` names a section, such as `filesystem`.
pub(crate) fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| is_within(key.path, path) && key.path != path)
}

/// Whether `path` is `section` itself or a key in it.
pub(crate) fn is_within(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The names directly below `section`, or at the top of the document if it is empty.
pub(crate) fn children(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = if section.is_empty() {
            Some(key.path)
        } else {
            key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'))
        };
        let name = rest.and_then(|rest| rest.split('.').next());
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

impl Key {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}
