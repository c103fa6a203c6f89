//! Follows a command for one client: what it writes goes out, what is typed goes in. The command waits for a client that reads slowly, as at any
//! terminal; one that takes nothing for seconds is overtaken, and gets what was missed from the session's log.

use super::model::{self, WrittenTo};
use super::signal;
use crate::connect::{Answer, WriteAnswer};
use crate::envelope;
use crate::error::{Code, RpcError};
use crate::face::Shared;
use crate::running::{TypeRequest, Typed};
use axum::body::Bytes;
use palisade_service::{ControlConnection, Problem};
use palisade_session::sessions::OutputReader;
use palisade_session::supervise::interface::{
    CommandId, Event, FromSupervisor, OutputStream, Refusal, Request, Response,
};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::VecDeque;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Waiting for the client: beyond it, nothing more is taken from the command.
const MAX_WAITING: usize = 1 << 20;
/// The same while somebody waits for an answer about what was typed, which comes after the output.
const MAX_WAITING_FOR_INPUT: usize = 8 << 20;
/// Typed, and not taken by the supervisor yet.
const MAX_UNANSWERED: usize = 16;

pub(super) struct Relay {
    face: Shared,
    sandbox: String,
    command: CommandId,
    connection: ControlConnection,
    has_terminal: bool,
    /// The number of the byte that comes next.
    next: u64,
    inputs: mpsc::Receiver<TypeRequest>,
    /// In the order of the requests.
    unanswered: VecDeque<oneshot::Sender<Result<(), RpcError>>>,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// Whether the command ends with the time that the client gave.
    ends_at_deadline: bool,
}

/// Why nothing more is to be followed.
enum Outcome {
    CommandEnded,
    ClientGone,
    Failed(RpcError),
}

impl Relay {
    pub(super) fn new(
        face: Shared,
        (sandbox, command): (String, CommandId),
        connection: ControlConnection,
        (next, has_terminal): (u64, bool),
        inputs: mpsc::Receiver<TypeRequest>,
    ) -> Self {
        Self {
            face,
            sandbox,
            command,
            connection,
            has_terminal,
            next,
            inputs,
            unanswered: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ends_at_deadline: false,
        }
    }

    /// For who started the command: the time of the request is that of the command, even if the client is gone.
    pub(super) fn followed_to_its_end(mut self) -> Self {
        self.ends_at_deadline = true;
        self
    }

    fn tell(&mut self, event: &Value) {
        let message = envelope::message(event);
        self.waiting_bytes += message.len();
        self.waiting.push_back(message);
    }

    async fn follow(&mut self, answer: &Answer) -> Outcome {
        self.tell(&model::started(self.command.0));
        let face = self.face.clone();
        let mut outcome = None;
        let mut silent_since = Instant::now();
        loop {
            if self.waiting.is_empty()
                && let Some(outcome) = outcome.take()
            {
                return outcome;
            }
            let most = if self.unanswered.is_empty() { MAX_WAITING } else { MAX_WAITING_FOR_INPUT };
            let may_read = outcome.is_none() && self.waiting_bytes < most;
            let may_type = outcome.is_none() && self.unanswered.len() < MAX_UNANSWERED;
            tokio::select! {
                place = answer.to.reserve(), if !self.waiting.is_empty() => {
                    let (Ok(place), Some(message)) = (place, self.waiting.pop_front()) else {
                        return Outcome::ClientGone;
                    };
                    self.waiting_bytes -= message.len();
                    place.send(message);
                    silent_since = Instant::now();
                }
                () = answer.to.closed() => return Outcome::ClientGone,
                message = self.connection.next_message(), if may_read => {
                    outcome = self.take(message).await;
                }
                Some(request) = self.inputs.recv(), if may_type => self.type_in(request),
                () = sleep_until(silent_since + answer.keepalive), if outcome.is_none() => {
                    self.tell(&model::keepalive());
                    silent_since = Instant::now();
                }
                () = until(answer.deadline), if outcome.is_none() => {
                    if self.ends_at_deadline {
                        // It may have ended in between.
                        let _ = self.kill().await;
                    }
                    let what = "the time of the command is over";
                    outcome = Some(Outcome::Failed(RpcError::new(Code::DeadlineExceeded, what)));
                }
                () = face.host.stopping(), if outcome.is_none() => {
                    let what = "the server ends; the command goes on";
                    outcome = Some(Outcome::Failed(RpcError::new(Code::Unavailable, what)));
                }
            }
        }
    }

    async fn kill(&self) -> Result<(), RpcError> {
        signal::send(&self.face, &self.sandbox, self.command, Signal::KILL.as_raw()).await
    }

    fn type_in(&mut self, (typed, asked): TypeRequest) {
        let command = self.command;
        let request = match typed {
            Typed::Bytes(bytes) => Request::Input { command, bytes },
            Typed::End => Request::CloseInput { command },
        };
        match self.connection.send(&request, &[]) {
            Ok(()) => self.unanswered.push_back(asked),
            // Whoever asked may be gone.
            Err(problem) => drop(asked.send(Err(problem.into()))),
        }
    }

