//! The resolved policy: every value is decided.
//!
//! A [`Policy`] is the result of the merge and the input of `plan`. It contains no facts about the host and no
//! resolved paths: the plan expands `~` and resolves links.

pub mod network;
pub(crate) mod rule;

use network::{Credential, PublishedPort};
use palisade_hosts::{HostEntry, IpNet};
pub use rule::StoredRule;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How much stands between the command and the host (POL-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// No isolation: needs an approval, which is recorded.
    #[serde(rename = "LEVEL_0")]
    None,
    /// Own pids and mount view, seccomp, no capabilities.
    #[serde(rename = "LEVEL_1")]
    Process,
    /// Every namespace, own root, no network.
    #[serde(rename = "LEVEL_2")]
    Full,
}

/// Which tree the command sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The host's tree at its usual paths.
    Host,
    /// System directories, and the project at `/workspace`.
    Minimal,
}

/// What happens to a path nobody granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only the allow-list is in the view; the rest is asked about on first touch (GATE-1).
    Dynamic,
    /// The host's tree read-only, less the deny-list; no questions (GATE-7).
    Static,
}

/// What to do when a question would have to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnAsk {
    /// Ask in the terminal or through `sandbox approve`; if nobody can be asked, deny at once.
    Ask,
    Deny,
    Allow,
    /// Ask, and wait for somebody to come.
    Wait,
}

/// Ctrl and a key: one of the words of `askKey`, such as `ctrl-g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AskKey(u8);

impl Default for AskKey {
    fn default() -> Self {
        Self(b'g')
    }
}

impl AskKey {
    /// The key without Ctrl, a small letter or a sign.
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
    /// Egress by allow-list through the supervisor.
    Proxy,
    /// Any host, any port, private ranges blocked.
    Nat,
    /// The host's own network: needs an approval, which is recorded.
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
    /// The caller's environment, less what looks like a secret.
    Inherit,
    /// Nothing but what the sandbox sets itself and `env`.
    Clean,
    /// Only the names of `allowedEnvVars`, and `env`.
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
    /// How long a question waits for its answer, in milliseconds.
    pub ask_timeout: u64,
    /// Puts a question in the terminal aside, and brings it back.
    pub ask_key: AskKey,
    pub filesystem: Filesystem,
    pub process: Process,
    pub network: Network,
    pub resources: Resources,
    pub syscalls: Syscalls,
    /// Relaxations somebody answered for, each with its reason; they go to the report.
    pub approvals: Vec<Approval>,
}

/// A recorded yes to something weaker than the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// `no-isolation`, `bash:network`, `TOOL:no-sandbox`, `network:host`, `network:private` …
    pub what: String,
    /// In the approver's own words, or the flag that was given.
    pub reason: String,
}

/// Paths are as the user wrote them: `~`, `$HOME`-style variables and relative paths included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// A directory whose contents stand at `/`, read-only, below every other mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_path: Option<String>,
    pub read_only_paths: Vec<String>,
    pub read_write_paths: Vec<String>,
    /// Look writable; what is written is thrown away (FS-5).
    pub overlay_paths: Vec<String>,
    /// Hidden, by every alias.
    pub denied_paths: Vec<String>,
    /// What decides about paths that would otherwise be asked about, layer by layer.
    pub rules: Vec<StoredRule>,
    /// Whether the project directory (git root or working directory) is writable.
    pub project: ProjectAccess,
    /// Whether the known tool caches are granted.
    pub caches: bool,
    /// Whether the known toolchains in the home directory are granted.
    pub toolchains: bool,
    /// Whether the shipped list of secret paths is hidden.
    pub hide_secrets: bool,
    /// Whether names that the host would run later are kept from being written (FS-9).
    pub protect_names: bool,
    /// Left alone by `protect_names`, each with everything below.
    pub unprotected_paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_inodes: Option<u64>,
    /// Size of the private `/tmp`, in bytes; none leaves the kernel's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub var_tmp_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectAccess {
    ReadWrite,
    ReadOnly,
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    pub allow_fork: bool,
    /// False still permits the command's own first exec.
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
    /// Set inside, whatever the mode.
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// False asks for the Landlock and seccomp level without namespaces (PROC-7).
    pub user_namespace: bool,
}

/// Ports of allowed hosts that name none themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedPorts {
    /// 80 and 443.
    #[default]
    Usual,
    /// These, and none if the list is empty.
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
    /// Private addresses that an allowed name may stand for.
    pub allowed_private: Vec<IpNet>,
    /// Tools whose own settings say which hosts are allowed: `npm`, `pip`, `cargo`, `git`.
    pub allowed_for: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u64>,
    /// Sent and received, in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Look-ups in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queries: Option<u64>,
    pub follow_redirects: bool,
    /// `http://[USER:PASSWORD@]HOST:PORT`; printed without user and password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "network::without_login")]
    pub upstream_proxy: Option<String>,
    pub publish: Vec<PublishedPort>,
    pub credentials: Vec<Credential>,
    /// Whether TLS to the hosts of credentials is opened.
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
    /// Above this the run is slowed down and its memory reclaimed, but nobody is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<u64>,
    /// Beyond `max_memory`; where that is set and this is not, there is no swap.
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
    /// How long the command may take to end once it was asked to, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_size: Option<u64>,
    /// The step, in milliseconds, to which a run's actual and reported duration is rounded up (RES-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize_time: Option<u64>,
    /// Whether a holder that only looks now and then satisfies a limit (RES-1).
    pub best_effort: bool,
    /// Limits that may go unheld, by the names of their options: `memory`, `io-bandwidth` …
    pub waived: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Syscalls {
    pub mode: SyscallMode,
    /// With WHITELIST: exactly these, or the shipped baseline if empty. With BLACKLIST: denied
    /// beyond what is always denied.
    pub syscalls: Vec<String>,
    /// Suspicious attempts after which the sandbox is ended; none sets no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocked: Option<u64>,
}
