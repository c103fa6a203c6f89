//! The report of one run: how it ended, what it used, and what held each promise.
//!
//! It repeats what others planned and observed and keeps the two apart; it judges nothing itself.

use crate::digest::Digest;
use crate::error::RecordError;
use crate::event::{Approval, SignalForwarded};
use crate::network_report::NetworkReport;
use crate::outcome::{Failure, Outcome};
use crate::{escape, redact};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// Raised when a field changes its meaning or goes away, not when one is added.
const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    pub schema: u32,
    pub session_id: String,
    pub started_at: Timestamp,
    /// With its secrets masked.
    pub command: Vec<String>,
    pub command_hash: Digest,
    pub outcome: Outcome,
    /// What `sandbox run` itself returns.
    pub exit_code: i32,
    /// The signal that ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReportedUsage>,
    /// Every limit of the run: who held it, how firmly, and whether it was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReport>,
    /// None where the run ended before it was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walls: Option<ReportedConfinement>,
    pub promises: Vec<PromiseReport>,
    pub self_check: Vec<ProbeReport>,
    /// Every way in which the run was weaker than its defaults.
    pub relaxations: Vec<String>,
    /// Anything else a reader should know.
    pub notes: Vec<String>,
    pub signals_forwarded: Vec<SignalForwarded>,
    /// System calls that were refused and told, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_calls: Vec<BlockedCalls>,
    /// The number of suspicious ones at which the run was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by_blocked_calls: Option<u64>,
    /// Writes that were refused because the host would run later what they make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_writes: Vec<ProtectedWrite>,
    /// Programs that the policy does not let be executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_executions: Vec<RefusedExecution>,
    /// What was granted while the command ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted_paths: Vec<TouchedPath>,
    /// What was touched and not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_paths: Vec<TouchedPath>,
    /// Variables that were not passed on because their names look like those of secrets; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_variables: Vec<String>,
    /// None where there was a way out, or nothing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_attempts: Option<OfflineAttempts>,
    /// What somebody answered for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved_answers: Vec<SavedAnswer>,
    /// Denied, though somebody could have been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unasked_questions: Option<UnaskedQuestions>,
    /// What was written to the private home directory; none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_files: Option<DiscardedFiles>,
    /// None where there was no way out that could be told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// Sockets left in directories of the host: a program there that connects talks to the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets_made: Vec<String>,
    /// Directories that the command could write on the host and not inside, and tried to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_only_directories: Vec<String>,
    pub approvals: Vec<Approval>,
    pub versions: Versions,
}

impl RunReport {
    /// Of a run that has not got anywhere yet; the caller fills in what becomes known.
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
            protected_writes: Vec::new(),
            refused_executions: Vec::new(),
            granted_paths: Vec::new(),
            denied_paths: Vec::new(),
            removed_variables: Vec::new(),
            offline_attempts: None,
            saved_answers: Vec::new(),
            unasked_questions: None,
            discarded_files: None,
            network: None,
            sockets_made: Vec::new(),
            read_only_directories: Vec::new(),
            approvals: Vec::new(),
            versions,
        }
    }

    /// Indented JSON with a newline at its end.
    pub fn to_json(&self) -> Result<String, RecordError> {
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
    /// `cgroup-v2` and `cgroup-v1` count all there is; `processes` is what could be seen of them, and of the
    /// memory then only that of the largest one.
    pub counted_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// When it was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Threads counted as well.
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

/// What a run without a network did to reach one, as the kernel counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfflineAttempts {
    /// Packets and connections to addresses that nothing leads to.
    pub unreachable: u64,
    /// Datagrams that nobody listened for, as questions to a name server are.
    pub unanswered: u64,
}

/// An answer that was kept for good, or was to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedAnswer {
    /// As `sandbox policy rules` shows it.
    pub what: String,
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What `sandbox policy forget` knows it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The option that a run has to have for it to count, where no policy says as much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts_with: Option<String>,
    /// Why it was not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Questions that were denied because too many were open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnaskedQuestions {
    pub count: u64,
    /// Open at once.
    pub limit: u64,
}

/// A limit and what became of it.
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
    /// How far past it runs got when that was measured.
    pub overshoot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reached {
    /// What was used at that moment, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<u64>,
    /// How often the holder had to act, where it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Whether it ended the run.
    pub ended_the_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedCalls {
    pub name: String,
    pub number: u32,
    pub count: u64,
    pub suspicious: bool,
    /// What it would have done, where the name of the call does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The policy key that refused them, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The last program that tried.
    pub executable: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtectedWrite {
    pub path: String,
    /// The name on the list, or the setting.
    pub rule: String,
    pub why: String,
    /// The system call of the first try.
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
    /// The system call of the first try.
    pub call: String,
    /// The program that tried first.
    pub executable: String,
    pub count: u64,
}

/// Something outside the view that was touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TouchedPath {
    pub path: String,
    /// `read` or `execute`; `write` where that was wanted and is not granted.
    pub access: String,
    pub is_directory: bool,
    pub is_secret: bool,
    /// Who or what decided.
    pub by: String,
    /// The last program that touched it.
    pub executable: String,
    pub count: u64,
}

/// Files that the command wrote to a home directory of its own, and that went with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscardedFiles {
    /// The home directory.
    pub home: String,
    /// All of them.
    pub count: u64,
    /// Of those, caches, histories and the like, which tools leave in every home directory.
    pub leftovers: u64,
    /// The first of the others.
    pub paths: Vec<String>,
    /// Of these paths, files that exist outside: the run changed its copy.
    #[serde(default)]
    pub copies: Vec<String>,
    /// Whether all of the directory was looked at.
    pub is_complete: bool,
}

/// The policy's own names for what was put up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedConfinement {
    pub level: String,
    pub view: String,
    pub mode: String,
    pub network: String,
    pub identity: ReportedIdentity,
}

/// Who the command was, seen from each side of the wall.
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
    /// What holds it together: each layer holds a part of it, or stands behind another one.
    pub layers: Vec<String>,
    pub planned: Planned,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// What the probe got from the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_errno: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Planned {
    Held,
    /// Only a hint: a program that wants to can get past it.
    Advisory,
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Observed {
    Held,
    NotProbed,
}

/// One attempt of the child at a wall, before the command started (ESC-2).
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
