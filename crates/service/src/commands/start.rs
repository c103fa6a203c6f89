//! Starts a command: in the background, where its output is kept, or waited for, with its two outputs apart.

use super::input::MAX_INPUT;
use super::model::Command;
use super::wait_for_start;
use super::waited::{self, CommandResult};
use crate::control::ControlConnection;
use crate::extract::{IdempotencyKey, Json};
use crate::idempotency::{Claim, FirstRequest, MadeAnswer};
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use palisade_session::sessions::{SessionDirectory, SessionRecord};
use palisade_session::supervise::interface::{
    CommandStreams, Environment, HeldStreams, Request, Response as Answer, StartCommand,
    TerminalSize,
};
use palisade_session::{SessionError, quarantine, transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::ToSchema;

/// Its exec is milliseconds away.
const START_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewCommand {
    /// The program, looked up in `PATH` inside, and its arguments. No shell reads them: for one, give `["sh", "-c", "…"]`.
    #[schema(min_items = 1, example = json!(["make", "test"]))]
    pub(super) argv: Vec<String>,
    /// Variables on top of those of the sandbox.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// The working directory, instead of that of the sandbox.
    #[schema(value_type = Option<String>)]
    cwd: Option<PathBuf>,
    /// Answer when the command has ended, with what it wrote. It ends with the request: if the client goes, it gets SIGHUP.
    #[serde(default)]
    pub(super) wait: bool,
    /// What it reads. Without `wait`, more can be sent later if `keepStdinOpen` is set.
    pub(super) stdin: Option<String>,
    /// Without `wait`: do not end its input. It ends with a request to `stdin`.
    #[serde(default)]
    keep_stdin_open: bool,
    /// Without `wait`: give it a terminal of this size.
    terminal: Option<Size>,
    /// With `wait`: end the command after this time.
    #[schema(minimum = 1)]
    pub(super) timeout_seconds: Option<u64>,
    /// With `wait`: how much of each output to answer with, at most 4 MiB; 1 MiB if nothing is said. The rest is counted.
    pub(super) max_output_bytes: Option<usize>,
}

/// Of a terminal.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    rows: u16,
    columns: u16,
}

impl From<Size> for TerminalSize {
    fn from(Size { rows, columns }: Size) -> Self {
        Self { rows, columns, pixel_width: 0, pixel_height: 0 }
    }
}

