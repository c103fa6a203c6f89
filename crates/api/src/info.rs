//! What a sandbox is and does, as its record and its supervisor say.

use crate::connection::PATIENCE;
use crate::error::Result;
use palisade_session::foreground;
use palisade_session::sessions::{SessionDirectory, SessionRecord};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// A sandbox, as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Ids sort by the time of creation.
    pub id: String,
    /// Another word for it.
    pub name: Option<String>,
    /// Of its creation.
    pub created_at: SystemTime,
    /// The root of its project.
    pub project: PathBuf,
    /// The built-in policies that it was made from.
    pub presets: Vec<String>,
    /// Whether changes of its project wait to be applied.
    pub has_transaction: bool,
    /// Where it is in its life.
    pub state: State,
    /// Whether its supervisor lives. If not, the state may be the one in which it was killed.
    pub is_running: bool,
    /// When it is over: as which exit code its end counts.
    pub exit_code: Option<i32>,
    /// Why it ended, where its state does not say it.
    pub end_reason: Option<String>,
    /// What it does. Only [`crate::Sandbox::info`] asks it, and it may not answer.
    pub status: Option<Status>,
}

/// Where a sandbox is in its life (docs/sessions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is being set up.
    Created,
    /// Its commands can be started.
    Running,
    /// It was ended.
    Completed,
    /// Its time was over.
    Timeout,
    /// It failed, or was killed.
    Error,
}

/// What a sandbox does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How many commands run.
    pub commands: usize,
    /// How many questions wait for an answer.
    pub questions: u32,
    /// Since its last command ended. None while one runs.
    pub idle: Option<Duration>,
    /// Until its time is over, if it has such a time.
    pub expires_in: Option<Duration>,
    /// Whether it was asked to end.
    pub is_ending: bool,
}

impl Info {
    pub(crate) fn of(directory: &SessionDirectory, record: SessionRecord) -> Self {
        let is_running = !record.is_over() && directory.is_alive();
        Self {
            id: record.id,
            name: record.name,
            created_at: record.created_at.into(),
            project: record.project,
            presets: record.presets,
            has_transaction: record.transaction.is_some(),
            state: record.state.into(),
            is_running,
            exit_code: record.exit_code,
            end_reason: record.end_reason,
            status: None,
        }
    }
}

impl From<palisade_record::State> for State {
    fn from(state: palisade_record::State) -> Self {
        use palisade_record::State as Recorded;
        match state {
            Recorded::Created | Recorded::Initialized => Self::Created,
            Recorded::Running | Recorded::Monitoring => Self::Running,
            Recorded::Completed | Recorded::Cleanup => Self::Completed,
            Recorded::Timeout => Self::Timeout,
            Recorded::Error => Self::Error,
        }
    }
}

pub(crate) fn status(directory: &SessionDirectory) -> Result<Status> {
    let status = foreground::status(directory, PATIENCE)?;
    let first = [status.expires_in_ms, status.idle_expires_in_ms].into_iter().flatten().min();
    Ok(Status {
        commands: status.commands.len(),
        questions: status.questions,
        idle: status.idle_ms.map(Duration::from_millis),
        expires_in: first.map(Duration::from_millis),
        is_ending: status.is_ending,
    })
}
