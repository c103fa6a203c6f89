//! The report of one run: how it ended, what it used, and which layers enforced each promise.
//!
//! It repeats what was planned and observed and keeps the two apart. It must never judge anything itself.

use crate::digest::Digest;
use crate::error::Result;
use crate::escape_response::EscapeReport;
use crate::event::{Approval, SignalForwarded};
use crate::network_report::NetworkReport;
use crate::outcome::{Failure, Outcome};
use crate::{escape, redact};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// Increased when a field changes its meaning or is removed, not when one is added.
const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    pub schema: u32,
    pub session_id: String,
    pub started_at: Timestamp,
    /// With secrets masked.
    pub command: Vec<String>,
    pub command_hash: Digest,
    pub outcome: Outcome,
    /// The exit code of `sandbox run`.
    pub exit_code: i32,
    /// The signal that killed the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReportedUsage>,
    /// Every limit of the run: what enforced it, how strictly, and whether it was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReport>,
    /// `None` if the run ended before it was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walls: Option<ReportedConfinement>,
    pub promises: Vec<PromiseReport>,
    pub self_check: Vec<ProbeReport>,
    /// Every way in which the run was weaker than its defaults.
    pub relaxations: Vec<String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    pub signals_forwarded: Vec<SignalForwarded>,
    /// Refused and reported system calls, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_calls: Vec<BlockedCalls>,
    /// The number of suspicious ones at which the run was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by_blocked_calls: Option<u64>,
    /// Attempts to break out, and what was done about them; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escape: Option<EscapeReport>,
    /// Writes that were refused because the host would later execute their content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_writes: Vec<ProtectedWrite>,
    /// Programs that the policy does not allow to be executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_executions: Vec<RefusedExecution>,
    /// Paths that were granted while the command ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted_paths: Vec<TouchedPath>,
    /// Paths that were accessed and not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_paths: Vec<TouchedPath>,
    /// Variables that were not passed on because their names look like those of secrets. Never contains their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_variables: Vec<String>,
    /// `None` if there was a network, or nothing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_attempts: Option<OfflineAttempts>,
    /// Answers that were saved permanently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved_answers: Vec<SavedAnswer>,
    /// How many paths of the project were changed in a transaction, and wait to be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_changes: Option<usize>,
    /// How many were applied at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_changes: Option<usize>,
    /// How many were discarded because a session's time to live was over; zero if they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_changes: Option<usize>,
    /// Denied without a question, although somebody could have been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unasked_questions: Option<UnaskedQuestions>,
    /// What was written to the private home directory; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_files: Option<DiscardedFiles>,
    /// `None` if there was no network connection to report on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// Sockets left in directories of the host: a program that connects to one talks to the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets_made: Vec<String>,
    /// Directories that the command tried to write, and that are writable on the host but not inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_only_directories: Vec<String>,
    pub approvals: Vec<Approval>,
    pub versions: Versions,
}

impl RunReport {
    /// The report of a run that has just begun; the caller fills in the rest.
    pub fn begin<A: AsRef<OsStr>>(session_id: &str, argv: &[A], versions: Versions) -> RunReport {
        RunReport {
            schema: SCHEMA,
            session_id: session_id.to_owned(),
            started_at: Timestamp::now(),
            command: redact::argv(argv),
            command_hash: redact::hash(argv),
            outcome: Outcome::Failed,
            exit_code: 125,
            signal: None,
            failure: None,
            usage: None,
            limits: Vec::new(),
            walls: None,
            promises: Vec::new(),
            self_check: Vec::new(),
            relaxations: Vec::new(),
            notes: Vec::new(),
            signals_forwarded: Vec::new(),
            blocked_calls: Vec::new(),
            ended_by_blocked_calls: None,
            escape: None,
            protected_writes: Vec::new(),
            refused_executions: Vec::new(),
            granted_paths: Vec::new(),
            denied_paths: Vec::new(),
            removed_variables: Vec::new(),
            offline_attempts: None,
            saved_answers: Vec::new(),
            waiting_changes: None,
            applied_changes: None,
            discarded_changes: None,
            unasked_questions: None,
            discarded_files: None,
            network: None,
            sockets_made: Vec::new(),
            read_only_directories: Vec::new(),
            approvals: Vec::new(),
            versions,
        }
    }

