//! A sandbox, as the service shows it.

use jiff::Timestamp;
use palisade_session::sessions::{SessionDirectory, SessionRecord};
use palisade_session::supervise::interface::SessionStatus;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sandbox {
    /// A UUIDv7: ids sort by time.
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Created, Monitoring while it runs, and at the end Completed, Timeout or Error.
    state: String,
    pub(crate) is_running: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// The root of the project that it works on.
    project: String,
    presets: Vec<String>,
    /// The isolation level, in the word of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// Whether its changes wait to be applied.
    has_transaction: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_to_live_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_time_to_live_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Why it ended, where its state does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<String>,
    /// What it does. Not in lists, and not if it is over or does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<SandboxStatus>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxStatus {
    /// Since its last command ended. None while one runs.
    idle_ms: Option<u64>,
    running_commands: usize,
    /// Questions that wait for an answer.
    questions: u32,
    /// Until its time to live is over.
    expires_in_ms: Option<u64>,
    /// Until it has been idle for too long.
    idle_expires_in_ms: Option<u64>,
    is_ending: bool,
}

impl From<SessionStatus> for SandboxStatus {
    fn from(status: SessionStatus) -> Self {
        Self {
            idle_ms: status.idle_ms,
            running_commands: status.commands.len(),
            questions: status.questions,
            expires_in_ms: status.expires_in_ms,
            idle_expires_in_ms: status.idle_expires_in_ms,
            is_ending: status.is_ending,
        }
    }
}

impl Sandbox {
    /// As far as its files tell.
    pub(crate) fn of(directory: &SessionDirectory, record: SessionRecord) -> Self {
        Self {
            is_running: !record.is_over() && directory.is_alive(),
            state: format!("{:?}", record.state),
            project: record.project.to_string_lossy().into_owned(),
            has_transaction: record.transaction.is_some(),
            time_to_live_seconds: record.time_to_live.seconds,
            idle_time_to_live_seconds: record.time_to_live.idle_seconds,
            id: record.id,
            name: record.name,
            created_at: record.created_at,
            ended_at: record.ended_at,
            presets: record.presets,
            level: record.level,
            exit_code: record.exit_code,
            end_reason: record.end_reason,
            status: None,
        }
    }
}
