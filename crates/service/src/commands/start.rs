//! Starts a command: in the background, where its output is kept, or waited for.

use super::model::Command;
use super::new_command::NewCommand;
use super::wait_for_start;
use super::waited::{self, CommandResult};
use crate::caller_span::CallerSpan;
use crate::control::ControlConnection;
use crate::extract::{IdempotencyKey, Json};
use crate::idempotency::{Claim, MadeAnswer};
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::interface::{
    CommandId, CommandStreams, HeldStreams, Request, Response as Answer, StartCommand, TerminalSize,
};
use palisade_session::{SessionError, quarantine, transaction};
use std::ffi::OsString;
use std::sync::Arc;

/// Its exec is milliseconds away.
const START_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Start a command
///
/// In the background (201), where both outputs are kept, apart if `separateStderr` says so, and the command outlives this server; or with
/// `wait` (200), with the two outputs apart. A repetition with the same `Idempotency-Key` gets the first answer.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("Idempotency-Key" = Option<String>, Header, description = "A name for this request, in case it has to be repeated")), request_body = NewCommand, responses((status = 201, body = Command, description = "It runs"), (status = 200, body = CommandResult, description = "It has ended")))]
pub(crate) async fn start_command(
    State(service): State<Shared>,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    caller: CallerSpan,
    Json(mut wanted): Json<NewCommand>,
) -> Result<Response, Problem> {
    wanted.check()?;
    let (directory, _) = service.find(&id).await?;
    let scope = format!("command {}", directory.id());
    let mut first = match service.keys.claim(&scope, key.as_deref(), &wanted)? {
        Claim::Repeat(response) => return Ok(response),
        Claim::CarryOut(first) => first,
    };
    // After the key: a repetition is another span of its client's.
    caller.put(&mut wanted.environment);
    if wanted.wait {
        let place = service.waiting_place()?;
        prepare(&service, &directory, &wanted.argv).await?;
        // If the client goes, the command has run, and its end is not known here.
        first.begun();
        let result = match waited::run(&directory, &wanted).await {
            Err(problem) if problem.exit_code().is_some() => {
                first.not_done();
                return Err(problem);
            }
            result => result?,
        };
        drop(place);
        let answer = MadeAnswer::json(StatusCode::OK, &result)?;
        first.answered(&answer);
        return Ok(answer.into_response());
    }
    // Goes on if the client is gone: who repeats the request gets this command.
    let task = tokio::spawn(async move {
        let started = in_background(&service, &directory, &wanted).await?;
        let answer = MadeAnswer::json(StatusCode::CREATED, &started)?;
        first.answered(&answer);
        Ok(answer)
    });
    let answer = task.await.map_err(|error| Problem::internal(error.to_string()))?;
    answer.map(MadeAnswer::into_response)
}

/// What is done before each command, as `sandbox exec` does it.
pub(super) async fn prepare(
    service: &Shared,
    directory: &Arc<SessionDirectory>,
    argv: &[String],
) -> Result<(), Problem> {
    let directory = Arc::clone(directory);
    let argv = argv.iter().map(OsString::from).collect::<Vec<_>>();
    service
        .blocking(move |service| {
            quarantine::check(&service.places, None, &argv)?;
            transaction::before_command(&directory)?;
            Ok::<_, SessionError>(())
        })
        .await
}

/// Starts it, and leaves it to the session. It must have been checked.
pub(crate) async fn in_background(
    service: &Shared,
    directory: &Arc<SessionDirectory>,
    wanted: &NewCommand,
) -> Result<Command, Problem> {
    prepare(service, directory, &wanted.argv).await?;
    let mut connection = ControlConnection::open(directory).await?;
    let terminal = wanted.terminal.map(TerminalSize::from);
    let has_input = wanted.has_input() && terminal.is_none();
    // Attached from the beginning, so that nobody else types before its first input is there.
    let is_attached = wanted.has_input();
    let streams = CommandStreams::Held(HeldStreams {
        terminal,
        has_input,
        has_stderr_apart: wanted.separate_stderr,
        is_attached,
    });
    let start = Request::StartCommand(wanted.start(streams));
    let command = begin(&mut connection, &start).await?;
    if let Some(text) = &wanted.stdin {
        super::input::send_input(&mut connection, command, text.as_bytes()).await?;
    }
    if has_input && !wanted.keep_stdin_open {
        // It may have ended already.
        let _ = connection.ask(&Request::CloseInput { command }, &[]).await;
    }
    Ok(Command::started(command, &wanted.argv, terminal.is_some()))
}

/// Starts it and waits until it runs.
async fn begin(connection: &mut ControlConnection, start: &Request) -> Result<CommandId, Problem> {
    let Answer::Starting { command } = connection.ask(start, &[]).await? else {
        return Err(Problem::internal("the supervisor gave an answer to something else"));
    };
    let started = tokio::time::timeout(START_PATIENCE, wait_for_start(connection, command));
    started.await.map_err(|_| Problem::timed_out("the command does not start"))??;
    Ok(command)
}

/// Starts a command whose streams the session holds. What it writes comes from the connection, if `wanted` attaches its client.
pub(crate) async fn start_held(
    service: &Shared,
    named: &str,
    argv: &[String],
    wanted: StartCommand,
) -> Result<(ControlConnection, CommandId), Problem> {
    let (directory, _) = service.find(named).await?;
    prepare(service, &directory, argv).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    let command = begin(&mut connection, &Request::StartCommand(wanted)).await?;
    Ok((connection, command))
}