    async fn take(&mut self, message: Result<FromSupervisor, Problem>) -> Option<Outcome> {
        let unavailable =
            |what: &str| Some(Outcome::Failed(RpcError::new(Code::Unavailable, what)));
        match message {
            Ok(FromSupervisor::Response(response)) => {
                let answer = match response {
                    Response::Refused(Refusal { message, .. }) => {
                        Err(RpcError::new(Code::FailedPrecondition, message))
                    }
                    _ => Ok(()),
                };
                if let Some(asked) = self.unanswered.pop_front() {
                    let _ = asked.send(answer);
                }
                None
            }
            Ok(FromSupervisor::Event(event)) => match event {
                Event::Output { command, cursor, stream, bytes } if command == self.command => {
                    self.wrote(cursor, stream, &bytes).await
                }
                Event::CommandExited { command, cause } if command == self.command => {
                    self.tell(&model::ended(cause));
                    Some(Outcome::CommandEnded)
                }
                Event::CommandFailed { command, message, .. } if command == self.command => {
                    Some(Outcome::Failed(RpcError::invalid(message)))
                }
                Event::Ended { .. } => {
                    unavailable("the sandbox has ended, and the command with it")
                }
                _ => None,
            },
            Err(problem) => unavailable(problem.detail()),
        }
    }

    async fn wrote(&mut self, cursor: u64, to: OutputStream, bytes: &[u8]) -> Option<Outcome> {
        if cursor > self.next
            && let Err(error) = self.catch_up(cursor).await
        {
            return Some(Outcome::Failed(error));
        }
        self.forward(cursor, to, bytes);
        None
    }

    /// What was told already may come again.
    fn forward(&mut self, cursor: u64, to: OutputStream, bytes: &[u8]) {
        let known = usize::try_from(self.next.saturating_sub(cursor)).unwrap_or(usize::MAX);
        let new = bytes.get(known..).unwrap_or_default();
        if !new.is_empty() {
            let to = match to {
                _ if self.has_terminal => WrittenTo::Terminal,
                OutputStream::Stdout => WrittenTo::Stdout,
                OutputStream::Stderr => WrittenTo::Stderr,
            };
            self.tell(&model::wrote(to, new));
            self.next += new.len() as u64;
        }
    }

    /// From the log, up to this byte.
    async fn catch_up(&mut self, cursor: u64) -> Result<(), RpcError> {
        let (directory, _) = self.face.host.find(&self.sandbox).await?;
        while self.next < cursor {
            let (directory, command, from) = (directory.clone(), self.command, self.next);
            let reading = tokio::task::spawn_blocking(move || {
                OutputReader::new(&directory, command, from).read()
            });
            let read = reading.await.map_err(|error| Problem::internal(error.to_string()))?;
            match read.map_err(Problem::from)? {
                Some(chunk) if chunk.cursor == self.next => {
                    for (at, to, bytes) in chunk.parts() {
                        let length =
                            usize::try_from(cursor.saturating_sub(at)).unwrap_or(usize::MAX);
                        self.forward(at, to, &bytes[..bytes.len().min(length)]);
                    }
                }
                _ => {
                    let lost = cursor - self.next;
                    let what = format!(
                        "the client reads too slowly: {lost} bytes of the output are not kept any more; the command goes on"
                    );
                    return Err(RpcError::new(Code::DataLoss, what));
                }
            }
        }
        Ok(())
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl WriteAnswer for Relay {
    async fn write(mut self, answer: Answer) {
        let outcome = self.follow(&answer).await;
        // Nobody types here any more. What was typed is on its way.
        self.inputs.close();
        for asked in self.unanswered.drain(..) {
            let _ = asked.send(Ok(()));
        }
        match outcome {
            Outcome::CommandEnded => {
                self.face.running.remove(&self.sandbox, self.command);
                answer.end(Ok(())).await;
            }
            Outcome::Failed(error) => {
                self.face.running.drop_typist(&self.sandbox, self.command);
                answer.end(Err(error)).await;
            }
            Outcome::ClientGone => {
                self.face.running.drop_typist(&self.sandbox, self.command);
                let deadline = answer.deadline.filter(|_| self.ends_at_deadline);
                drop(answer);
                if let Some(deadline) = deadline {
                    let (face, sandbox, command) = (self.face, self.sandbox, self.command);
                    // Its connection must not stay as that of one who types and does not read.
                    drop(self.connection);
                    tokio::select! {
                        () = sleep_until(deadline) => {
                            // It may have ended long ago.
                            let _ = signal::send(&face, &sandbox, command, Signal::KILL.as_raw()).await;
                        }
                        () = face.host.stopping() => {}
                    }
                }
            }
        }
    }
}
