//! Why a run could not be prepared, started or supervised to its end. Each error knows its class (ERR-1) and the exit
//! code of `sandbox run`.

use jiff::Timestamp;
use palisade_launch::LaunchError;
use palisade_launch::probe::FactsError;
use palisade_plan::PlanError;
use palisade_plan::limit::LimitKind;
use palisade_policy::tool::CallError;
use palisade_policy::{Diagnostic, Problem};
use palisade_record::{ErrorKind, RecordError};
use palisade_supervisor::SupervisorError;
use palisade_supervisor::error::OWN_FAILURE;
use palisade_sys::{Errno, SysError, io_error_text};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

const REFUSED: u8 = 126;

pub(crate) type Result<T, E = SessionError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("no home directory is known: set HOME or {variable}")]
    NoHome { variable: &'static str },

    #[error("cannot {action} {}: {}{}", path.display(), io_error_text(source), fix(source))]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error(
        "cannot create {}: {}; set XDG_STATE_HOME and XDG_CONFIG_HOME to directories you can write to",
        path.display(), io_error_text(source)
    )]
    OwnDirectory { path: PathBuf, source: io::Error },

    #[error(
        "descriptor {number} is no control socket: pass one end of a socket pair (AF_UNIX, SOCK_SEQPACKET)"
    )]
    NotAControlSocket { number: i32 },

    #[error("{} is not a regular file: a policy is a small text file", path.display())]
    NotRegular { path: PathBuf },

    #[error(
        "the policy in {} is a link to {}; a project's policy must be inside the project",
        directory.display(),
        target.display()
    )]
    LinkedPolicy { directory: PathBuf, target: PathBuf },

    #[error("{} is a broken link; remove it, or restore its target", path.display())]
    DanglingPolicy { path: PathBuf },

    #[error(
        "{} already exists, and a command in a sandbox could have written it; read it, then run \
         `sandbox policy trust {}`, or remove it, or choose another file with --output",
        path.display(), path.display()
    )]
    PlantedPolicy { path: PathBuf },

    #[error("{} is larger than {limit} bytes: a policy is a small text file", path.display())]
    TooLarge { path: PathBuf, limit: u64 },

    #[error("{}: no such file (ENOENT)", path.display())]
    NoSuchPolicy { path: PathBuf },

    #[error(
        "two policies for one layer: {} and {}; keep one of them",
        first.display(), second.display()
    )]
    Ambiguous { first: PathBuf, second: PathBuf },

    #[error("{} already exists; merge the two by hand, or move it away", path.display())]
    AlreadyThere { path: PathBuf },

    #[error("the trust store {} cannot be read: {source}; fix or remove it", path.display())]
    TrustStore { path: PathBuf, source: serde_json::Error },

    #[error(transparent)]
    Save(#[from] palisade_policy::SaveError),

    #[error(
        "there is no saved rule {number}, so nothing was removed; {}",
        if *last == 0 { "none is saved".to_owned() } else { format!("`sandbox policy rules` lists 1 to {last}") }
    )]
    NoSuchRule { number: usize, last: usize },

    #[error("no saved rule matches `{name}`, so nothing was removed; saved: {rules}")]
    NoRuleNamed { name: String, rules: String },

    #[error(
        "`{name}` names more than one rule, so nothing was removed; name one by its number: {rules}"
    )]
    SeveralRulesNamed { name: String, rules: String },

    #[error("{} belongs to the organisation and only root can write it; run the same command with sudo", path.display())]
    NeedsRoot { path: PathBuf },

    #[error("`{text}` is not a host: {why}; write a name or an address, with a port if needed")]
    NotAHost { text: String, why: String },

    #[error(
        "no session `{named}`{}",
        if sessions.is_empty() { "; `sandbox create` makes one".to_owned() } else { format!("; there are {sessions}") }
    )]
    NoSuchSession { named: String, sessions: String },

    #[error("`{named}` means several sessions: {sessions}; use more of the id")]
    SeveralSessions { named: String, sessions: String },

    #[error(
        "the name `{name}` is taken by session {session}; stop it first, or choose another name"
    )]
    NameTaken { name: String, session: String },

    #[error(
        "`{name}` cannot be the name of a session: use up to 64 letters, digits, dots, hyphens and underscores, \
         beginning with a letter or a digit"
    )]
    InvalidName { name: String },

    #[error("session {session} is not running; `sandbox inspect {session}` shows how it ended")]
    SessionNotRunning { session: String },

    #[error("a sandbox like this cannot be prepared before it is asked for: {why}")]
    CannotWait { why: &'static str },

    #[error("session {session} is running; end it with `sandbox stop {session}` first")]
    SessionRunning { session: String },

    #[error(
        "session {session} has no changes that wait; a transaction has: `sandbox run --transaction`"
    )]
    NoTransaction { session: String },

    #[error(
        "session {session} has no checkpoint {number}; `sandbox checkpoints {session}` lists them"
    )]
    NoCheckpoint { session: String, number: u32 },

    #[error(
        "a checkpoint of session {session} cannot be applied: it works in a copy of the project, and changes of the host since \
         the start would be undone; a person can bring the checkpoint back with `sandbox rollback`, and apply that with `sandbox apply`"
    )]
    CheckpointOfCopy { session: String },

    #[error("session {session} has {limit} checkpoints already; apply or discard its changes")]
    TooManyCheckpoints { session: String, limit: usize },

    #[error(
        "session {session} was a run of one command, whose options are not kept; only what `sandbox create` made can be forked"
    )]
    NoForkOptions { session: String },

    #[error("another command works on the changes of session {session}; try again when it is done")]
    ChangesLocked { session: String },

    #[error(
        "the changes of session {session} were replaced meanwhile, by a rollback or an apply; nothing was done \
         (`sandbox diff {session}` shows those that wait now)"
    )]
    ChangesReplaced { session: String },

    #[error(
        "the machine was started anew while session {session} ran, so files of it may be incomplete: \
         look at them (`sandbox diff {session}`), and use --force to apply them all the same"
    )]
    MaybeIncomplete { session: String },

    #[error(
        "{count} of session {session} still run; end them, or use --kill (`sandbox inspect {session}` shows them)",
        count = if *.commands == 1 { "1 command".to_owned() } else { format!("{commands} commands") }
    )]
    CommandsRunning { session: String, commands: usize },

    #[error(
        "session {session} cannot be forked: with its options, the changes of {} would not be kept apart today", .project.display()
    )]
    ForkedElsewhere { session: String, project: PathBuf },

    #[error(
        "an apply of session {session} was interrupted; finish or undo it with `sandbox apply {session}` first"
    )]
    InterruptedApply { session: String },

    #[error(
        "the state directory {} is in the project: a transaction could apply changes to it; set XDG_STATE_HOME to another \
         directory, or start in another project",
        state.display()
    )]
    StateInProject { state: PathBuf },

    #[error(
        "cannot copy {} for the transaction: {source}; hide what the command does not need (--blacklist PATH), or keep \
         the project and Palisade's state (XDG_STATE_HOME) on ext4, xfs, btrfs or tmpfs, where nothing is copied",
        project.display()
    )]
    ProjectNotCopied { project: PathBuf, source: palisade_changes::ChangesError },

    #[error(
        "the session {session} works in a copy of its project, and cannot be forked; create another one and apply the \
         changes first"
    )]
    ForkOfCopy { session: String },

    #[error("nothing tells which names in {} the host would run later; nothing was applied", project.display())]
    NoJudge { project: PathBuf },

    #[error(
        "{tool} is quarantined since {since:.0} for an attempt to break out ({indicator}); look at it with `sandbox \
         quarantine show {id}`, then let it run again with `sandbox quarantine release {id}`"
    )]
    Quarantined { tool: String, since: Timestamp, indicator: String, id: String },

    #[error(
        "the list of quarantined tools in {} cannot be used: {why}; no command is started without it: restore the file, or \
         move it away if no tool has to stay quarantined",
        path.display()
    )]
    QuarantineStore { path: PathBuf, why: String },

    #[error("the declaration is invalid: {}", list(.0))]
    ToolDeclaration(Vec<Diagnostic>),

    #[error(
        "no tool {name} is declared{}; `sandbox tool list` lists what is",
        nearest.as_ref().map(|it| format!("; did you mean `{it}`?")).unwrap_or_default()
    )]
    NoSuchTool { name: String, nearest: Option<String> },

    #[error(
        "two files declare the tool {name}: {} and {}; remove one of them",
        first.display(), second.display()
    )]
    ToolTwice { name: String, first: PathBuf, second: PathBuf },

    #[error("{} declares the tool {name} already; use --replace", path.display())]
    ToolThere { name: String, path: PathBuf },

    #[error("more than {limit} tools are declared; remove some")]
    TooManyTools { limit: usize },

    #[error(
        "{} declares the tool {name}, and a command in a sandbox could have written it; read it, then run \
         `sandbox tool trust {}`",
        path.display(), path.display()
    )]
    ToolNotTrusted { name: String, path: PathBuf },

    #[error(
        "{} leads through a link to {}; a project's declarations must be files in its own .palisade/tools, with no link on the way",
        path.display(), target.display()
    )]
    LinkedTool { path: PathBuf, target: PathBuf },

    #[error("the tool {name} cannot be used: {why}")]
    ToolUnusable { name: String, why: String },

    #[error(
        "{} has changed since the tool {name} was offered; read it, then restart the server that offers it (`sandbox mcp`)",
        path.display()
    )]
    ToolChanged { name: String, path: PathBuf },

    #[error(transparent)]
    ToolCall(#[from] CallError),

    #[error(
        "{tool} needs the approval of a person: {}; `sandbox tool approve {tool}` asks for it",
        missing.join("; ")
    )]
    ToolNotApproved { tool: String, missing: Vec<String> },

    #[error("{why}")]
    ToolRefused { why: String },

    #[error(
        "what was approved for tools, in {}, cannot be used: {why}; restore the file, or move it away and approve again",
        path.display()
    )]
    ToolApprovalStore { path: PathBuf, why: String },

    #[error(
        "several quarantined tools are meant by {named}; name more of the id (`sandbox quarantine ls`)"
    )]
    SeveralQuarantined { named: String },

    #[error("nothing is quarantined as {named}; `sandbox quarantine ls` lists what is")]
    NotQuarantined { named: String },

    #[error(transparent)]
    Changes(#[from] palisade_changes::ChangesError),

    #[error("the session did not do it: {message}")]
    SessionRefused { message: String },

    #[error(transparent)]
    Files(#[from] palisade_files::ClientError),

    #[error("its supervisor was killed, and everything in it with it")]
    SupervisorKilled,

    #[error("the record of a session in {} cannot be read: {source}", path.display())]
    SessionRecord { path: PathBuf, source: serde_json::Error },

    #[error(
        "{} belongs to another user, or others can write to it; set XDG_STATE_HOME to a directory of your own",
        path.display()
    )]
    ForeignDirectory { path: PathBuf },

    #[error("session {session} has recorded no answers")]
    NoAnswers { session: String },

    #[error("no session has recorded an answer yet")]
    NoSessions,

    #[error("the answers in {} cannot be read: {source}", path.display())]
    Answers { path: PathBuf, source: serde_json::Error },

    #[error("the policy is invalid: {}", list(.0))]
    Policy(Vec<Diagnostic>),

    #[error(transparent)]
    Facts(#[from] FactsError),

    #[error(transparent)]
    Plan(#[from] PlanError),

    #[error(transparent)]
    Supervisor(#[from] SupervisorError),

    #[error(transparent)]
    Launch(#[from] LaunchError),

    #[error("{0}; no command runs without an audit log")]
    Record(#[from] RecordError),

    #[error(transparent)]
    System(#[from] SysError),

    #[cfg(feature = "layers-off")]
    #[error("there is no layer `{name}` to switch off")]
    NoSuchLayer { name: String },

    #[error("cannot read the secret for credential {name}: {why}")]
    Credential { name: String, why: String },

    #[error("`network.upstreamProxy` is not in the form http://[USER:PASSWORD@]HOST:PORT")]
    Upstream,

    #[error(
        "cannot listen at {address}: {}; --listen names another address",
        io_error_text(source)
    )]
    Listen { address: std::net::SocketAddr, source: io::Error },

    #[error(
        "`network.intercept` works in `sandbox run` only: no program trusts the authority of a stand-alone proxy"
    )]
    NoInterception,

    #[error("{0}")]
    Egress(#[from] palisade_egress::error::EgressError),

    #[error(
        "{} (--{}) is {asked}, which exceeds this process's own hard limit of {most}; lower it, or \
         raise the hard limit first (`ulimit -H`, prlimit(1))",
        .what.key(), .what.name()
    )]
    BeyondOwnLimit { what: LimitKind, asked: u64, most: u64 },
}

