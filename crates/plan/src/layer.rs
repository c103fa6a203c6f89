//! Layers and promises: which mechanism enforces what. Plan, report and tests use the same names.

use serde::{Deserialize, Serialize};

/// The enum, the list of all its variants and their names, from one list.
macro_rules! layers {
    ($($(#[$about:meta])* $layer:ident = $name:literal,)+) => {
        /// A mechanism that can be named, observed and, in test builds only, switched off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Layer {
            $($(#[$about])* #[serde(rename = $name)] $layer,)+
        }

        impl Layer {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$layer),+];

            /// The name that plan, report and tests use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$layer => $name,)+
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|layer| layer.name() == name)
            }
        }
    };
}

layers! {
    /// Only granted paths are in the sandbox's root.
    MountView = "mount-view",
    /// Mounts that are not granted for writing are read-only.
    ReadOnlyMounts = "read-only-mounts",
    /// Mounts have `nosuid` and `nodev`.
    MountFlags = "mount-flags",
    /// Mounts from which nothing may be executed have `noexec`.
    NoexecMounts = "noexec-mounts",
    /// An own `/proc` with its dangerous parts sealed.
    PrivateProc = "private-proc",
    /// An own `/dev` with a few harmless nodes, and an own devpts.
    MinimalDev = "minimal-dev",
    PidNamespace = "pid-namespace",
    NetNamespace = "net-namespace",
    IpcNamespace = "ipc-namespace",
    UtsNamespace = "uts-namespace",
    /// The command's id on the host is not root's.
    Identity = "identity",
    Capabilities = "capabilities",
    NoNewPrivs = "no-new-privs",
    Seccomp = "seccomp",
    Landlock = "landlock",
    /// A broker judges writes to the host's files by name, and carries them out.
    Guard = "guard",
    /// Our pid 1 and the supervisor cannot be traced, and their memory cannot be read.
    UndumpableInit = "undumpable-init",
    /// Descriptors are closed before the command starts.
    ClosedDescriptors = "closed-descriptors",
    /// An own session and pty.
    OwnSession = "own-session",
    /// Secrets are removed from the environment.
    EnvScrub = "env-scrub",
    /// The process checks its own confinement before the command starts.
    SelfCheck = "self-check",
    /// Limits and a CPU mask, set on the process itself.
    Rlimits = "rlimits",
    /// A control group for the run.
    Cgroup = "cgroup",
    /// File systems of the run with a fixed size.
    SizedFiles = "sized-files",
    /// The supervisor enforces a deadline.
    Timer = "timer",
    /// The supervisor polls resource usage.
    Watchdog = "watchdog",
    /// The supervisor passes on the command's output up to a limit.
    OutputCap = "output-cap",
    /// A permission for a process does not apply to another one that gets the same pid.
    KnownCallers = "known-callers",
    /// The number of open questions is limited to what a user can review.
    BoundedQuestions = "bounded-questions",
    /// Names from the sandbox are escaped before they are displayed.
    EscapedText = "escaped-text",
    /// Each kind of event has its own budget in the audit log: a flood of one kind cannot hide others.
    AuditBudgets = "audit-budgets",
    /// What a transaction brings to the host loses its privileges, and is refused where it leads out of the project.
    ReviewedChanges = "reviewed-changes",
    /// A question is drawn on a terminal in a known state, in distinct colours.
    KnownTerminal = "known-terminal",
    /// A key press answers only a question that was visible before.
    ArmedKeys = "armed-keys",
    /// Credentials are removed from the settings that are copied into the sandbox.
    FilteredSettings = "filtered-settings",
    /// Rules decide about host names and ports: connections, DNS queries, redirects.
    EgressRules = "egress-rules",
    /// Addresses are checked as well, whether names resolve to them or they are used directly.
    AddressCheck = "address-check",
    /// The host names in TLS and HTTP must match the requested one.
    NamesAgree = "names-agree",
    /// A request that could be parsed in two ways is refused.
    StrictHttp = "strict-http",
    /// The number of connections and the time they may take are limited.
    BoundedConnections = "bounded-connections",
    /// Every connection on every port goes to the egress process; other packets are refused and counted.
    PacketRules = "packet-rules",
}

/// How firmly a promise is enforced on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// The kernel refuses.
    Enforced,
    /// Helps, but can be circumvented; the text says how.
    Advisory,
    /// Not enforced: disabled by choice, or not available on this host.
    Absent,
}

/// A promise of the product, and what enforces it in this run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Promise {
    /// Requirement id, such as `FS-1`.
    pub id: &'static str,
    pub what: &'static str,
    pub strength: Strength,
    /// The layers that enforce it together: each enforces a part, or backs up another one.
    pub layers: Vec<Layer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}
