//! Layers and promises: which mechanism enforces what. Plan, report and tests use the same names.

use serde::{Deserialize, Serialize};

/// A mechanism that can be named, observed and, in test builds only, switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Only granted paths are in the sandbox's root.
    MountView,
    /// Mounts that are not granted for writing are read-only.
    ReadOnlyMounts,
    /// Mounts have `nosuid` and `nodev`.
    MountFlags,
    /// An own `/proc` with its dangerous parts sealed.
    PrivateProc,
    /// An own `/dev` with a few harmless nodes, and an own devpts.
    MinimalDev,
    PidNamespace,
    NetNamespace,
    IpcNamespace,
    UtsNamespace,
    /// The command's id on the host is not root's.
    Identity,
    Capabilities,
    NoNewPrivs,
    Seccomp,
    Landlock,
    /// A broker judges writes to the host's files by name, and carries them out.
    Guard,
    /// Our pid 1 and the supervisor cannot be traced, and their memory cannot be read.
    UndumpableInit,
    /// Descriptors are closed before the command starts.
    ClosedDescriptors,
    /// An own session and pty.
    OwnSession,
    /// Secrets are removed from the environment.
    EnvScrub,
    /// The process checks its own confinement before the command starts.
    SelfCheck,
    /// Limits and a CPU mask, set on the process itself.
    Rlimits,
    /// A control group for the run.
    Cgroup,
    /// File systems of the run with a fixed size.
    SizedFiles,
    /// The supervisor enforces a deadline.
    Timer,
    /// The supervisor polls resource usage.
    Watchdog,
    /// The supervisor passes on the command's output up to a limit.
    OutputCap,
    /// A permission for a process does not apply to another one that gets the same pid.
    KnownCallers,
    /// The number of open questions is limited to what a user can review.
    BoundedQuestions,
    /// Names from the sandbox are escaped before they are displayed.
    EscapedText,
    /// Each kind of event has its own budget in the audit log: a flood of one kind cannot hide others.
    AuditBudgets,
    /// A question is drawn on a terminal in a known state, in distinct colours.
    KnownTerminal,
    /// A key press answers only a question that was visible before.
    ArmedKeys,
    /// Credentials are removed from the settings that are copied into the sandbox.
    FilteredSettings,
    /// Rules decide about host names and ports: connections, DNS queries, redirects.
    EgressRules,
    /// Addresses are checked as well, whether names resolve to them or they are used directly.
    AddressCheck,
    /// The host names in TLS and HTTP must match the requested one.
    NamesAgree,
    /// A request that could be parsed in two ways is refused.
    StrictHttp,
    /// The number of connections and the time they may take are limited.
    BoundedConnections,
    /// Every connection on every port goes to the egress process; other packets are refused and counted.
    PacketRules,
}

impl Layer {
    pub const ALL: [Self; 39] = [
        Self::MountView,
        Self::ReadOnlyMounts,
        Self::MountFlags,
        Self::PrivateProc,
        Self::MinimalDev,
        Self::PidNamespace,
        Self::NetNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::Identity,
        Self::Capabilities,
        Self::NoNewPrivs,
        Self::Seccomp,
        Self::Landlock,
        Self::Guard,
        Self::UndumpableInit,
        Self::ClosedDescriptors,
        Self::OwnSession,
        Self::EnvScrub,
        Self::SelfCheck,
        Self::Rlimits,
        Self::Cgroup,
        Self::SizedFiles,
        Self::Timer,
        Self::Watchdog,
        Self::OutputCap,
        Self::KnownCallers,
        Self::BoundedQuestions,
        Self::EscapedText,
        Self::AuditBudgets,
        Self::KnownTerminal,
        Self::ArmedKeys,
        Self::FilteredSettings,
        Self::EgressRules,
        Self::AddressCheck,
        Self::NamesAgree,
        Self::StrictHttp,
        Self::BoundedConnections,
        Self::PacketRules,
    ];

    /// The name that plan, report and tests use.
    pub fn name(self) -> &'static str {
        match self {
            Self::MountView => "mount-view",
            Self::ReadOnlyMounts => "read-only-mounts",
            Self::MountFlags => "mount-flags",
            Self::PrivateProc => "private-proc",
            Self::MinimalDev => "minimal-dev",
            Self::PidNamespace => "pid-namespace",
            Self::NetNamespace => "net-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::Identity => "identity",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivs => "no-new-privs",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::Guard => "guard",
            Self::UndumpableInit => "undumpable-init",
            Self::ClosedDescriptors => "closed-descriptors",
            Self::OwnSession => "own-session",
            Self::EnvScrub => "env-scrub",
            Self::SelfCheck => "self-check",
            Self::Rlimits => "rlimits",
            Self::Cgroup => "cgroup",
            Self::SizedFiles => "sized-files",
            Self::Timer => "timer",
            Self::Watchdog => "watchdog",
            Self::OutputCap => "output-cap",
            Self::KnownCallers => "known-callers",
            Self::BoundedQuestions => "bounded-questions",
            Self::EscapedText => "escaped-text",
            Self::AuditBudgets => "audit-budgets",
            Self::KnownTerminal => "known-terminal",
            Self::ArmedKeys => "armed-keys",
            Self::FilteredSettings => "filtered-settings",
            Self::EgressRules => "egress-rules",
            Self::AddressCheck => "address-check",
            Self::NamesAgree => "names-agree",
            Self::StrictHttp => "strict-http",
            Self::BoundedConnections => "bounded-connections",
            Self::PacketRules => "packet-rules",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }
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