impl SessionError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// The exit code of `sandbox run`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Policy(complaints) if complaints.iter().all(is_refusal) => REFUSED,
            Self::Plan(error) if error.refused_by_policy() => REFUSED,
            Self::Quarantined { .. } | Self::ToolNotApproved { .. } => REFUSED,
            Self::ToolNotTrusted { .. } | Self::ToolChanged { .. } => REFUSED,
            Self::ToolCall(error) if error.is_refusal() => REFUSED,
            Self::Launch(error) => u8::try_from(error.exit_code()).unwrap_or(OWN_FAILURE),
            Self::Supervisor(error) => error.exit_code(),
            _ => OWN_FAILURE,
        }
    }

    /// The class in reports and APIs.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAControlSocket { .. }
            | Self::NotRegular { .. }
            | Self::LinkedPolicy { .. }
            | Self::TooLarge { .. }
            | Self::NoSuchPolicy { .. }
            | Self::AlreadyThere { .. }
            | Self::Credential { .. }
            | Self::Upstream
            | Self::NoInterception
            | Self::Save(_)
            | Self::NoAnswers { .. }
            | Self::NoSessions
            | Self::NoSuchSession { .. }
            | Self::SeveralSessions { .. }
            | Self::NameTaken { .. }
            | Self::InvalidName { .. }
            | Self::SessionNotRunning { .. }
            | Self::SessionRunning { .. }
            | Self::CannotWait { .. }
            | Self::NoTransaction { .. }
            | Self::InterruptedApply { .. }
            | Self::NoCheckpoint { .. }
            | Self::CheckpointOfCopy { .. }
            | Self::TooManyCheckpoints { .. }
            | Self::NoForkOptions { .. }
            | Self::ChangesLocked { .. }
            | Self::ChangesReplaced { .. }
            | Self::MaybeIncomplete { .. }
            | Self::CommandsRunning { .. }
            | Self::ForkedElsewhere { .. }
            | Self::StateInProject { .. }
            | Self::ForkOfCopy { .. }
            | Self::NotQuarantined { .. }
            | Self::SeveralQuarantined { .. }
            | Self::Ambiguous { .. } => ErrorKind::Validation,
            Self::Policy(complaints) if complaints.iter().all(is_refusal) => ErrorKind::Security,
            Self::Quarantined { .. } | Self::QuarantineStore { .. } => ErrorKind::Security,
            Self::ToolNotTrusted { .. }
            | Self::ToolChanged { .. }
            | Self::ToolNotApproved { .. }
            | Self::ToolApprovalStore { .. } => ErrorKind::Security,
            Self::ToolCall(error) if error.is_refusal() => ErrorKind::Security,
            Self::ToolCall(_)
            | Self::ToolDeclaration(_)
            | Self::NoSuchTool { .. }
            | Self::ToolTwice { .. }
            | Self::ToolThere { .. }
            | Self::TooManyTools { .. }
            | Self::LinkedTool { .. }
            | Self::ToolUnusable { .. }
            | Self::ToolRefused { .. } => ErrorKind::Validation,
            Self::Policy(_) => ErrorKind::Validation,
            Self::Plan(error) if error.refused_by_policy() => ErrorKind::Security,
            Self::Plan(
                PlanError::LimitSampled { .. }
                | PlanError::LimitUnheld { .. }
                | PlanError::LimitsUnheld { .. },
            )
            | Self::BeyondOwnLimit { .. } => ErrorKind::Resource,
            Self::Plan(_) => ErrorKind::Validation,
            Self::Launch(error) if error.kind == palisade_launch::FailureKind::LayerMissing => {
                ErrorKind::Security
            }
            Self::Supervisor(error) => error.kind(),
            Self::SupervisorKilled => ErrorKind::Cancelled,
            _ => ErrorKind::Initialisation,
        }
    }
}

