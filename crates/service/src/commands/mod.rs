//! Commands of a sandbox: started, waited for, read, typed into, signalled and cancelled.

mod input;
mod model;
mod new_command;
mod output;
mod start;
mod waited;

pub(crate) use input::{
    __path_resize_terminal, __path_signal_command, __path_write_stdin, resize_terminal,
    signal_command, write_stdin,
};
pub use model::{Command, CommandState, Size};
pub use new_command::NewCommand;
pub use output::KeptOutput;
pub(crate) use output::{__path_read_output, read_output};
pub(crate) use output::{kept_output, until_ended};
pub(crate) use start::{__path_start_command, in_background, start_command, start_held};
pub(crate) use waited::{CommandResult, run_waited};

use crate::control::ControlConnection;
use crate::extract::{Json, Parameters};
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use model::CommandList;
use palisade_session::sessions::{self, SessionDirectory};
use palisade_session::supervise::interface::{CommandDetails, CommandId, Event, Request, Response};
use rustix::process::Signal;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

/// What a command that is cancelled may take before it is killed.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// A sandbox and what runs in it.
pub(crate) struct Known {
    pub(crate) directory: Arc<SessionDirectory>,
    pub(crate) running: Vec<CommandDetails>,
}

impl Known {
    pub(crate) async fn find(service: &Shared, named: &str) -> Result<Self, Problem> {
        let (directory, record) = service.find(named).await?;
        let mut running = Vec::new();
        if !record.is_over() && directory.is_alive() {
            // It may end meanwhile; then nothing runs.
            if let Ok(mut connection) = ControlConnection::open(&directory).await
                && let Response::Inspected(status) = connection.ask(&Request::Inspect, &[]).await?
            {
                running = status.commands;
            }
        }
        Ok(Self { directory, running })
    }

    pub(crate) fn is_running(&self, command: CommandId) -> bool {
        self.running.iter().any(|details| details.command == command)
    }

    /// One command, if anything is known of it.
    pub(crate) async fn command(
        &self,
        service: &Shared,
        command: CommandId,
    ) -> Result<Command, Problem> {
        if let Some(details) = self.running.iter().find(|details| details.command == command) {
            return Ok(Command::running(details));
        }
        let directory = Arc::clone(&self.directory);
        let kept = service.blocking(move |_| kept(&directory, command)).await?;
        kept.ok_or_else(|| {
            Problem::not_found(format!(
                "nothing is known of command {}: it was never started, a request waited for it, or 64 others came after it",
                command.0
            ))
        })
    }
}

/// What the files of the session tell of a command that does not run.
fn kept(
    directory: &SessionDirectory,
    command: CommandId,
) -> Result<Option<Command>, palisade_session::SessionError> {
    if !sessions::logged_commands(directory)?.contains(&command) {
        return Ok(None);
    }
    Ok(Some(match sessions::command_end(directory, command)? {
        Some(end) => Command::ended(command, end),
        None => Command::lost(command),
    }))
}

/// List the commands of a sandbox
///
/// Those that run, and the last 64 of those that ran in the background.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands", tag = "commands", params(("id" = String, Path, description = "The sandbox")), responses((status = 200, body = CommandList)))]
pub(crate) async fn list_commands(
    State(service): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<CommandList>, Problem> {
    let known = Known::find(&service, &id).await?;
    let mut commands: Vec<Command> = known.running.iter().map(Command::running).collect();
    let directory = Arc::clone(&known.directory);
    let kept = service
        .blocking(move |_| {
            let all = sessions::logged_commands(&directory)?;
            all.into_iter().map(|command| kept(&directory, command)).collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let ended = kept.into_iter().flatten();
    commands.extend(ended.filter(|command| !known.is_running(CommandId(command.number))));
    commands.sort_by_key(|command| command.number);
    Ok(Json(CommandList { commands }))
}

/// Look at a command
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{number}", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command")), responses((status = 200, body = Command)))]
pub(crate) async fn get_command(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
) -> Result<Json<Command>, Problem> {
    let known = Known::find(&service, &id).await?;
    Ok(Json(known.command(&service, command).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CancelQuery {
    /// Kill it at once instead of asking it first.
    #[serde(default)]
    kill: bool,
}

/// Cancel a command
///
/// Its process group gets SIGTERM, and SIGKILL if it has not ended after two seconds. The answer comes when it has ended.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/commands/{number}", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command"), CancelQuery), responses((status = 204, description = "It does not run any more")))]
pub(crate) async fn cancel_command(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
    Parameters(query): Parameters<CancelQuery>,
) -> Result<StatusCode, Problem> {
    cancel(&service, &id, command, query.kill).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a command, and returns when it has ended.
pub(crate) async fn cancel(
    service: &Shared,
    id: &str,
    command: CommandId,
    kill: bool,
) -> Result<(), Problem> {
    let known = Known::find(service, id).await?;
    if !known.is_running(command) {
        let ended = known.command(service, command).await?;
        debug_assert_ne!(ended.state, CommandState::Running);
        return Ok(());
    }
    let mut connection = ControlConnection::open(&known.directory).await?;
    let first = if kill { Signal::KILL } else { Signal::TERM };
    for (signal, patience) in [(first, CANCEL_GRACE), (Signal::KILL, CANCEL_GRACE * 5)] {
        match connection.ask(&Request::Signal { command, signal: signal.as_raw() }, &[]).await {
            Ok(_) => {}
            // It has ended in between.
            Err(problem) if problem.is_not_found() => return Ok(()),
            Err(problem) => return Err(problem),
        }
        if timeout(patience, until_gone(&mut connection, command))
            .await
            .is_ok_and(|done| done.is_ok())
        {
            return Ok(());
        }
    }
    Err(Problem::timed_out(format!("command {} has not ended", command.0)))
}

/// Only who started a command or watches it is told of its end, so it is looked for.
async fn until_gone(connection: &mut ControlConnection, command: CommandId) -> Result<(), Problem> {
    const LOOK: Duration = Duration::from_millis(20);
    loop {
        match connection.ask(&Request::Status, &[]).await? {
            Response::Status { commands } if commands.iter().any(|it| it.command == command) => {}
            _ => return Ok(()),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until a command runs, or says why it does not.
async fn wait_for_start(
    connection: &mut ControlConnection,
    command: CommandId,
) -> Result<(), Problem> {
    loop {
        match connection.next_event().await? {
            Event::CommandStarted { command: started, .. } if started == command => return Ok(()),
            Event::CommandFailed { command: failed, exit_code, message } if failed == command => {
                return Err(Problem::invalid(message).with_exit_code(exit_code));
            }
            Event::Ended { .. } => return Err(Problem::conflict("the sandbox has ended")),
            _ => {}
        }
    }
}

/// The two names in the path of a command.
#[derive(Debug)]
pub(crate) struct CommandPath {
    id: String,
    command: CommandId,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for CommandPath {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((id, number)) = path.map_err(|error| Problem::malformed(error.body_text()))?;
        let number = number.parse().map_err(|_| {
            Problem::not_found(format!("`{number}` is not the number of a command"))
        })?;
        Ok(Self { id, command: CommandId(number) })
    }
}
