//! The plan: everything `launch` will do, decided and printable.
//!
//! Pure data. `launch` takes no decision of its own: what is not here does not happen, and what is
//! here happens or the run stops.

mod egress;
mod mount_op;
mod probe;
mod project;
mod seccomp_summary;

use crate::layer::Promise;
pub use crate::limit::{Grace, Resource, Rlimit, Scratch, Watch};
use crate::limit::{Group, Limit};
pub use egress::{
    Checks, CredentialPlan, CredentialSource, Egress, NatHelper, NatPlan, OnUnknown, ProxyPlan,
    Publish,
};
pub(crate) use mount_op::READ_ONLY;
pub use mount_op::{MountAccess, MountOp, NodeKind};
use palisade_bpf::{FilterSpec, Profile};
use palisade_guard::GuardedPath;
use palisade_policy::model::{Approval, AskKey, Level, Mode, NetworkMode, OnAsk, View};
pub use probe::Probe;
pub use project::{FoundBy, Located};
pub(crate) use seccomp_summary::summary;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One run, from the first mount to the last limit. As JSON it is flat: what reads it does not depend on who
/// carries a part of it out.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub session: String,
    #[serde(flatten)]
    pub explanation: Explanation,
    pub command: Command,
    #[serde(flatten)]
    pub sandbox: SandboxPlan,
    #[serde(flatten)]
    pub supervision: Supervision,
}

/// The walls, which stand for as long as the sandbox does, whatever runs in it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPlan {
    /// Whether commands come one after another, or one comes and ends it.
    #[serde(skip_serializing_if = "SandboxLifetime::is_one_command")]
    pub lifetime: SandboxLifetime,
    pub network: NetworkMode,
    /// Missing directories that were granted for writing: made before the launch, as the caller.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub create_dirs: Vec<PathBuf>,
    pub confinement: Confinement,
    /// The control group, where a limit needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Set on every command, in this order.
    pub rlimits: Vec<Rlimit>,
    /// The only CPUs commands run on, where no group says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Vec<u32>>,
    /// One file system behind all that the run has for itself, where the sum of it is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Scratch>,
    /// Where the host has it and the policy wants it; see `promises`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock: Option<Landlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// Where something of the host can be written and the policy wants it; see `promises`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Where paths outside the view are asked about. Otherwise they are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// The way out of the sandbox's own network, in modes that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Ways in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<Publish>,
    /// What the child tries before the command starts; any other outcome stops the run (ESC-2).
    pub self_check: Vec<Probe>,
    /// Small switches of the launcher, each a layer of its own.
    pub hardening: Hardening,
}

/// For how long a sandbox stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLifetime {
    /// As long as the command it was made for.
    #[default]
    OneCommand,
    /// Until its supervisor ends it. Every command comes from the spawner; see [`crate::lifetime`].
    UntilEnded,
}

impl SandboxLifetime {
    fn is_one_command(&self) -> bool {
        *self == Self::OneCommand
    }
}

/// What the supervisor does while commands run: whom it asks, what it limits, when it ends them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Supervision {
    pub on_ask: OnAsk,
    /// Puts a question in the terminal aside, and brings it back.
    pub ask_key: AskKey,
    /// Every limit of the run, and what enforces it.
    pub limits: Vec<Limit>,
    /// What the supervisor has to look after by itself.
    pub watch: Watch,
    /// Wall time after which the command is asked to end; the exit code is 124.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub grace: Grace,
    /// Bytes of each of the command's outputs that its reader gets: their beginning and their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The run takes a multiple of this time, and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize_ms: Option<u64>,
    pub approvals: Vec<Approval>,
}

/// What people are told about the run. Nothing is enforced by it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub level: Level,
    pub view: View,
    pub mode: Mode,
    #[serde(skip)]
    pub project: Located,
    /// Variables that the policy sets, with their values where those are no secrets.
    #[serde(skip)]
    pub set_variables: Vec<String>,
    /// Names of variables that are not passed on because they look like secrets.
    #[serde(skip)]
    pub withheld_variables: Vec<String>,
    /// For every promise, which layers enforce it here and how strictly.
    pub promises: Vec<Promise>,
    /// What a person should know: relaxations, things left out, things that behave otherwise.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Whether there is a network of the run's own, and it leads nowhere.
    pub fn is_offline(&self) -> bool {
        let is_own = matches!(&self.sandbox.confinement, Confinement::Namespaces(inside) if inside.namespaces.net);
        is_own && self.sandbox.network == NetworkMode::None
    }
}

/// Something a person might not expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    pub text: String,
    pub weight: Weight,
}