impl NewCommand {
    fn check(&self) -> Result<(), Problem> {
        let has_nul = |text: &str| text.contains('\0');
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(Problem::invalid("argv: name a program"));
        }
        if self.argv.iter().any(|word| has_nul(word)) {
            return Err(Problem::invalid("argv: an argument cannot have a NUL character"));
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains('=') || has_nul(name) || has_nul(value) {
                return Err(Problem::invalid(format!("environment: `{name}` is no variable")));
            }
        }
        let is_long = self.stdin.as_ref().is_some_and(|text| text.len() > MAX_INPUT);
        if is_long && !self.wait {
            return Err(Problem::too_large(format!(
                "stdin: at most {} KiB at the start of a command that is not waited for; send the rest later",
                MAX_INPUT >> 10
            )));
        }
        let only_waited = self.timeout_seconds.is_some() || self.max_output_bytes.is_some();
        match self.wait {
            true if self.terminal.is_some() || self.keep_stdin_open => Err(Problem::invalid(
                "terminal and keepStdinOpen go with a command that is not waited for",
            )),
            false if only_waited => {
                Err(Problem::invalid("timeoutSeconds and maxOutputBytes go with `wait`"))
            }
            _ if self.timeout_seconds == Some(0) => {
                Err(Problem::invalid("timeoutSeconds: at least 1"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn start(&self, streams: CommandStreams) -> StartCommand {
        let bytes = |text: &String| text.clone().into_bytes();
        let mut environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
        if self.terminal.is_some() && !self.environment.contains_key("TERM") {
            environment.push((b"TERM".to_vec(), b"xterm-256color".to_vec()));
        }
        StartCommand {
            argv: self.argv.iter().map(bytes).collect(),
            environment: Environment::Extended(environment),
            cwd: self.cwd.clone(),
            umask: None,
            rlimits: Vec::new(),
            streams,
        }
    }

    fn has_input(&self) -> bool {
        self.keep_stdin_open || self.stdin.is_some()
    }
}

/// Start a command
///
/// In the background (201), where both outputs are kept together and the command outlives this server; or with `wait` (200), with the two
/// outputs apart. A repetition with the same `Idempotency-Key` gets the first answer.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("Idempotency-Key" = Option<String>, Header, description = "A name for this request, in case it has to be repeated")), request_body = NewCommand, responses((status = 201, body = Command, description = "It runs"), (status = 200, body = CommandResult, description = "It has ended")))]
pub(crate) async fn start_command(
    State(service): State<Shared>,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(wanted): Json<NewCommand>,
) -> Result<Response, Problem> {
    wanted.check()?;
    let (directory, record) = service.find(&id).await?;
    let scope = format!("command {}", directory.id());
    let first = match service.keys.claim(&scope, key.as_deref(), &wanted)? {
        Claim::Repeat(response) => return Ok(response),
        Claim::CarryOut(first) => first,
    };
    if wanted.wait {
        let place = service.waiting_place()?;
        prepare(&service, &directory, record, &wanted).await?;
        let result = waited::run(&directory, &wanted).await?;
        drop(place);
        let answer = MadeAnswer::json(StatusCode::OK, &result)?;
        first.answered(&answer);
        return Ok(answer.into_response());
    }
    // Goes on if the client is gone: who repeats the request gets this command.
    let task = tokio::spawn(in_background(service, directory, record, wanted, first));
    let answer = task.await.map_err(|error| Problem::internal(error.to_string()))?;
    answer.map(MadeAnswer::into_response)
}

/// What is done before each command, as `sandbox exec` does it.
async fn prepare(
    service: &Shared,
    directory: &Arc<SessionDirectory>,
    record: SessionRecord,
    wanted: &NewCommand,
) -> Result<(), Problem> {
    let directory = Arc::clone(directory);
    let argv = wanted.argv.iter().map(OsString::from).collect::<Vec<_>>();
    service
        .blocking(move |service| {
            quarantine::check(&service.places, None, &argv)?;
            transaction::before_command(&service.places, &directory, &record)?;
            Ok::<_, SessionError>(())
        })
        .await
}

async fn in_background(
    service: Shared,
    directory: Arc<SessionDirectory>,
    record: SessionRecord,
    wanted: NewCommand,
    first: FirstRequest,
) -> Result<MadeAnswer, Problem> {
    prepare(&service, &directory, record, &wanted).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    let terminal = wanted.terminal.map(TerminalSize::from);
    let has_input = wanted.has_input() && terminal.is_none();
    // Attached from the beginning, so that nobody else types before its first input is there.
    let is_attached = wanted.has_input();
    let streams = CommandStreams::Held(HeldStreams { terminal, has_input, is_attached });
    let start = Request::StartCommand(wanted.start(streams));
    let Answer::Starting { command } = connection.ask(&start, &[]).await? else {
        return Err(Problem::internal("the supervisor gave an answer to something else"));
    };
    let started = tokio::time::timeout(START_PATIENCE, wait_for_start(&mut connection, command));
    started.await.map_err(|_| Problem::timed_out("the command does not start"))??;
    if let Some(text) = &wanted.stdin {
        super::input::send_input(&mut connection, command, text.as_bytes()).await?;
    }
    if has_input && !wanted.keep_stdin_open {
        // It may have ended already.
        let _ = connection.ask(&Request::CloseInput { command }, &[]).await;
    }
    let started = Command::started(command, &wanted.argv, terminal.is_some());
    let answer = MadeAnswer::json(StatusCode::CREATED, &started)?;
    first.answered(&answer);
    Ok(answer)
}
