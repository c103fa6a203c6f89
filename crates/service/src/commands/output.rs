//! What a command in the background wrote, by the number of each byte: what the session has logged, and then what comes.

use super::{CommandPath, Known, kept};
use crate::control::ControlConnection;
use crate::encoding::{Written, whole_characters};
use crate::extract::Parameters;
use crate::problem::Problem;
use crate::service::Shared;
use crate::stream::{self, EventSender, Gone};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use palisade_session::sessions::{OutputReader, SessionDirectory};
use palisade_session::supervise::interface::{
    AttachRole, CommandId, Event, OutputStart, OutputStream, Request, Response as Answer,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Of one event.
const MAX_PART: usize = 64 << 10;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputQuery {
    /// The number of the first byte to send, counted from 0. The header `Last-Event-ID` counts instead if it is there.
    #[serde(default)]
    since: u64,
    /// Go on until the command has ended.
    #[serde(default = "yes")]
    follow: bool,
}

fn yes() -> bool {
    true
}

/// A part of the output.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputPart {
    /// The number of its first byte.
    cursor: u64,
    /// The number of the byte after it, which is the event's id.
    next: u64,
    stream: Stream,
    #[serde(flatten)]
    written: Written,
}

/// Where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stream {
    /// Or to either of both, if they were not kept apart.
    Stdout,
    Stderr,
}

impl From<OutputStream> for Stream {
    fn from(stream: OutputStream) -> Self {
        match stream {
            OutputStream::Stdout => Self::Stdout,
            OutputStream::Stderr => Self::Stderr,
        }
    }
}

/// Bytes that are not kept any more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Dropped {
    from: u64,
    to: u64,
}

/// Read what a command in the background writes
///
/// Server-sent events: `output` with a part of it, `dropped` where bytes are not kept any more, and at last `end` with the command. An event's
/// id is the number of the next byte: who gives it as `since` or `Last-Event-ID` goes on from there, also at another server.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{number}/output", tag = "commands", params(("id" = String, Path, description = "The sandbox"), ("number" = u64, Path, description = "The command"), OutputQuery), responses((status = 200, body = OutputPart, content_type = "text/event-stream")))]
pub(crate) async fn read_output(
    State(service): State<Shared>,
    CommandPath { id, command }: CommandPath,
    Parameters(query): Parameters<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let known = Known::find(&service, &id).await?;
    if !known.command(&service, command).await?.is_held() {
        return Err(Problem::conflict("what it writes goes to the client that waits for it"));
    }
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let since = last.unwrap_or(query.since);
    let directory = Arc::clone(&known.directory);
    let (shared, follow) = (Arc::clone(&service), query.follow);
    stream::respond(&service, move |to| async move {
        let mut output = Output {
            service: shared,
            directory,
            command,
            to,
            next: since,
            stream: Stream::Stdout,
            held: vec![],
        };
        output.send_all(follow).await
    })
}

/// What the session has kept of a command's output, from a byte on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOutput {
    /// The number of the first byte. More than was asked for: what is between is not kept any more.
    pub cursor: u64,
    pub bytes: Vec<u8>,
    /// Whether there is more after these.
    pub has_more: bool,
}

/// At most this many bytes of it.
pub(crate) async fn kept_output(
    service: &Shared,
    directory: &Arc<SessionDirectory>,
    command: CommandId,
    since: u64,
    most: usize,
) -> Result<KeptOutput, Problem> {
    let directory = Arc::clone(directory);
    service
        .blocking(move |_| {
            let mut reader = OutputReader::new(&directory, command, since);
            let mut kept = KeptOutput { cursor: since, bytes: Vec::new(), has_more: false };
            while let Some(chunk) = reader.read()? {
                let next = kept.cursor + kept.bytes.len() as u64;
                if kept.bytes.is_empty() {
                    kept.cursor = chunk.cursor;
                } else if chunk.cursor != next {
                    // Dropped while it was read; the next reading says so.
                    kept.has_more = true;
                    break;
                }
                kept.bytes.extend_from_slice(&chunk.bytes);
                if kept.bytes.len() > most {
                    kept.bytes.truncate(most);
                    kept.has_more = true;
                    break;
                }
            }
            Ok(kept)
        })
        .await
}

