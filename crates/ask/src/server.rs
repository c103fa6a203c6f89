//! The session's side of the protocol, without a socket: bytes in, commands out; events in, bytes out.
//!
//! Who may connect is for the owner of the socket to check. A client that reads slowly loses nothing
//! but its own connection, and cannot make the session hold more than a bounded amount for it.

use crate::answer::{Answer, AnswerError, Source, Store};
use crate::json;
use crate::lines::Lines;
use crate::message::{
    Audit, ClientCommand, Hello, MAX_COMMAND_BYTES, PROTOCOL, Refused, Reply, Request, ServerEvent,
};
use crate::question::QuestionId;
use crate::queue::{Decided, Queue};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Clients at once. Each costs the session a descriptor.
pub const MAX_CONNECTIONS: usize = 32;
/// Questions are written out only up to here; the rest wait until there is room.
const ENOUGH_OUTPUT: usize = 64 * 1024;
/// Beyond this the client is not reading.
const MAX_OUTPUT: usize = 1024 * 1024;
const MAX_NAME_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

/// Who is at the other end, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub pid: u32,
}

/// What a session says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub session: String,
    pub command: String,
    pub project: String,
}

/// A command that makes sense; whether it can be carried out is for the session to say, with
/// [`Server::reply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub request: ClientRequest,
    pub source: Source,
    connection: ConnectionId,
    to: Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    Answer {
        id: QuestionId,
        answer: Answer,
    },
    /// Keep what was answered for the session.
    Save(Store),
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    name: String,
    lines: Lines,
    output: Vec<u8>,
    /// How much of `output` has gone.
    gone: usize,
    /// Questions that this client has not seen, or not as they are now.
    unsent: BTreeSet<QuestionId>,
    /// Nothing more is read, and it is closed once everything is written.
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

    /// `None` if there are too many already.
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

    /// Whether anybody could answer.
    pub fn has_clients(&self) -> bool {
        self.connections.values().any(|connection| !connection.is_closing)
    }

    /// Takes what a client sent. What makes no sense is refused here.
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

    /// Tells a client what became of its command.
    pub fn reply(&mut self, received: &Received, outcome: Result<(), AnswerError>) {
        let event = match outcome {
            Ok(()) => ServerEvent::Reply(received.to.clone()),
            Err(error) => {
                ServerEvent::Error(refused(received.to.clone(), error.code(), error.to_string()))
            }
        };
        self.say_to(received.connection, &event);
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

    /// What there is to write to a client now.
    pub fn output(&mut self, id: ConnectionId, queue: &Queue) -> &[u8] {
        match self.connections.get_mut(&id) {
            Some(connection) => {
                connection.fill(queue);
                &connection.output[connection.gone..]
            }
            None => &[],
        }
    }

    /// So many bytes of it were written.
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

    /// Whether the connection is to be closed: nothing more will come of it.
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

/// The parts of a command that are needed to refuse it.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default, rename = "type")]
    command: String,
    #[serde(default)]
    request: Option<u64>,
    #[serde(default)]
    id: Option<QuestionId>,
}

const COMMANDS: &[&str] = &["cmd.hello", "cmd.approve", "cmd.deny", "cmd.policy.save"];

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
        };
        Ok(Some((request, to)))
    }

    fn say(&mut self, event: &ServerEvent) {
        if self.is_closing {
            return;
        }
        // Nothing in an event can fail to be written as JSON.
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

    /// It does not read: what it has not got, it does not get.
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
