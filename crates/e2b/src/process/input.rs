//! What commands read: typed by the answer that follows a command, if there is one here, and otherwise by a connection of our own.

use super::model::{Input, InputMessage, InputPart, SelectMessage};
use super::signal::held;
use crate::connect::{Call, client_stream, unary};
use crate::error::{Code, RpcError};
use crate::face::{Face, Shared};
use crate::running::{Selector, Typed};
use axum::extract::State;
use axum::response::Response;
use palisade_service::ControlConnection;
use palisade_session::supervise::interface::{
    AttachRole, CommandId, OutputStart, Request, Response as Answered,
};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Of one request to the supervisor.
const MAX_INPUT: usize = 64 << 10;
/// A client that has just gone is still taken for the one who types.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn send_input(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: InputMessage| async move {
        type_all(&face, &sandbox.id, &message.process, message.input).await?;
        Ok(json!({}))
    })
    .await
}

pub(super) async fn stream_input(State(face): State<Shared>, call: Call) -> Response {
    let selected: Arc<Mutex<Option<Selector>>> = Arc::default();
    let shared = Arc::clone(&face);
    client_stream(&face, call, move |sandbox, part: InputPart| {
        let (face, selected) = (Arc::clone(&shared), Arc::clone(&selected));
        async move {
            let current = || selected.lock().unwrap_or_else(PoisonError::into_inner);
            match part {
                InputPart::Start(SelectMessage { process }) => {
                    let command = face.running.select(&sandbox.id, &process)?;
                    held(&face, &sandbox.id, command).await?;
                    *current() = Some(process);
                    Ok(())
                }
                InputPart::Data { input } => {
                    let process = current().clone();
                    let process = process.ok_or_else(|| {
                        RpcError::invalid("the first message says which command is meant")
                    })?;
                    type_all(&face, &sandbox.id, &process, input).await
                }
                InputPart::Keepalive {} => Ok(()),
            }
        }
    })
    .await
}

pub(super) async fn close_input(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: SelectMessage| async move {
        let command = face.running.select(&sandbox.id, &message.process)?;
        if held(&face, &sandbox.id, command).await? {
            let what = "a terminal is not closed; send Ctrl-D (\\x04) to end what is typed";
            return Err(RpcError::new(Code::FailedPrecondition, what));
        }
        type_part(&face, &sandbox.id, command, Typed::End).await?;
        Ok(json!({}))
    })
    .await
}

async fn type_all(
    face: &Face,
    sandbox: &str,
    process: &Selector,
    input: Input,
) -> Result<(), RpcError> {
    let command = face.running.select(sandbox, process)?;
    let has_terminal = held(face, sandbox, command).await?;
    let bytes = match (input, has_terminal) {
        (Input::Stdin(bytes), false) | (Input::Pty(bytes), true) => bytes,
        (Input::Stdin(_), true) => {
            return Err(RpcError::invalid("the command has a terminal; send pty"));
        }
        (Input::Pty(_), false) => {
            return Err(RpcError::invalid("the command has no terminal; send stdin"));
        }
    };
    for part in bytes.chunks(MAX_INPUT) {
        type_part(face, sandbox, command, Typed::Bytes(part.to_vec())).await?;
    }
    Ok(())
}

async fn type_part(
    face: &Face,
    sandbox: &str,
    command: CommandId,
    mut typed: Typed,
) -> Result<(), RpcError> {
    let typist = face.running.get(sandbox, command).and_then(|known| known.typist);
    if let Some(typist) = typist {
        let (asked, answered) = oneshot::channel();
        match typist.send((typed, asked)).await {
            Ok(()) => {
                return match answered.await {
                    Ok(answer) => answer,
                    // It has ended, and nobody else may have typed this for us.
                    Err(_) => Err(RpcError::new(Code::FailedPrecondition, "the command has ended")),
                };
            }
            Err(unsent) => typed = unsent.0.0,
        }
    }
    let (directory, _) = face.host.find(sandbox).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    let (from, role) = (OutputStart::Now, AttachRole::Type);
    let attach = Request::Attach { command: Some(command), from, role };
    for _ in 0..TRIES {
        match connection.ask(&attach, &[]).await? {
            Answered::Attached(attached) if attached.is_typist => {
                let request = match typed {
                    Typed::Bytes(bytes) => Request::Input { command, bytes },
                    Typed::End => Request::CloseInput { command },
                };
                connection.ask(&request, &[]).await?;
                return Ok(());
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    let what = "the command reads nothing (start it with stdin), or somebody else types into it";
    Err(RpcError::new(Code::FailedPrecondition, what))
}
