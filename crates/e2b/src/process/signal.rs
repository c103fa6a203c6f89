//! What is done to commands from outside: they are listed, get signals, and a terminal of another size.

use super::model::{SignalMessage, UpdateMessage};
use crate::connect::{Call, unary};
use crate::error::RpcError;
use crate::face::{Face, Shared};
use crate::running::not_found;
use axum::extract::State;
use axum::response::Response;
use palisade_service::ControlConnection;
use palisade_session::supervise::interface::{CommandId, Request};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn list(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, _: Nothing| async move {
        let running = face.host.running(&sandbox.id).await?;
        // Others are work on files, or belong to who waits for them elsewhere.
        let held = running.into_iter().filter(|details| details.held.is_some());
        let processes: Vec<Value> = held
            .map(|details| match face.running.get(&sandbox.id, details.command) {
                Some(known) => {
                    let mut process = json!({ "pid": details.command.0, "config": known.config });
                    if let Some(tag) = known.tag {
                        process["tag"] = tag.into();
                    }
                    process
                }
                // Another server started it: all that is known is the beginning of its line.
                None => json!({ "pid": details.command.0, "config": { "cmd": details.text } }),
            })
            .collect();
        Ok(json!({ "processes": processes }))
    })
    .await
}

/// Whether a command that runs has a terminal. An error: there is none of this number.
pub(super) async fn held(face: &Face, sandbox: &str, command: CommandId) -> Result<bool, RpcError> {
    let running = face.host.running(sandbox).await?;
    let held = running.iter().find(|details| details.command == command).and_then(|it| it.held);
    held.map(|held| held.has_terminal).ok_or_else(|| not_found(command))
}

/// To its whole process group.
pub(super) async fn send(
    face: &Face,
    sandbox: &str,
    command: CommandId,
    signal: i32,
) -> Result<(), RpcError> {
    ask(face, sandbox, command, Request::Signal { command, signal }).await
}

async fn ask(
    face: &Face,
    sandbox: &str,
    command: CommandId,
    request: Request,
) -> Result<(), RpcError> {
    held(face, sandbox, command).await?;
    let (directory, _) = face.host.find(sandbox).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    match connection.ask(&request, &[]).await {
        Ok(_) => Ok(()),
        Err(problem) if problem.is_not_found() => Err(not_found(command)),
        Err(problem) => Err(problem.into()),
    }
}

pub(super) async fn send_signal(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: SignalMessage| async move {
        let signal = message.signal();
        let signal = signal.ok_or_else(|| RpcError::invalid("signal: SIGTERM or SIGKILL"))?;
        let command = face.running.select(&sandbox.id, &message.process)?;
        send(&face, &sandbox.id, command, signal).await?;
        Ok(json!({}))
    })
    .await
}

pub(super) async fn update(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: UpdateMessage| async move {
        let command = face.running.select(&sandbox.id, &message.process)?;
        match message.pty {
            None => held(&face, &sandbox.id, command).await.map(drop)?,
            Some(pty) => {
                let resize = Request::ResizeTerminal { command, size: pty.size() };
                ask(&face, &sandbox.id, command, resize).await?;
            }
        }
        Ok(json!({}))
    })
    .await
}
