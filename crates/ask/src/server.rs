//! The session's side of the protocol, without a socket: bytes in, commands out; events in, bytes out.
//!
//! The owner of the socket must check who may connect. A client that reads slowly can lose its own connection,
//! but it cannot make the session buffer more than a limited amount.

use crate::answer::{Answer, AnswerError, Source, Store};
use crate::json;
use crate::lines::Lines;
use crate::message::{
    Audit, ClientCommand, Hello, MAX_COMMAND_BYTES, PROTOCOL, Refused, Reply, Request, Revoked,
    ServerEvent,
};
use crate::question::QuestionId;
use crate::queue::{Decided, Queue};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Each client costs the session a descriptor.
pub const MAX_CONNECTIONS: usize = 32;
/// Questions are written to the buffer only up to this size; the rest wait until there is room.
const ENOUGH_OUTPUT: usize = 64 * 1024;
/// A client with more pending output than this is not reading, and is disconnected.
const MAX_OUTPUT: usize = 1024 * 1024;
const MAX_NAME_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

/// The process at the other end, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub pid: u32,
}

/// What a session tells clients about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub session: String,
    pub command: String,
    pub project: String,
}

/// A valid command. The session reports with [`Server::reply`] whether it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub request: ClientRequest,
    pub source: Source,
    connection: ConnectionId,
    to: Reply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    Answer {
        id: QuestionId,
        answer: Answer,
    },
    /// Save the answers given for the session.
    Save(Store),
    /// Take back what was granted at this path, and below it.
    Revoke(PathBuf),
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    name: String,
    lines: Lines,
    output: Vec<u8>,
    /// How many bytes of `output` are written.
    gone: usize,
    /// Questions that this client has not received in their current form.
    unsent: BTreeSet<QuestionId>,
    /// Nothing more is read; the connection is closed once all output is written.
    is_closing: bool,
}

#[derive(Debug)]
pub struct Server {
    introduction: Introduction,
    connections: BTreeMap<ConnectionId, Connection>,
    next: u64,
}

impl Server {
    pub fn new(introduction: Introduction) -> Self {
        Self { introduction, connections: BTreeMap::new(), next: 0 }
    }

    /// `None` if there are too many connections.
    pub fn connect(&mut self, peer: Peer, queue: &Queue) -> Option<ConnectionId> {
        if self.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let id = ConnectionId(self.next);
        self.next += 1;
        let unsent: BTreeSet<QuestionId> = queue.open().map(|question| question.id).collect();
        let mut connection = Connection {
            peer,
            name: String::new(),
            lines: Lines::new(MAX_COMMAND_BYTES),
            output: Vec::new(),
            gone: 0,
            unsent,
            is_closing: false,
        };
        connection.say(&ServerEvent::Hello(Hello {
            protocol: PROTOCOL,
            session: self.introduction.session.clone(),
            command: self.introduction.command.clone(),
            project: self.introduction.project.clone(),
            open: connection.unsent.len(),
        }));
        self.connections.insert(id, connection);
        Some(id)
    }

    pub fn disconnect(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// Whether a client could answer.
    pub fn has_clients(&self) -> bool {
        self.connections.values().any(|connection| !connection.is_closing)
    }

    /// Parses what a client sent. Invalid commands are rejected here.
    pub fn received(&mut self, id: ConnectionId, bytes: &[u8]) -> Vec<Received> {
        let Some(connection) = self.connections.get_mut(&id) else { return Vec::new() };
        if connection.is_closing {
            return Vec::new();
        }
        let (lines, whole) = connection.lines.push(bytes);
        let mut received = Vec::new();
        for line in lines {
            match connection.understand(&line) {
                Ok(Some((request, to))) => {
                    let source = connection.source();
                    received.push(Received { request, source, connection: id, to });
                }
                Ok(None) => {}
                Err(refused) => connection.say(&ServerEvent::Error(refused)),
            }
            if connection.is_closing {
                return received;
            }
        }
        if whole.is_err() {
            let message = format!("a line is longer than {MAX_COMMAND_BYTES} bytes");
            connection.say(&ServerEvent::Error(refused(Reply::default(), "too_long", message)));
            connection.is_closing = true;
        }
        received
    }

    /// Tells a client the outcome of its command.
    pub fn reply(&mut self, received: &Received, outcome: Result<(), AnswerError>) {
        let event = match outcome {
            Ok(()) => ServerEvent::Reply(received.to.clone()),
            Err(error) => {
                ServerEvent::Error(refused(received.to.clone(), error.code(), error.to_string()))
            }
        };
        self.say_to(received.connection, &event);
    }

    /// Tells a client what was taken back.
    pub fn revoked(&mut self, received: &Received, revoked: Revoked) {
        let revoked = Revoked { to: received.to.clone(), ..revoked };
        self.say_to(received.connection, &ServerEvent::Revoked(Box::new(revoked)));
    }

    /// Tells a client that its command failed for a reason that is not about the question.
    pub fn fail(&mut self, received: &Received, message: &str) {
        let event = ServerEvent::Error(refused(received.to.clone(), "failed", message.to_owned()));
        self.say_to(received.connection, &event);
    }

    /// A question is new, or more calls wait for it.
    pub fn asked(&mut self, id: QuestionId) {
        for connection in self.connections.values_mut() {
            connection.unsent.insert(id);
        }
    }

    /// A question is answered or withdrawn.
    pub fn decided(&mut self, decided: &Decided) {
        let id = decided.question.id;
        let event = match decided.source {
            Source::Withdrawn => ServerEvent::Withdrawn { id },
            _ => ServerEvent::Audit(Audit::from(decided)),
        };
        for connection in self.connections.values_mut() {
            connection.unsent.remove(&id);
            connection.say(&event);
        }
    }

    /// The bytes to write to a client now.
    pub fn output(&mut self, id: ConnectionId, queue: &Queue) -> &[u8] {
        match self.connections.get_mut(&id) {
            Some(connection) => {
                connection.fill(queue);
                &connection.output[connection.gone..]
            }
            None => &[],
        }
    }

    /// This many of those bytes were written.
    pub fn wrote(&mut self, id: ConnectionId, count: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.gone = (connection.gone + count).min(connection.output.len());
            if connection.gone == connection.output.len() {
                connection.output.clear();
                connection.gone = 0;
            }
        }
    }

