//! The plan: everything that `launch` will do, decided and printable.
//!
//! Pure data. `launch` makes no decisions of its own: what is not in the plan does not happen, and what is in
//! the plan happens or the run stops.

mod cache_stack;
mod egress;
mod guard;
mod hardening;
mod mount_op;
mod probe;
mod project;
mod records;
mod seccomp_summary;
mod transaction;

use crate::layer::Promise;
pub use crate::limit::{Grace, Resource, Rlimit, Scratch, Watch};
use crate::limit::{Group, Limit};
pub use cache_stack::CacheStack;
pub use egress::{
    Checks, CredentialPlan, CredentialSource, Egress, NatHelper, NatPlan, OnUnknown, ProxyPlan,
    Publish,
};
pub use guard::{Guard, PartlyWritable};
pub use hardening::Hardening;
pub(crate) use mount_op::READ_ONLY;
pub use mount_op::{MountAccess, MountOp, NodeKind};
use palisade_bpf::{FilterSpec, Profile};
use palisade_policy::model::{
    Approval, AskKey, Escape, FileOperations, Level, Mode, NetworkMode, OnAsk, View,
};
pub use probe::Probe;
pub use project::{FoundBy, Located};
pub use records::Recording;
pub(crate) use seccomp_summary::summary;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
pub use transaction::{AtEnd, Transaction, TransactionMethod};

/// One run, from the first mount to the last limit. The JSON form is flat, so that readers do not depend on
/// which component carries out a part.
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

/// The confinement, which lasts as long as the sandbox, whatever runs in it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPlan {
    /// Whether the sandbox runs several commands, or ends with its only one.
    #[serde(skip_serializing_if = "SandboxLifetime::is_one_command")]
    pub lifetime: SandboxLifetime,
    pub network: NetworkMode,
    /// Missing directories that were granted for writing. They are created before the launch, as the caller.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub create_dirs: Vec<PathBuf>,
    pub confinement: Confinement,
    /// The control group, if a limit needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Set on every command, in this order.
    pub rlimits: Vec<Rlimit>,
    /// The only CPUs that commands may use, if no control group enforces them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Vec<u32>>,
    /// One file system for all of the run's own files, if their total size is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Scratch>,
    /// If the host supports it and the policy wants it; see `promises`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock: Option<Landlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// If files of the host are writable and the policy wants it; see `promises`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// If the user is asked about paths outside the view. Otherwise they do not exist for the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// The connection to the outside, in network modes that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Forwarded ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<Publish>,
    /// Attempts that the child makes before the command starts. Any unexpected outcome stops the run (ESC-2).
    pub self_check: Vec<Probe>,
    /// Switches of the launcher, each a layer of its own.
    pub hardening: Hardening,
}

/// How long a sandbox exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLifetime {
    /// As long as its only command.
    #[default]
    OneCommand,
    /// Until its supervisor ends it. The spawner starts every command; see [`crate::lifetime`].
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
    /// Hides a question in the terminal and shows it again.
    pub ask_key: AskKey,
    /// Every limit of the run, and what enforces it.
    pub limits: Vec<Limit>,
    /// What the supervisor enforces by polling.
    pub watch: Watch,
    /// The wall time after which the command is asked to end; the exit code is 124.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub grace: Grace,
    /// How long a sandbox may stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live_ms: Option<u64>,
    /// How long a sandbox may stay without a command, if it outlives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_time_to_live_ms: Option<u64>,
    /// How many bytes of each output stream are passed on: the beginning and the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The duration of the run is rounded up to a multiple of this time, and so are the reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize_ms: Option<u64>,
    pub approvals: Vec<Approval>,
    /// Which operations on files are recorded.
    #[serde(skip_serializing_if = "records::is_off")]
    pub file_operations: FileOperations,
    /// If terminals are recorded (LIFE-6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// Where the project's changes wait, and what happens to them at the end (LIFE-2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<Transaction>,
    /// What is done about attempts to break out (ESC-1).
    pub escape: Escape,
}

