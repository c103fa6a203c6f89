//! The resolved policy, in which every key has its final value.
//!
//! A [`Policy`] is the result of the merge and the input of `plan`. It contains no facts about the host and no
//! resolved paths: the plan expands `~` and resolves links.

pub mod escape;
pub mod network;
pub(crate) mod rule;

pub use escape::{Escape, EscapeAction};
use network::{Credential, PublishedPort};
use palisade_hosts::{HostEntry, IpNet};
pub use rule::StoredRule;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How strongly the command is isolated from the host (POL-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// No isolation. Needs an approval, which is recorded.
    #[serde(rename = "LEVEL_0")]
    None,
    /// Own pids and mount view, seccomp, no capabilities.
    #[serde(rename = "LEVEL_1")]
    Process,
    /// Every namespace, an own root, no network.
    #[serde(rename = "LEVEL_2")]
    Full,
}

/// The file tree that the command sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The host's tree at its usual paths.
    Host,
    /// System directories, and the project at `/workspace`.
    Minimal,
    /// What the caller lists entry by entry (`sandbox bwrap`). No document says so.
    Listed,
}

/// What happens to a path that is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only granted paths are in the view; the user is asked about others on first use (GATE-1).
    Dynamic,
    /// The host's tree, read-only, without the denied paths; no questions (GATE-7).
    Static,
}

/// What notices the first use of a path that is not granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateChoice {
    /// What suits the host.
    #[default]
    Auto,
    /// A file system, served outside, is where granted trees are mounted.
    Fuse,
    /// The system call filter notifies every call that names a path.
    Notify,
}

/// What to do when the user would have to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnAsk {
    /// Ask in the terminal or through `sandbox approve`; if nobody can be asked, deny at once.
    Ask,
    Deny,
    Allow,
    /// Ask, and wait until somebody can answer.
    Wait,
}

/// Ctrl and a key, as written in `askKey`, such as `ctrl-g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AskKey(u8);

impl Default for AskKey {
    fn default() -> Self {
        Self(b'g')
    }
}

impl AskKey {
    /// The key without Ctrl: a lower-case letter or `]`.
    pub fn letter(self) -> u8 {
        self.0
    }
}

impl TryFrom<String> for AskKey {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.strip_prefix("ctrl-").map(str::as_bytes) {
            Some([letter @ (b'a'..=b'z' | b']')]) => Ok(Self(*letter)),
            _ => Err(format!("{word} is not a key such as ctrl-g")),
        }
    }
}

impl From<AskKey> for String {
    fn from(key: AskKey) -> Self {
        key.to_string()
    }
}

impl std::fmt::Display for AskKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ctrl-{}", char::from(self.0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Own network namespace, loopback only.
    None,
    /// Only allowed hosts, through a proxy outside the sandbox.
    Proxy,
    /// Any host and port; private ranges are blocked.
    Nat,
    /// The host's own network. Needs an approval, which is recorded.
    Host,
}

impl NetworkMode {
    /// As policies and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Proxy => "proxy",
            Self::Nat => "nat",
            Self::Host => "host",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvMode {
    /// The caller's environment without what looks like a secret.
    Inherit,
    /// Only `env` and what the sandbox sets itself.
    Clean,
    /// Only the variables in `allowedEnvVars`, and `env`.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SyscallMode {
    Whitelist,
    Blacklist,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub isolation_level: Level,
    pub view: View,
    pub mode: Mode,
    pub on_ask: OnAsk,
    /// How long a question waits for an answer, in milliseconds.
    pub ask_timeout: u64,
    /// Hides a question in the terminal and shows it again.
    pub ask_key: AskKey,
    /// What notices the first use of a path.
    pub gate: GateChoice,
    pub filesystem: Filesystem,
    pub process: Process,
    pub network: Network,
    pub resources: Resources,
    pub syscalls: Syscalls,
    pub audit: Audit,
    pub recording: Recording,
    pub escape: Escape,
    /// Approved relaxations, each with its reason. The report lists them.
    pub approvals: Vec<Approval>,
}

/// What the audit log has besides what it always has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    pub file_operations: FileOperations,
}

/// Which operations on files are recorded (AUD-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOperations {
    #[default]
    Off,
    /// Those that write, as far as they go through us.
    Writes,
}

/// Whether terminals are recorded (LIFE-6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    pub terminal: RecordedStreams,
    /// Of one file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedStreams {
    #[default]
    Off,
    Output,
    /// What is typed as well, while it is echoed.
    Input,
}

/// A recorded approval of something weaker than the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// `no-isolation`, `bash:network`, `TOOL:no-sandbox`, `network:host`, `network:private` …
    pub what: String,
    /// In the approver's own words, or the flag that was given.
    pub reason: String,
}

