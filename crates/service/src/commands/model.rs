//! A command, as the service shows it.

use jiff::Timestamp;
use palisade_record::CommandDigest;
use palisade_session::sessions::CommandEnd;
use palisade_session::supervise::interface::{CommandDetails, CommandId, TerminalSize};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CommandList {
    /// Oldest first.
    pub(crate) commands: Vec<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommandState {
    Running,
    /// By itself, with an exit code.
    Exited,
    /// By a signal.
    Signalled,
    /// Nothing of it ran.
    Failed,
    /// Its sandbox was killed, and the command with it.
    Lost,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// Counted from 1 in each sandbox.
    pub number: u64,
    pub state: CommandState,
    /// The beginning of its command line, with secrets masked.
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
    /// Whether its output can be read here; otherwise somebody waits for it who has its streams.
    pub is_held: bool,
    pub has_terminal: bool,
    /// Written so far, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

impl Command {
    pub(super) fn running(details: &CommandDetails) -> Self {
        Self {
            state: CommandState::Running,
            command: details.text.clone(),
            running_ms: Some(details.running_ms),
            is_held: details.held.is_some(),
            has_terminal: details.held.is_some_and(|held| held.has_terminal),
            output_bytes: details.held.map(|held| held.output_bytes),
            ..Self::lost(details.command)
        }
    }

    pub(super) fn ended(command: CommandId, end: CommandEnd) -> Self {
        let state = match (end.signal, &end.message) {
            (Some(_), _) => CommandState::Signalled,
            (None, Some(_)) => CommandState::Failed,
            (None, None) => CommandState::Exited,
        };
        Self {
            state,
            command: end.command,
            exit_code: end.exit_code,
            signal: end.signal,
            message: end.message,
            started_at: Some(end.started_at),
            ended_at: Some(end.ended_at),
            has_terminal: end.has_terminal,
            ..Self::lost(command)
        }
    }

    /// All that is known is that it was there.
    pub(super) fn lost(command: CommandId) -> Self {
        Self {
            number: command.0,
            state: CommandState::Lost,
            command: String::new(),
            exit_code: None,
            signal: None,
            message: None,
            started_at: None,
            ended_at: None,
            running_ms: None,
            is_held: true,
            has_terminal: false,
            output_bytes: None,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Just started.
    pub(super) fn started(command: CommandId, argv: &[String], has_terminal: bool) -> Self {
        Self {
            state: CommandState::Running,
            command: CommandDigest::of(argv).preview().to_owned(),
            has_terminal,
            ..Self::lost(command)
        }
    }
}

/// Of a terminal.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

impl From<Size> for TerminalSize {
    fn from(Size { rows, columns }: Size) -> Self {
        Self { rows, columns, pixel_width: 0, pixel_height: 0 }
    }
}
