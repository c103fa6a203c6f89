//! One command in a sandbox of its own, by one request: made or claimed, run to its end, and gone.

use crate::caller_span::CallerSpan;
use crate::commands::{CommandResult, NewCommand, run_waited};
use crate::control::ControlConnection;
use crate::extract::{IdempotencyKey, Json};
use crate::idempotency::{Claim, MadeAnswer};
use crate::problem::Problem;
use crate::sandboxes::{NewSandbox, claim};
use crate::service::Shared;
use crate::warm::make_claimed;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use palisade_session::quarantine;
use palisade_session::supervise::interface::ClaimSandbox;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use utoipa::ToSchema;

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewRun {
    /// What runs. It is waited for, so `wait` need not be said.
    command: NewCommand,
    /// The sandbox for it, without a transaction: nothing of it is left.
    #[serde(default)]
    sandbox: NewSandbox,
}

/// Run a command in a sandbox of its own
///
/// The sandbox ends with the command, and the command with the request: if the client goes, everything in the sandbox is killed.
#[utoipa::path(post, path = "/v1/runs", tag = "commands", params(("Idempotency-Key" = Option<String>, Header, description = "A name for this request, in case it has to be repeated")), request_body = NewRun, responses((status = 200, body = CommandResult, description = "It has ended")))]
pub(crate) async fn start_run(
    State(service): State<Shared>,
    IdempotencyKey(key): IdempotencyKey,
    caller: CallerSpan,
    Json(mut wanted): Json<NewRun>,
) -> Result<Response, Problem> {
    wanted.command.wait = true;
    wanted.command.check()?;
    if wanted.sandbox.transaction.is_some() {
        let why = "sandbox.transaction: nothing of the sandbox of a run is left; make a sandbox, and start a command in it";
        return Err(Problem::invalid(why));
    }
    let mut first = match service.keys.claim("run", key.as_deref(), &wanted)? {
        Claim::Repeat(response) => return Ok(response),
        Claim::CarryOut(first) => first,
    };
    let place = service.waiting_place()?;
    let argv = wanted.command.argv.iter().map(OsString::from).collect::<Vec<_>>();
    service.blocking(move |service| quarantine::check(&service.places, None, &argv)).await?;
    let connection = sandbox(&service, &wanted.sandbox, caller).await?;
    service.counters.sandbox_made();
    // If the client goes, the command has run, and its end is not known here.
    first.begun();
    let result = match run_waited(connection, &wanted.command).await {
        Err(problem) if problem.exit_code().is_some() => {
            first.not_done();
            return Err(problem);
        }
        result => result?,
    };
    drop(place);
    let answer = MadeAnswer::json(StatusCode::OK, &result)?;
    first.answered(&answer);
    Ok(answer.into_response())
}

/// It ends with its connection.
async fn sandbox(
    service: &Shared,
    wanted: &NewSandbox,
    caller: CallerSpan,
) -> Result<ControlConnection, Problem> {
    if let Some(claimed) = claim(service, wanted, true, caller.clone()).await {
        return Ok(claimed.connection);
    }
    // Its start is a part of the caller's trace, too.
    let create = wanted.unnamed().invocation(service)?.variables(caller.variables());
    let name = wanted.name.clone();
    let claim = ClaimSandbox { name, is_temporary: true, ..ClaimSandbox::default() };
    make_claimed(&service.program, create, &claim).await
}