impl Note {
    pub(crate) fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self { text: text.into(), weight }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// True of every run with the defaults: said each time, it would only teach people not to read.
    Routine,
    /// About the mode: worth saying to somebody who chose one.
    OfMode,
    Important,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// As typed; `argv[0]` is looked up in the sandbox's own `PATH`.
    #[serde(serialize_with = "crate::text::os_strings")]
    pub argv: Vec<OsString>,
    #[serde(serialize_with = "crate::text::path")]
    pub cwd: PathBuf,
    #[serde(serialize_with = "crate::text::os_pairs")]
    pub env: Vec<(OsString, OsString)>,
}

/// How the command is kept in.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Confinement {
    /// LEVEL_0: the command is not isolated from the host.
    None,
    /// Landlock and seccomp alone, for hosts without user namespaces.
    NoNamespaces,
    /// Own namespaces and own root.
    Namespaces(Box<Namespaced>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespaced {
    pub namespaces: Namespaces,
    pub identity: Identity,
    /// In this order; a later one may stand on an earlier one.
    pub mounts: Vec<MountOp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Whether to bring up `lo` in the new network namespace.
    pub loopback: bool,
    /// Settings of the new network namespace: names below `/proc/sys/net`, and values. Where the host lets nobody
    /// write there, as in some containers, they stay as the kernel has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_settings: Vec<(&'static str, String)>,
    /// The home directory, where it is one of the run's own: a tmpfs among the mounts.
    #[serde(skip)]
    pub private_home: Option<PathBuf>,
}

/// The user namespace is always new.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespaces {
    pub mount: bool,
    pub pid: bool,
    pub net: bool,
    pub uts: bool,
    pub ipc: bool,
    pub cgroup: bool,
    /// Seconds added to the monotonic and boot clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_offset: Option<i64>,
}

impl Namespaces {
    /// Every kind by its name, and whether the run has one of its own.
    pub fn by_name(&self) -> [(&'static str, bool); 8] {
        [
            ("user", true),
            ("mount", self.mount),
            ("pid", self.pid),
            ("net", self.net),
            ("uts", self.uts),
            ("ipc", self.ipc),
            ("cgroup", self.cgroup),
            ("time", self.time_offset.is_some()),
        ]
    }
}

/// Who the command is, inside and as the host sees it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub inside_uid: u32,
    pub inside_gid: u32,
    pub host_uid: u32,
    pub host_gid: u32,
    pub mapping: IdMapping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdMapping {
    /// An ordinary user maps its own id, from inside.
    OwnId,
    /// Root hands the child an id that is not root, from outside.
    ByRoot,
}

/// The on-disk owner that appears as the command's own id through an id-mapped mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// The second floor below the mount view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Landlock {
    /// The host's ABI, at least 1.
    pub abi: u32,
    /// Whether reading and executing are restricted too, or writing only.
    pub restrict_reads: bool,
    /// Whether truncating by path counts as writing, where the kernel knows it as such (ABI 3).
    pub refuse_truncation: bool,
    /// Trees (or files) that may be read, and executed with [`Execution::Readable`]; only if `restrict_reads`.
    #[serde(serialize_with = "crate::text::paths")]
    pub readable: Vec<PathBuf>,
    /// Trees (or files) that may be written.
    #[serde(serialize_with = "crate::text::paths")]
    pub writable: Vec<PathBuf>,
    /// Trees (or files) where the command itself may only remove, and read where reading is
    /// restricted: everything else there is done for it by the broker.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub guarded: Vec<PathBuf>,
    /// Device nodes and terminals that may be written and controlled by ioctl.
    #[serde(serialize_with = "crate::text::paths")]
    pub devices: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Execution::is_readable")]
    pub executables: Execution,
    /// Refuse TCP bind and connect (ABI 4), for runs without a network namespace.
    pub refuse_tcp: bool,
    /// Refuse abstract sockets and signals that leave the sandbox (ABI 6).
    pub scope: bool,
}

/// Which files may be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Execution {
    /// Every file that can be read.
    Readable,
    /// The programs on the policy's list, and no others.
    Listed(Executables),
}

impl Execution {
    fn is_readable(&self) -> bool {
        *self == Self::Readable
    }

    pub fn listed(&self) -> Option<&Executables> {
        match self {
            Self::Readable => None,
            Self::Listed(executables) => Some(executables),
        }
    }
}

/// The programs that may be executed (PROC-2), by their paths inside, with no link in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Executables {
    /// Files, and directories with everything below.
    #[serde(serialize_with = "crate::text::paths")]
    pub listed: Vec<PathBuf>,
    /// Loaders and interpreters without which those cannot start.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<PathBuf>,
    /// What of all that can be made to run something else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Detour>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detour {
    pub kind: DetourKind,
    #[serde(serialize_with = "crate::text::path")]
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DetourKind {
    /// Maps and starts the file it is told to.
    Loader,
    /// Runs what it reads.
    Interpreter,
    /// Its content can be replaced from inside.
    Writable,
}