    pub fn has_output(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_some_and(Connection::has_output)
    }

    /// Whether the connection should be closed because nothing more will be read or written.
    pub fn is_finished(&self, id: ConnectionId) -> bool {
        self.connections
            .get(&id)
            .is_none_or(|connection| connection.is_closing && !connection.has_output())
    }

    fn say_to(&mut self, id: ConnectionId, event: &ServerEvent) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.say(event);
        }
    }
}

/// The parts of a command that are needed to reject it.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default, rename = "type")]
    command: String,
    #[serde(default)]
    request: Option<u64>,
    #[serde(default)]
    id: Option<QuestionId>,
}

const COMMANDS: &[&str] =
    &["cmd.hello", "cmd.approve", "cmd.deny", "cmd.policy.save", "cmd.revoke"];

impl Connection {
    fn source(&self) -> Source {
        Source::Socket { uid: self.peer.uid, pid: self.peer.pid, name: self.name.clone() }
    }

    fn has_output(&self) -> bool {
        self.gone < self.output.len() || (!self.is_closing && !self.unsent.is_empty())
    }

    fn understand(&mut self, line: &[u8]) -> Result<Option<(ClientRequest, Reply)>, Refused> {
        let bad = |to: Reply, error: &dyn std::fmt::Display| {
            refused(to, "bad_message", error.to_string())
        };
        let envelope: Envelope =
            serde_json::from_slice(line).map_err(|error| bad(Reply::default(), &error))?;
        let to = Reply { command: envelope.command, request: envelope.request, id: envelope.id };
        if !COMMANDS.contains(&to.command.as_str()) {
            let message = format!("the commands are {}", COMMANDS.join(", "));
            return Err(refused(to, "unknown_command", message));
        }
        let command = serde_json::from_slice(line).map_err(|error| bad(to.clone(), &error))?;
        let request = match command {
            ClientCommand::Hello { protocol: PROTOCOL, mut name } => {
                name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
                self.name = name;
                self.say(&ServerEvent::Reply(to));
                return Ok(None);
            }
            ClientCommand::Hello { protocol, .. } => {
                let message = format!("this session speaks protocol {PROTOCOL}, not {protocol}");
                self.say(&ServerEvent::Error(refused(to, "protocol", message)));
                self.is_closing = true;
                return Ok(None);
            }
            ClientCommand::Approve(approve) => {
                let answer = approve.answer().map_err(|error| bad(to.clone(), &error))?;
                ClientRequest::Answer { id: approve.id, answer }
            }
            ClientCommand::Deny(deny) => {
                let answer = deny.answer().map_err(|error| bad(to.clone(), &error))?;
                ClientRequest::Answer { id: deny.id, answer }
            }
            ClientCommand::PolicySave { scope } => ClientRequest::Save(scope),
            ClientCommand::Revoke(revoke) => {
                let path = revoke.into_path().map_err(|error| bad(to.clone(), &error))?;
                ClientRequest::Revoke(path)
            }
        };
        Ok(Some((request, to)))
    }

    fn say(&mut self, event: &ServerEvent) {
        if self.is_closing {
            return;
        }
        // Every event can be serialized as JSON.
        let Ok(line) = json::to_line(event) else { return };
        if self.output.len() - self.gone + line.len() > MAX_OUTPUT {
            self.give_up();
            return;
        }
        self.make_room();
        self.output.extend_from_slice(line.as_bytes());
    }

    fn fill(&mut self, queue: &Queue) {
        while !self.is_closing && self.output.len() - self.gone < ENOUGH_OUTPUT {
            let Some(id) = self.unsent.pop_first() else { return };
            let Some(question) = queue.get(id) else { continue };
            let event = ServerEvent::from(Request::from(question));
            let Ok(line) = json::to_line(&event) else { continue };
            self.make_room();
            self.output.extend_from_slice(line.as_bytes());
        }
    }

    fn make_room(&mut self) {
        self.output.drain(..self.gone);
        self.gone = 0;
    }

    /// The client does not read; its pending output is dropped.
    fn give_up(&mut self) {
        self.is_closing = true;
        self.output = Vec::new();
        self.gone = 0;
    }
}

fn refused(to: Reply, code: &str, message: String) -> Refused {
    Refused { to, code: code.to_owned(), message }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
