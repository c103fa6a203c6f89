//! A sandbox, as the service shows it.

use jiff::Timestamp;
use palisade_session::sessions::{SessionDirectory, SessionRecord};
use palisade_session::supervise::interface::SessionStatus;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// A UUIDv7: ids sort by time.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Created, Monitoring while it runs, and at the end Completed, Timeout or Error.
    pub state: String,
    pub is_running: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// The root of the project that it works on.
    pub project: String,
    pub presets: Vec<String>,
    /// The isolation level, in the word of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Whether its commands have another loopback than the host's. For faces of ours that listen there.
    #[serde(skip)]
    pub has_own_network: bool,
    /// Whether its changes wait to be applied.
    pub has_transaction: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_time_to_live_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended, where its state does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// What it does. Not in lists, and not if it is over or does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SandboxStatus>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxStatus {
    /// Since its last command ended. None while one runs.
    pub idle_ms: Option<u64>,
    pub running_commands: usize,
    /// Questions that wait for an answer.
    pub questions: u32,
    /// Until its time to live is over.
    pub expires_in_ms: Option<u64>,
    /// Until it has been idle for too long.
    pub idle_expires_in_ms: Option<u64>,
    pub is_ending: bool,
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
            has_own_network: record.has_own_network,
            exit_code: record.exit_code,
            end_reason: record.end_reason,
            status: None,
        }
    }
}