/// What the user is told about the run. Enforces nothing.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub level: Level,
    pub view: View,
    pub mode: Mode,
    #[serde(skip)]
    pub project: Located,
    /// Variables that the policy sets, with their values unless those are secret.
    #[serde(skip)]
    pub set_variables: Vec<String>,
    /// Names of variables that are not passed on because they look like secrets.
    #[serde(skip)]
    pub withheld_variables: Vec<String>,
    /// For every promise, the layers that enforce it in this run, and how strictly.
    pub promises: Vec<Promise>,
    /// Notes for the user: relaxations, omissions, unusual behaviour.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Whether the run has a network namespace of its own, and so another loopback than the host's.
    pub fn has_own_network(&self) -> bool {
        matches!(&self.sandbox.confinement, Confinement::Namespaces(inside) if inside.namespaces.net)
    }

    /// Whether the run has its own network, without a connection to the outside.
    pub fn is_offline(&self) -> bool {
        self.has_own_network() && self.sandbox.network == NetworkMode::None
    }
}

/// Something that the user might not expect.
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
    /// True of every run with the defaults. If it were shown each time, users would stop reading notes.
    Routine,
    /// About the mode; relevant to users who chose one.
    OfMode,
    Important,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// As typed; `argv[0]` is looked up in the sandbox's `PATH`.
    #[serde(serialize_with = "crate::text::os_strings")]
    pub argv: Vec<OsString>,
    #[serde(serialize_with = "crate::text::path")]
    pub cwd: PathBuf,
    #[serde(serialize_with = "crate::text::os_pairs")]
    pub env: Vec<(OsString, OsString)>,
}

/// How the command is confined.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Confinement {
    /// LEVEL_0: the command is not isolated from the host.
    None,
    /// Landlock and seccomp only, for hosts without user namespaces.
    NoNamespaces,
    /// Its own namespaces and root.
    Namespaces(Box<Namespaced>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespaced {
    pub namespaces: Namespaces,
    pub identity: Identity,
    /// In this order; a later one may be mounted on an earlier one.
    pub mounts: Vec<MountOp>,
    /// What the caches among the mounts are parts of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheStack>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Whether to bring up `lo` in the new network namespace.
    pub loopback: bool,
    /// Settings of the new network namespace: names below `/proc/sys/net`, and values. If the host makes them
    /// read-only, as in some containers, the kernel's defaults stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_settings: Vec<(&'static str, String)>,
    /// The home directory, if it is private to the run: a tmpfs among the mounts.
    #[serde(skip)]
    pub private_home: Option<PathBuf>,
}

/// The user namespace is always a new one.
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
    /// Every kind by its name, and whether the run has its own.
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

/// The command's ids, in the sandbox and on the host.
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
    /// An ordinary user maps its own id, from inside the namespace.
    OwnId,
    /// Root assigns an id that is not root, from outside the namespace.
    ByRoot,
}

/// The owner on disk that an id-mapped mount shows as the command's own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// Enforces the mount view's rules independently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Landlock {
    /// The host's ABI, at least 1.
    pub abi: u32,
    /// Whether reading and executing are restricted as well, or only writing.
    pub restrict_reads: bool,
    /// Whether truncating by path counts as writing, if the kernel supports it (ABI 3).
    pub refuse_truncation: bool,
    /// Trees or files that may be read, and executed with [`Execution::Readable`]. Only used with
    /// `restrict_reads`.
    #[serde(serialize_with = "crate::text::paths")]
    pub readable: Vec<PathBuf>,
    /// Trees or files that may be written.
    #[serde(serialize_with = "crate::text::paths")]
    pub writable: Vec<PathBuf>,
    /// Trees or files where the command itself may only remove, and read if reading is restricted. The broker
    /// carries out everything else there.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub guarded: Vec<PathBuf>,
    /// Directories in those where it may do everything. Without links on the way: a rule follows them.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub build_dirs: Vec<PathBuf>,
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

impl Landlock {
    /// Whether a file that may only be read stays whole, on whatever mount it is.
    pub fn refuses_truncation(&self) -> bool {
        self.refuse_truncation && self.abi >= 3
    }
}

