//! The events of a sandbox, one enum for all of them (AUD-2).
//!
//! An event is an observed fact; creating one has no effect on the sandbox. Text from inside is stored unchanged and
//! escaped when it is written.

use crate::cache_events::CacheWritesLost;
use crate::checkpoint_events::{CheckpointMade, RolledBack, SessionForked};
use crate::command_digest::CommandDigest;
use crate::decision::Decision;
use crate::escape;
use crate::escape_response::{EscapeResponded, Quarantined, Released};
use crate::network::{ConnectionClosed, HostDecided, NameQueried, NetworkAttempt};
use crate::outcome::{Failure, Outcome};
use crate::session_event::{
    ChangesApplied, ChangesDiscarded, ChangesHeld, FileOperation, SessionClaimed, SessionEnding,
    SessionExec, SessionExecEnded, SessionExtended,
};
use crate::severity::{Indicator, Severity};
use crate::state::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// UUID version 7, which sorts by time.
    pub event_id: Uuid,
    pub sandbox_id: String,
    #[serde(serialize_with = "with_microseconds")]
    pub timestamp: Timestamp,
    pub level: LogLevel,
    pub state: State,
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    pub fn new(sandbox_id: &str, state: State, kind: EventKind) -> Event {
        Event {
            event_id: Uuid::now_v7(),
            sandbox_id: sandbox_id.to_owned(),
            timestamp: Timestamp::now(),
            level: kind.log_level(),
            state,
            kind,
        }
    }
}

fn with_microseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.6}"))
}

/// A path that is not UTF-8 must not keep its event from being written.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.serialize_str(&escape::bytes(path.as_os_str().as_bytes())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    Info,
    /// An attempt that the policy does not allow, or a relaxed rule.
    Warn,
    /// A security incident, or a sandbox that could not be set up.
    Error,
    /// An attempt to escape.
    Critical,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "details", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EventKind {
    SandboxCreated(Box<Created>),
    SandboxEntered(Entered),
    /// The child probed the confinement from inside, before the command started (ESC-2).
    SandboxValidated(Validated),
    SandboxExecuted(Executed),
    SandboxExited(Box<Exited>),
    SandboxDestroyed(Destroyed),
    SandboxFailed(Failure),
    PolicyViolation(PolicyViolation),
    EscapeAttempt(EscapeAttempt),
    /// What was done about an attempt to break out (ESC-1).
    EscapeResponse(Box<EscapeResponded>),
    Quarantined(Quarantined),
    Released(Released),
    ResourceLimitExceeded(LimitExceeded),
    SyscallBlocked(SyscallBlocked),
    SignalForwarded(SignalForwarded),
    ApprovalRecorded(Approval),
    /// An access to something outside the view was decided (GATE-1).
    AccessDecided(Box<AccessDecided>),
    /// What was granted was taken back (GATE-5).
    AccessRevoked(Box<AccessRevoked>),
    /// Events that were too frequent to be recorded one by one.
    EventsSummed(Box<EventsSummed>),
    /// A connection was attempted, and judged before any byte was sent (NET-7).
    NetworkAttempt(Box<NetworkAttempt>),
    ConnectionClosed(Box<ConnectionClosed>),
    NameQueried(Box<NameQueried>),
    /// A host that no rule names was decided (NET-8).
    HostDecided(Box<HostDecided>),
    /// A state of a transaction was kept (LIFE-5).
    CheckpointMade(CheckpointMade),
    RolledBack(RolledBack),
    SessionForked(SessionForked),
    /// What was written to caches is not kept (FS-5).
    CacheWritesLost(CacheWritesLost),
    /// A command was started in a session (LIFE-4).
    SessionExec(Box<SessionExec>),
    SessionExecEnded(Box<SessionExecEnded>),
    SessionExtended(SessionExtended),
    /// A sandbox that was prepared became a session (LIFE-4).
    SessionClaimed(SessionClaimed),
    SessionEnding(SessionEnding),
    /// What became of a transaction (LIFE-2).
    ChangesApplied(ChangesApplied),
    ChangesHeld(ChangesHeld),
    ChangesDiscarded(ChangesDiscarded),
    /// Only on request.
    FileOperation(Box<FileOperation>),
}