/// Waits until a command in the background has ended. May be dropped while it waits.
pub(crate) async fn until_ended(
    directory: &Arc<SessionDirectory>,
    command: CommandId,
) -> Result<(), Problem> {
    let mut connection = match ControlConnection::open(directory).await {
        Ok(connection) => connection,
        // With the sandbox, its commands are over.
        Err(_) if !directory.is_alive() => return Ok(()),
        Err(problem) => return Err(problem),
    };
    let (from, role) = (OutputStart::Now, AttachRole::Watch);
    let attach = Request::Attach { command: Some(command), from, role };
    // A command that has ended cannot be watched.
    if connection.ask(&attach, &[]).await.is_err() {
        return Ok(());
    }
    loop {
        match connection.next_event().await {
            Ok(
                Event::CommandExited { command: of, .. } | Event::CommandFailed { command: of, .. },
            ) if of == command => {
                return Ok(());
            }
            Ok(Event::Ended { .. }) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
}

struct Output {
    service: Shared,
    directory: Arc<SessionDirectory>,
    command: CommandId,
    to: EventSender,
    /// The number of the byte that is sent next.
    next: u64,
    /// Where the bytes below were written.
    stream: Stream,
    /// The beginning of a character whose end is not there yet.
    held: Vec<u8>,
}

impl Output {
    async fn send_all(&mut self, follow: bool) -> Result<(), Gone> {
        self.send_logged().await?;
        if !follow {
            return self.flush().await;
        }
        if let Ok(mut connection) = ControlConnection::open(&self.directory).await {
            let command = Some(self.command);
            let (from, role) = (OutputStart::Byte(self.cursor()), AttachRole::Watch);
            // A command that has ended cannot be watched, and has said everything.
            if let Ok(Answer::Attached(_)) =
                connection.ask(&Request::Attach { command, from, role }, &[]).await
            {
                self.send_live(&mut connection).await?;
            }
        }
        self.send_logged().await?;
        self.flush().await?;
        let (directory, command) = (Arc::clone(&self.directory), self.command);
        let known = self.service.blocking(move |_| kept(&directory, command)).await;
        match known {
            Ok(Some(command)) => self.to.send("end", Some(self.next), &command).await,
            Ok(None) => Ok(()),
            Err(problem) => self.to.send("problem", None, &problem).await,
        }
    }

    /// The number of the byte that comes next.
    fn cursor(&self) -> u64 {
        self.next + self.held.len() as u64
    }

    async fn send_logged(&mut self) -> Result<(), Gone> {
        loop {
            let (directory, command, from) =
                (Arc::clone(&self.directory), self.command, self.cursor());
            let read =
                self.service.blocking(move |_| OutputReader::new(&directory, command, from).read());
            match self.to.until_gone(read).await.ok_or(Gone)? {
                Ok(Some(chunk)) => {
                    for (cursor, stream, bytes) in chunk.parts() {
                        self.take(cursor, stream.into(), bytes).await?;
                    }
                }
                Ok(None) => return Ok(()),
                Err(problem) => return self.to.send("problem", None, &problem).await,
            }
        }
    }

    /// Until the command has ended, or the supervisor says nothing more.
    async fn send_live(&mut self, connection: &mut ControlConnection) -> Result<(), Gone> {
        loop {
            let event = self.to.until_gone(connection.next_event()).await.ok_or(Gone)?;
            match event {
                Ok(Event::Output { command, cursor, stream, bytes }) if command == self.command => {
                    self.take(cursor, stream.into(), &bytes).await?;
                }
                Ok(Event::CommandExited { command, .. } | Event::CommandFailed { command, .. })
                    if command == self.command =>
                {
                    return Ok(());
                }
                Ok(Event::Ended { .. }) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
    }

    async fn take(&mut self, cursor: u64, stream: Stream, bytes: &[u8]) -> Result<(), Gone> {
        if stream != self.stream {
            self.flush().await?;
            self.stream = stream;
        }
        let expected = self.cursor();
        if cursor > expected {
            self.flush().await?;
            self.to.send("dropped", Some(cursor), &Dropped { from: expected, to: cursor }).await?;
            self.next = cursor;
        }
        // What is sent already may come again.
        let known = usize::try_from(expected.saturating_sub(cursor)).unwrap_or(usize::MAX);
        self.held.extend_from_slice(bytes.get(known..).unwrap_or_default());
        let whole = whole_characters(&self.held);
        self.send(whole).await
    }

    /// Whatever there is, whole characters or not.
    async fn flush(&mut self) -> Result<(), Gone> {
        self.send(self.held.len()).await
    }

    async fn send(&mut self, mut count: usize) -> Result<(), Gone> {
        while count > 0 {
            let most = count.min(MAX_PART);
            let part = match whole_characters(&self.held[..most]) {
                0 => most,
                whole => whole,
            };
            let next = self.next + part as u64;
            let written = Written::of(&self.held[..part]);
            let event = OutputPart { cursor: self.next, next, stream: self.stream, written };
            self.to.send("output", Some(next), &event).await?;
            self.held.drain(..part);
            self.next = next;
            count -= part;
        }
        Ok(())
    }
}