    /// Indented JSON with a trailing newline.
    pub fn to_json(&self) -> Result<String> {
        let mut json = escape::json(serde_json::to_string_pretty(self)?);
        json.push('\n');
        Ok(json)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedUsage {
    /// From the call to the exec of the command.
    pub setup_us: u64,
    /// From the exec of the command to its end.
    pub wall_us: u64,
    pub cpu_user_us: u64,
    pub cpu_system_us: u64,
    /// `cgroup-v2` and `cgroup-v1` count everything. `processes` counts what could be observed of the processes, and as
    /// memory only that of the largest one.
    pub counted_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// At the last measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Including threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_processes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
}

/// What a run without a network did to reach one, as counted by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfflineAttempts {
    /// Packets and connections to unreachable addresses.
    pub unreachable: u64,
    /// Datagrams to ports without a listener, such as queries to a name server.
    pub unanswered: u64,
}

/// An answer that was saved permanently, or that failed to be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedAnswer {
    /// As `sandbox policy rules` shows it.
    pub what: String,
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The text by which `sandbox policy forget` finds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The option that a run needs for it to have an effect, if no policy sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts_with: Option<String>,
    /// Why it was not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Questions that were denied because too many were waiting for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnaskedQuestions {
    pub count: u64,
    /// How many may wait: the limit that the last of them exceeded.
    pub limit: u64,
}

/// A limit and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitReport {
    /// The option's name, such as `memory`.
    pub name: String,
    /// The policy key.
    pub key: String,
    /// In the key's own unit.
    pub value: u64,
    pub holder: String,
    /// `hard` or `sampled`.
    pub grip: String,
    /// The measured overshoot.
    pub overshoot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reached {
    /// The usage at that time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<u64>,
    /// How often the layer had to act, where it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Whether it stopped the run.
    pub ended_the_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedCalls {
    pub name: String,
    pub number: u32,
    pub count: u64,
    pub suspicious: bool,
    /// What it would have done, where the name of the call does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The policy key that refused them, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The last program that tried it.
    pub executable: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtectedWrite {
    pub path: String,
    /// The protected name, or the setting.
    pub rule: String,
    pub why: String,
    /// The system call of the first attempt.
    pub call: String,
    pub executable: String,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedExecution {
    pub path: String,
    /// The policy key.
    pub rule: String,
    /// The system call of the first attempt.
    pub call: String,
    /// The first program that tried it.
    pub executable: String,
    pub count: u64,
}

/// A path outside the view that was accessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TouchedPath {
    pub path: String,
    /// The directory that has to be writable for what was denied: creating, renaming and removing change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// `read` or `execute`; `write` where writing was requested.
    pub access: String,
    pub is_directory: bool,
    pub is_secret: bool,
    /// Who or what decided.
    pub by: String,
    /// The last program that accessed it.
    pub executable: String,
    pub count: u64,
}

/// Files that the command wrote to its private home directory, and that were discarded with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscardedFiles {
    /// The home directory.
    pub home: String,
    /// The number of all files.
    pub count: u64,
    /// How many of them are caches, histories and the like, which tools leave in every home directory.
    pub leftovers: u64,
    /// The first of the remaining ones.
    pub paths: Vec<String>,
    /// Those of these paths that exist outside: the run changed its copy.
    #[serde(default)]
    pub copies: Vec<String>,
    /// Whether the whole directory was scanned.
    pub is_complete: bool,
}

/// The confinement, in the policy's own terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedConfinement {
    pub level: String,
    pub view: String,
    pub mode: String,
    pub network: String,
    pub identity: ReportedIdentity,
}

/// The command's ids inside and outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedIdentity {
    pub inside_uid: u32,
    pub inside_gid: u32,
    pub outside_uid: u32,
    pub outside_gid: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromiseReport {
    pub id: String,
    pub what: String,
    /// The layers that enforce it: each a part of it, or as a second line behind another one.
    pub layers: Vec<String>,
    pub planned: Planned,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The errno that the probe got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_errno: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Planned {
    Held,
    /// Only a hint: a program can bypass it on purpose.
    Advisory,
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Observed {
    Held,
    NotProbed,
}

/// One probe of the confinement by the child, before the command started (ESC-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    pub probe: String,
    pub expected: String,
    pub observed: String,
    pub ok: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    pub palisade: String,
    pub kernel: String,
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
