//! What a client does to a command that runs: types, sends signals, and changes the size of its terminal.

use super::model::Size;
use super::new_command::MAX_INPUT;
use super::{CommandPath, Known};
use crate::control::ControlConnection;
use crate::extract::Json;
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_session::supervise::interface::{
    AttachRole, CommandId, OutputStart, Request, Response,
};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum InputEncoding {
    #[default]
    Text,
    Base64,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// At most 64 KiB.
    #[serde(default)]
    data: String,
    #[serde(default)]
    encoding: InputEncoding,
    /// Nothing comes after this: the command's input ends. A terminal has a key for that (`\u0004`).
    #[serde(default)]
    close: bool,
}

/// Send a command what it reads
///
/// To its terminal, or to its input if it was started with `keepStdinOpen`. If the command has not read what was sent before, the answer
/// is 409.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{number}/stdin", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command")), request_body = Input, responses((status = 204, description = "It was taken")))]
pub(crate) async fn write_stdin(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
    Json(input): Json<Input>,
) -> Result<StatusCode, Problem> {
    let bytes = match input.encoding {
        InputEncoding::Text => input.data.into_bytes(),
        InputEncoding::Base64 => STANDARD
            .decode(input.data)
            .map_err(|error| Problem::invalid(format!("data: no base64: {error}")))?,
    };
    let mut connection = connect(&service, &id, command).await?;
    let (from, role) = (OutputStart::Now, AttachRole::Type);
    let attach = Request::Attach { command: Some(command), from, role };
    match connection.ask(&attach, &[]).await? {
        Response::Attached(attached) if attached.is_typist => {}
        _ => {
            return Err(Problem::conflict(
                "the command reads nothing, or somebody else types into it",
            ));
        }
    }
    send_input(&mut connection, command, &bytes).await?;
    if input.close {
        match connection.ask(&Request::CloseInput { command }, &[]).await {
            // It took what it was sent, and has ended.
            Err(problem) if problem.is_not_found() && !bytes.is_empty() => {}
            answer => drop(answer?),
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// In one request: either all of it is taken or nothing.
pub(super) async fn send_input(
    connection: &mut ControlConnection,
    command: CommandId,
    bytes: &[u8],
) -> Result<(), Problem> {
    if bytes.is_empty() {
        return Ok(());
    }
    if bytes.len() > MAX_INPUT {
        return Err(Problem::too_large(format!("at most {} KiB at a time", MAX_INPUT >> 10)));
    }
    connection.ask(&Request::Input { command, bytes: bytes.to_vec() }, &[]).await?;
    Ok(())
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalName {
    /// Such as `TERM`, `SIGINT` or `10`.
    signal: String,
}

/// Send a command a signal
///
/// To its whole process group.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{number}/signal", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command")), request_body = SignalName, responses((status = 204, description = "It was sent")))]
pub(crate) async fn signal_command(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
    Json(wanted): Json<SignalName>,
) -> Result<StatusCode, Problem> {
    let signal = number_of(&wanted.signal)
        .ok_or_else(|| Problem::invalid(format!("`{}` is no signal", wanted.signal)))?;
    let mut connection = connect(&service, &id, command).await?;
    connection.ask(&Request::Signal { command, signal }, &[]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `TERM`, `SIGTERM` and `15` are the same.
fn number_of(text: &str) -> Option<i32> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let known = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("CONT", Signal::CONT),
        ("WINCH", Signal::WINCH),
    ];
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, signal)) => Some(signal.as_raw()),
        None => name.parse().ok().filter(|number| (1..=64).contains(number)),
    }
}

/// Change the size of a command's terminal
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{number}/resize", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command")), request_body = Size, responses((status = 204, description = "It has this size")))]
pub(crate) async fn resize_terminal(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
    Json(size): Json<Size>,
) -> Result<StatusCode, Problem> {
    let mut connection = connect(&service, &id, command).await?;
    connection.ask(&Request::ResizeTerminal { command, size: size.into() }, &[]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// To the sandbox of a command that runs; a problem says whether it ran at all.
async fn connect(
    service: &Shared,
    id: &str,
    command: CommandId,
) -> Result<ControlConnection, Problem> {
    let known = Known::find(service, id).await?;
    if !known.is_running(command) {
        known.command(service, command).await?;
        return Err(Problem::conflict(format!("command {} has ended", command.0)));
    }
    ControlConnection::open(&known.directory).await
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn a_signal_has_a_name_or_a_number() {
        assert_eq!(number_of("TERM"), Some(15));
        assert_eq!(number_of("sigint"), Some(2));
        assert_eq!(number_of("64"), Some(64));
        for wrong in ["", "0", "65", "-1", "NOPE", "SIG"] {
            assert_eq!(number_of(wrong), None, "{wrong}");
        }
    }
}