/// Where names are judged before they are written (FS-9). Paths are those inside; a path belongs to
/// the longest of `trees`, `islands` and `surroundings` that it starts with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// Writable directories and files of the host.
    #[serde(serialize_with = "crate::text::paths")]
    pub trees: Vec<PathBuf>,
    /// Mounts in a tree that are not of it: nothing is judged there.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub islands: Vec<PathBuf>,
    /// Writable places of the run's own that hold a tree. Nothing is judged there either, but Landlock
    /// counts by directory: a right given here would hold in the tree too.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub surroundings: Vec<PathBuf>,
    /// Home directories that a tree lies in or covers.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<PathBuf>,
    /// Trees that are package caches.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<PathBuf>,
    /// Left alone, each with everything below.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<PathBuf>,
    /// Guarded in this run beyond the shipped names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<GuardedPath>,
    /// Directories of which only parts are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<PartlyWritable>,
    /// Relative values of `core.hooksPath`: in every directory that shares the repository's settings they mean another one.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<PathBuf>,
}

/// A directory of which only parts are written: the repository that a worktree belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartlyWritable {
    #[serde(serialize_with = "crate::text::path")]
    pub directory: PathBuf,
    /// Below it, each with everything in it.
    #[serde(serialize_with = "crate::text::paths")]
    pub parts: Vec<PathBuf>,
}

impl PartlyWritable {
    /// Whether nothing is said against writing `path`.
    pub fn covers(&self, path: &Path) -> bool {
        path.strip_prefix(&self.directory)
            .map_or(true, |below| self.parts.iter().any(|part| below.starts_with(part)))
    }
}

/// Where a path that is missing inside may be asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Mounts of our own scaffolding: the root, a private home directory, frames.
    #[serde(serialize_with = "crate::text::paths")]
    pub grounds: Vec<PathBuf>,
    /// Never asked about, each with everything below.
    #[serde(serialize_with = "crate::text::paths")]
    pub never: Vec<PathBuf>,
    /// Asked about in red, one file at a time, each with everything below.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<PathBuf>,
    /// Where the shipped names of secrets count; empty where secrets are files like others.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<PathBuf>,
    /// What the view is made of: no tree is put over one of these.
    #[serde(serialize_with = "crate::text::paths")]
    pub mounted: Vec<PathBuf>,
    /// The directories above the project: what tools look for there on their own is absent, and not asked about.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub above_project: Vec<PathBuf>,
    /// What tools leave in every home for themselves: absent unless it is granted, and not asked about.
    pub left_by_tools: Vec<PathBuf>,
    /// The home directory, where it is the run's own.
    #[serde(serialize_with = "crate::text::maybe_path", skip_serializing_if = "Option::is_none")]
    pub private_home: Option<PathBuf>,
    /// Directories that the plan makes: what is missing in one was not granted. In others of the private home the
    /// command has what it made itself.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// Whether programs are asked about too; not where the policy says which may start.
    pub executes: bool,
    pub on_ask: OnAsk,
    pub ask_timeout_ms: u64,
    /// Open at once.
    pub most_questions: usize,
    /// Whether who was allowed something once is known by more than a number, which another may get.
    pub known_callers: bool,
}

/// How something on the host is asked about.
///
/// The worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nature {
    Ordinary,
    Secret,
    Never,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seccomp {
    /// `baseline`, or how the policy changed it.
    pub profile: String,
    /// Suspicious attempts after which the sandbox is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocked: Option<u64>,
    /// What the filter was made from; it explains each call. Told by groups, and only when somebody looks: to
    /// put it together costs more than to compile the filter.
    #[serde(rename = "summary", serialize_with = "seccomp_summary::by_groups")]
    pub rules: Profile,
    /// For the command. Compiled where it is installed: that process would only wait meanwhile.
    #[serde(skip)]
    pub filter: FilterSpec,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeccompGroup {
    pub name: &'static str,
    pub decision: &'static str,
    pub reason: &'static str,
    pub syscalls: usize,
}

/// Each layer that is a single call in the launcher.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardening {
    pub no_new_privs: bool,
    pub drop_capabilities: bool,
    /// Neither our own pid 1 nor the supervisor can be traced, nor their `/proc` entries opened
    /// (CVE-2019-5736).
    pub init_undumpable: bool,
    /// Nothing but stdin, stdout and stderr reaches the command (CVE-2024-21626).
    pub close_descriptors: bool,
    /// The command never holds the caller's controlling terminal (CVE-2017-5226).
    pub own_session: bool,
    /// Every mount is `nosuid` and `nodev`.
    pub mount_flags: bool,
    /// What the host mounts later does not show inside, nor the reverse.
    pub private_mounts: bool,
    /// Names from inside are spelt out before a person sees them.
    pub escaped_text: bool,
    /// Each kind of event has its own room in the audit log, and the first grant of a path is always in it.
    pub audit_budgets: bool,
    /// A question is drawn on a terminal in a known state, in colours of its own.
    pub known_terminal: bool,
    /// A key answers only a question that could be read before it was pressed.
    pub armed_keys: bool,
}