impl Executables {
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.listed.iter().chain(&self.built).chain(&self.needed)
    }
}

/// Which files may be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Execution {
    /// Every file that can be read.
    Readable,
    /// Only the programs on the policy's list.
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

/// The programs that may be executed (PROC-2), by their paths in the sandbox, with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Executables {
    /// Files, and directories with everything below.
    #[serde(serialize_with = "crate::text::paths")]
    pub listed: Vec<PathBuf>,
    /// Directories for what the command builds and runs, with everything below. They may be in the project, where
    /// another run can put a link in their place.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<PathBuf>,
    /// Loaders and interpreters that those need to start.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<PathBuf>,
    /// Which of them can be used to run something else.
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
    /// Maps and starts any file that it is given.
    Loader,
    /// Executes what it reads.
    Interpreter,
    /// Its content can be replaced from the sandbox.
    Writable,
}

/// Where a path that is missing in the view is noticed, and who decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// What notices the first use of a path.
    pub trigger: Trigger,
    /// Why that one.
    pub trigger_reason: &'static str,
    /// Mounts that we created ourselves: the root, a private home directory, frames.
    #[serde(serialize_with = "crate::text::paths")]
    pub grounds: Vec<PathBuf>,
    /// Never asked about, each with everything below.
    #[serde(serialize_with = "crate::text::paths")]
    pub never: Vec<PathBuf>,
    /// Palisade's own directories on the host: nobody inside has anything to do there.
    #[serde(skip)]
    pub own: Vec<PathBuf>,
    /// Asked about with a warning, one file at a time, each with everything below.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<PathBuf>,
    /// Where the shipped names of secrets apply; empty if secrets are treated like other files.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<PathBuf>,
    /// The mounts of the view: no tree may be mounted over one of these.
    #[serde(serialize_with = "crate::text::paths")]
    pub mounted: Vec<PathBuf>,
    /// The directories above the project. What tools look for there on their own is missing without a question.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub above_project: Vec<PathBuf>,
    /// What tools leave in every home for themselves. Missing without a question unless it is granted.
    pub left_by_tools: Vec<PathBuf>,
    /// The home directory, if it is private to the run.
    #[serde(serialize_with = "crate::text::maybe_path", skip_serializing_if = "Option::is_none")]
    pub private_home: Option<PathBuf>,
    /// Directories that the plan creates: what is missing in them was not granted. The command created all
    /// other directories in the private home.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// Whether the user is also asked about programs. Not if the policy lists the programs that may start.
    pub executes: bool,
    /// Whether what is granted for writing may be executed, too.
    pub executes_written: bool,
    #[serde(flatten)]
    pub answers: Answers,
    pub ask_timeout_ms: u64,
    /// The maximum number of open questions.
    pub most_questions: usize,
    /// Whether a process with a permission is identified by more than its pid, which can be reused.
    pub known_callers: bool,
}

/// Who decides about a path that no grant and no rule of the policy names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answers {
    /// Dynamic mode: people, or one answer to everything.
    OnAsk(OnAsk),
    /// Static mode: nobody. What is below these directories and is not secret is shown for reading when it is used. Everything
    /// else looks absent.
    Readable(#[serde(serialize_with = "crate::text::paths")] Vec<PathBuf>),
}

/// What notices the first use of a path that is not granted. The mount view enforces the same with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The filter notifies every call that names a path, and the broker looks it up first.
    Notify,
    /// The root of the view is a file system that a process outside serves. Granted trees are mounted on it, so calls
    /// on granted paths never leave the kernel.
    Fuse,
}

impl Trigger {
    pub fn word(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Fuse => "fuse",
        }
    }
}

/// How something on the host may be asked about.
///
/// In increasing order of severity.
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
    /// Suspicious attempts after which the sandbox is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocked: Option<u64>,
    /// What the filter was made from; it explains each call. Summarized by groups only on demand: that costs
    /// more than compiling the filter.
    #[serde(rename = "summary", serialize_with = "seccomp_summary::by_groups")]
    pub rules: Profile,
    /// For the command. It is compiled in the process that installs it, which would otherwise only wait.
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
