//! Layers and promises: which mechanism enforces what, in the same words in plan, report and tests.

use serde::{Deserialize, Serialize};

/// A mechanism that can be named, observed and, in test builds only, switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Only granted paths are in the sandbox's root.
    MountView,
    /// Mounts that are not granted for writing are read-only.
    ReadOnlyMounts,
    /// Mounts carry `nosuid` and `nodev`.
    MountFlags,
    /// Own `/proc` with its dangerous parts sealed.
    PrivateProc,
    /// Own `/dev` with the few harmless nodes, own devpts.
    MinimalDev,
    PidNamespace,
    NetNamespace,
    IpcNamespace,
    UtsNamespace,
    /// The workload's host id is not root.
    Identity,
    Capabilities,
    NoNewPrivs,
    Seccomp,
    Landlock,
    /// What is written to the host's files is judged by name, and done by a broker.
    Guard,
    /// Neither our own pid 1 nor the supervisor can be traced or read.
    UndumpableInit,
    /// Descriptors are closed before the command starts.
    ClosedDescriptors,
    /// Own session, own pty.
    OwnSession,
    /// Secrets are taken out of the environment.
    EnvScrub,
    /// The child's own check before the command starts.
    SelfCheck,
    /// Limits, and a mask of CPUs, set on the process itself.
    Rlimits,
    /// A control group of the run's own.
    Cgroup,
    /// File systems of the run's own that hold no more than they are given.
    SizedFiles,
    /// The supervisor watches a clock.
    Timer,
    /// It looks now and then what is used.
    Watchdog,
    /// It stands between the command and who reads its output.
    OutputCap,
    /// What was allowed to a process is not another's that gets its number.
    KnownCallers,
    /// No more questions are open at once than a person could look through.
    BoundedQuestions,
    /// Names from inside are spelt out before a person sees them.
    EscapedText,
    /// Each kind of event has its own room in the audit log: a flood of one hides no other.
    AuditBudgets,
    /// A question is drawn on a terminal in a known state, in colours of its own.
    KnownTerminal,
    /// A key answers only a question that could be read before it was pressed.
    ArmedKeys,
    /// Credentials are left out of the settings that are carried in.
    FilteredSettings,
    /// Names and ports on the way out are judged by rules: connections, look-ups, redirects.
    EgressRules,
    /// Addresses that names stand for, or that are given themselves, are judged too.
    AddressCheck,
    /// What TLS and HTTP call the host must be what was asked for.
    NamesAgree,
    /// A request that two programs could read in two ways is refused.
    StrictHttp,
    /// No more connections at once, and none slower, than others can live with.
    BoundedConnections,
    /// Every connection on every port comes to the egress process, and other packets are refused and counted.
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

/// How firmly a promise is kept on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// The kernel refuses.
    Enforced,
    /// Helps, and can be got around; the text says how.
    Advisory,
    /// Not kept: given up by choice or missing on this host.
    Absent,
}

/// A promise of the product and what keeps it in this run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Promise {
    /// Requirement id, such as `FS-1`.
    pub id: &'static str,
    pub what: &'static str,
    pub strength: Strength,
    /// What holds it together: each layer holds a part of it, or stands behind another one.
    pub layers: Vec<Layer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}