impl EventKind {
    fn log_level(&self) -> LogLevel {
        match self {
            EventKind::SandboxCreated(_)
            | EventKind::SandboxEntered(_)
            | EventKind::SandboxValidated(_)
            | EventKind::SandboxExecuted(_)
            | EventKind::SandboxExited(_)
            | EventKind::SandboxDestroyed(_)
            | EventKind::SignalForwarded(_)
            | EventKind::Released(_)
            | EventKind::AccessRevoked(_)
            | EventKind::CheckpointMade(_)
            | EventKind::RolledBack(_)
            | EventKind::SessionForked(_)
            | EventKind::SessionExec(_)
            | EventKind::SessionExecEnded(_)
            | EventKind::SessionExtended(_)
            | EventKind::SessionClaimed(_)
            | EventKind::SessionEnding(_)
            | EventKind::ChangesApplied(_)
            | EventKind::ChangesDiscarded(_)
            | EventKind::FileOperation(_) => LogLevel::Info,
            EventKind::AccessDecided(decided) if decided.decision == Decision::Allowed => {
                LogLevel::Info
            }
            EventKind::HostDecided(decided) if decided.decision == Decision::Allowed => {
                LogLevel::Info
            }
            EventKind::EventsSummed(sum) if sum.decision == Decision::Allowed => LogLevel::Info,
            EventKind::NetworkAttempt(attempt) if attempt.action.is_allowed() => LogLevel::Info,
            EventKind::NameQueried(queried) if queried.is_ordinary() => LogLevel::Info,
            EventKind::ConnectionClosed(_) => LogLevel::Info,
            EventKind::PolicyViolation(_)
            | EventKind::ResourceLimitExceeded(_)
            | EventKind::SyscallBlocked(_)
            | EventKind::AccessDecided(_)
            | EventKind::EventsSummed(_)
            | EventKind::NetworkAttempt(_)
            | EventKind::NameQueried(_)
            | EventKind::CacheWritesLost(_)
            | EventKind::HostDecided(_)
            | EventKind::ChangesHeld(_)
            | EventKind::ApprovalRecorded(_) => LogLevel::Warn,
            EventKind::EscapeAttempt(attempt) if attempt.severity == Severity::Critical => {
                LogLevel::Critical
            }
            EventKind::EscapeResponse(_) | EventKind::Quarantined(_) => LogLevel::Critical,
            EventKind::EscapeAttempt(_) | EventKind::SandboxFailed(_) => LogLevel::Error,
        }
    }
}

/// What was run, and how it was confined. Part of the first and the last event of a run, so that each of them is
/// complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The declared tool's name, or the program's.
    pub tool: String,
    /// `LEVEL_0`, `LEVEL_1` or `LEVEL_2`.
    pub sandbox_level: String,
    /// `dynamic` or `static`.
    pub sandbox_mode: String,
    pub network_mode: String,
    /// The project directory on the host.
    #[serde(serialize_with = "as_text")]
    pub sandbox_root: PathBuf,
    #[serde(flatten)]
    pub command: CommandDigest,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    #[serde(flatten)]
    pub run: Run,
    /// The supervisor's pid on the host.
    pub pid: u32,
    /// The caller's uid on the host.
    pub uid: u32,
    #[serde(serialize_with = "as_text")]
    pub working_directory: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entered {
    /// The pid of the sandbox's init on the host.
    pub pid: u32,
    pub namespaces: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validated {
    /// How many probes ran. If one had succeeded, the command would not have started.
    pub probes: usize,
    pub duration_us: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executed {
    /// The command's pid on the host, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// From the call to the exec of the command.
    pub setup_us: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exited {
    #[serde(flatten)]
    pub run: Run,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destroyed {
    /// From creation to here.
    pub duration_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyViolation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// What was tried: `exec`, `open`, `connect` …
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub decision: Decision,
    /// The policy key that decided.
    pub rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
}

/// An access to something outside the view, and how it was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessDecided {
    /// The host path that was, or would have been, granted.
    pub path: String,
    /// `read`, `execute` or `write`.
    pub access: String,
    pub decision: Decision,
    /// `file` or `directory`.
    pub scope: String,
    /// `once`, `session`, or `always` and where it was saved.
    pub lifetime: String,
    /// Who or what decided: `terminal`, `socket`, `rule`, `timeout`, `nobody-to-ask` …
    pub source: String,
    /// The rule, or details about the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The system call that waited first.
    pub op: String,
    /// All threads that waited, by their host pids.
    pub pids: Vec<u32>,
    pub executable: String,
    /// The question's number, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
    /// From the first access to the decision.
    pub latency_us: u64,
}

/// What a person or a client took back while the command ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessRevoked {
    /// As it was named.
    pub path: String,
    /// What had been granted there, or below.
    pub granted: Vec<String>,
    pub by: String,
    /// Processes that had it open and keep it, by their host pids.
    pub still_open: Vec<u32>,
}

/// The number of events of one kind that were not recorded individually.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsSummed {
    /// `access`, `protected-write`, `execution` or `blocked-call`; `unreported` for refused calls without known
    /// details.
    pub what: String,
    pub decision: Decision,
    /// Who or what decided, as in the individual events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub count: u64,
    /// How many of them were questions.
    #[serde(default)]
    pub questions: u64,
    /// The path of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_path: Option<String>,
    /// From the first to the last.
    pub duration_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscapeAttempt {
    /// In the table of indicators.
    #[serde(default)]
    pub id: String,
    #[serde(rename = "type")]
    pub indicator: Indicator,
    pub severity: Severity,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitExceeded {
    /// The policy key of the limit.
    pub resource: String,
    pub limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<u64>,
    /// The layer that enforced it, such as `timer`.
    pub holder: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyscallBlocked {
    pub name: String,
    pub number: i64,
    pub arguments: [u64; 6],
    /// The pid on the host.
    pub pid: u32,
    /// The calling program, as the sandbox sees it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub executable: String,
    /// The errno it failed with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub errno: String,
    /// Whether ordinary programs do not try it.
    #[serde(default)]
    pub suspicious: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalForwarded {
    pub signal: i32,
    pub name: String,
    /// Whether it was sent to end the sandbox.
    pub fatal: bool,
}

/// An approval of something weaker than the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub what: String,
    pub reason: String,
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