/// What a program does about an error, where its class says too little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorReason {
    /// There is no session of this name.
    NotFound,
    NameTaken,
    /// The present state does not allow it.
    Conflict,
    #[default]
    #[serde(other)]
    Other,
}

impl SessionError {
    /// Whether it is about the present state of sessions.
    pub fn reason(&self) -> ErrorReason {
        match self {
            Self::NoSuchSession { .. } | Self::NoSuchTool { .. } => ErrorReason::NotFound,
            Self::ToolThere { .. } => ErrorReason::Conflict,
            Self::NameTaken { .. } => ErrorReason::NameTaken,
            Self::SeveralSessions { .. }
            | Self::SessionNotRunning { .. }
            | Self::SessionRunning { .. }
            | Self::SessionRefused { .. }
            | Self::NoTransaction { .. }
            | Self::CommandsRunning { .. }
            | Self::ChangesLocked { .. } => ErrorReason::Conflict,
            _ => ErrorReason::Other,
        }
    }
}

/// The document is valid, but requests something that is not allowed.
fn is_refusal(complaint: &Diagnostic) -> bool {
    matches!(
        complaint.problem,
        Problem::Locked | Problem::NeedsApproval | Problem::NotEnforced | Problem::AboveMaximum
    )
}

/// How to fix an error with a file, where that is known.
fn fix(error: &io::Error) -> &'static str {
    // The standard library has no `ErrorKind` for it.
    if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) {
        return "; raise the limit on open files (ulimit -n)";
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give this user access (owner and mode of the file and of the directories above it), or \
             move the file away"
        }
        io::ErrorKind::InvalidData => "; save it as UTF-8",
        io::ErrorKind::ReadOnlyFilesystem => "; make the file system writable",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
        _ => "",
    }
}

fn list(complaints: &[Diagnostic]) -> String {
    complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{Path, SessionError, io};

    #[test]
    fn an_errno_has_its_name_and_what_to_do() {
        let told = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            SessionError::io("open", Path::new("/p"), source).to_string()
        };
        assert!(
            told(13)
                .starts_with("cannot open /p: Permission denied (EACCES); give this user access")
        );
        assert_eq!(told(5), "cannot open /p: Input/output error (EIO)");
    }
}