/// Paths are as the user wrote them, including `~`, variables such as `$HOME`, and relative paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// A directory whose contents appear at `/`, read-only, below all other mounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_path: Option<String>,
    pub read_only_paths: Vec<String>,
    pub read_write_paths: Vec<String>,
    /// Look writable; changes are discarded (FS-5).
    pub overlay_paths: Vec<String>,
    /// Hidden, under every alias.
    pub denied_paths: Vec<String>,
    /// Decide about paths that the user would otherwise be asked about, layer by layer.
    pub rules: Vec<StoredRule>,
    /// Access to the project directory (git root or working directory).
    pub project: ProjectAccess,
    /// How the changes of a transaction are kept apart.
    pub transaction_by: TransactionBy,
    /// Whether the state of a transaction is kept before each command of a session (LIFE-5).
    pub checkpoint_each_command: bool,
    /// What becomes of a transaction whose session's time to live is over (LIFE-4).
    pub on_expiry: OnExpiry,
    /// Where the known tool caches are written.
    pub caches: CacheAccess,
    /// How much the sandboxes of all projects may keep in caches of their own, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_size: Option<u64>,
    /// Whether the known toolchains in the home directory are granted.
    pub toolchains: bool,
    /// Whether the shipped list of secret paths is hidden.
    pub hide_secrets: bool,
    /// Whether files that the host would run later are protected against writing (FS-9).
    pub protect_names: bool,
    /// Not protected by `protect_names`, each with everything below.
    pub unprotected_paths: Vec<String>,
    /// Directories that only hold build output: written without the broker, so names in them are not protected.
    pub build_dirs: Vec<String>,
    /// Whether files may be executed that the command can write.
    pub execute_written: bool,
    /// Directories in which that is possible although `execute_written` is false.
    pub executable_dirs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_inodes: Option<u64>,
    /// Size of the private `/tmp`, in bytes; `None` means the kernel's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub var_tmp_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectAccess {
    ReadWrite,
    /// Changes are kept apart, and applied at the end if the command ended well.
    TransactionAuto,
    /// Changes are kept apart until somebody applies or discards them (LIFE-2).
    Transaction,
    ReadOnly,
    None,
}

impl ProjectAccess {
    /// Whether the host's files stay as they are until changes are applied.
    pub fn is_transaction(self) -> bool {
        matches!(self, Self::Transaction | Self::TransactionAuto)
    }
}

/// How a transaction keeps the host's files as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionBy {
    /// By an overlay, or by a copy where the kernel mounts none.
    Auto,
    Overlay,
    /// The command works in a copy of the project.
    Copy,
}

/// What becomes of changes that nobody has applied when a session's time to live is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExpiry {
    Keep,
    Discard,
}

/// The caches of build tools and package managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheAccess {
    /// The host's are written. What a command puts there, a later build outside uses.
    Host,
    /// The host's are read; what is written is kept for later sandboxes of the same project.
    Own,
    /// Empty at the start of each run, and thrown away.
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    pub allow_fork: bool,
    /// If false, the command's own first exec is still allowed.
    pub allow_exec: bool,
    pub allowed_executables: Vec<String>,
    /// ptrace and process_vm_* among the sandbox's own processes (PROC-5).
    pub debug: bool,
    pub hostname: String,
    /// Seconds added to the monotonic and boot clocks in a time namespace (PROC-4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_offset: Option<i64>,
    pub env_mode: EnvMode,
    pub allowed_env_vars: Vec<String>,
    /// Set in the sandbox, whatever the mode.
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// False selects Landlock and seccomp without namespaces (PROC-7).
    pub user_namespace: bool,
}

/// The ports of allowed hosts that name none themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedPorts {
    /// 80 and 443.
    #[default]
    Usual,
    /// Only these; none if the list is empty.
    Only(Vec<u16>),
}

impl AllowedPorts {
    fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    pub mode: NetworkMode,
    pub allowed_hosts: Vec<HostEntry>,
    pub denied_hosts: Vec<HostEntry>,
    #[serde(default, skip_serializing_if = "AllowedPorts::is_usual")]
    pub allowed_ports: AllowedPorts,
    /// Private addresses that allowed names may resolve to.
    pub allowed_private: Vec<IpNet>,
    /// Tools whose own settings determine which hosts are allowed: `npm`, `pip`, `cargo`, `git`.
    pub allowed_for: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u64>,
    /// Bytes sent and received in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// DNS queries per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queries: Option<u64>,
    pub follow_redirects: bool,
    /// `http://[USER:PASSWORD@]HOST:PORT`; serialized without user and password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "network::without_login")]
    pub upstream_proxy: Option<String>,
    pub publish: Vec<PublishedPort>,
    pub credentials: Vec<Credential>,
    /// Whether TLS to the hosts of credentials is decrypted.
    pub intercept: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// CPU time in milliseconds.
    #[serde(rename = "maxCPU", skip_serializing_if = "Option::is_none")]
    pub max_cpu: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<u64>,
    /// Above this the run is slowed down and its memory reclaimed, but nothing is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<u64>,
    /// In addition to `max_memory`. If that is set and this is not, there is no swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_swap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_descriptors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<u64>,
    #[serde(rename = "maxIOBandwidth", skip_serializing_if = "Option::is_none")]
    pub max_io_bandwidth: Option<u64>,
    #[serde(rename = "maxIOPS", skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// CPUs, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milli_cpus: Option<u64>,
    /// The only CPUs that may be used, by number; never empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_set: Option<BTreeSet<u32>>,
    /// Wall time in milliseconds (exit 124).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// How long the command may take to end after it was asked to, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<u64>,
    /// How long a session may stay, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<u64>,
    /// How long a session may stay without a command, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_time_to_live: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_size: Option<u64>,
    /// The step, in milliseconds, to which a run's actual and reported duration is rounded up (RES-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize_time: Option<u64>,
    /// Whether polling is enough to enforce a limit (RES-1).
    pub best_effort: bool,
    /// Limits that need not be enforced, by the names of their options: `memory`, `io-bandwidth` …
    pub waived: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Syscalls {
    pub mode: SyscallMode,
    /// WHITELIST: exactly these, or the built-in baseline if empty. BLACKLIST: denied in addition to what is
    /// always denied.
    pub syscalls: Vec<String>,
    /// Suspicious attempts after which the run is stopped; `None` means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocked: Option<u64>,
}
