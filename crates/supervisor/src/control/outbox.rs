//! The one way out for what the supervisor says: to the process's own client, and to the one at the socket if there is one.

use super::connection::{Connection, Incoming};
use super::interface::{Event, FromSupervisor, Response};
use palisade_wire::WireError;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

/// A client that sends so many packets which are no requests is none of ours.
const MAX_MALFORMED: usize = 16;

#[derive(Debug)]
pub(crate) struct Outbox<'p> {
    /// Until the process's own client takes them.
    own: VecDeque<FromSupervisor>,
    connection: Option<&'p mut Connection>,
    malformed: usize,
    /// Whether the client at the socket went, and nobody heard of it yet.
    lost_client: bool,
}

impl<'p> Outbox<'p> {
    pub(crate) fn new(connection: Option<&'p mut Connection>) -> Self {
        Self { own: VecDeque::new(), connection, malformed: 0, lost_client: false }
    }

    /// What happened, for everybody.
    pub(crate) fn emit(&mut self, event: Event) {
        let is_lost = event.may_be_lost()
            && self.connection.as_ref().is_some_and(|connection| !connection.is_keeping_up());
        let message = FromSupervisor::Event(event);
        if !is_lost {
            self.send(&message, None);
        }
        self.own.push_back(message);
    }

    /// The response to the request that made the sandbox, which both clients share.
    pub(crate) fn created(&mut self, session: &str) {
        let created = FromSupervisor::Response(Response::Created { session: session.to_owned() });
        self.send(&created, None);
        self.own.push_back(created);
    }

    /// To the client at the socket, which asked.
    pub(crate) fn respond(&mut self, response: Response, descriptor: Option<OwnedFd>) {
        self.send(&FromSupervisor::Response(response), descriptor);
    }

    /// The next message for the process's own client.
    pub(crate) fn next(&mut self) -> Option<FromSupervisor> {
        self.own.pop_front()
    }

    /// The client's socket, and what to wait for there.
    pub(crate) fn watched(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.connection.as_ref().map(|connection| (connection.socket(), connection.interest()))
    }

    /// When there is something to [`flush`](Self::flush) whatever happens at the socket.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.connection.as_ref().and_then(|connection| connection.next_retry())
    }

    /// Sends the client at the socket what it has room for.
    pub(crate) fn flush(&mut self) {
        if self.connection.as_mut().is_some_and(|connection| connection.flush().is_err()) {
            self.lose_client();
        }
    }

    /// What the client at the socket says.
    pub(crate) fn receive(&mut self) -> Incoming {
        let Some(connection) = &mut self.connection else { return Incoming::Nothing };
        let incoming = connection.receive();
        self.malformed += usize::from(matches!(incoming, Incoming::Malformed(_)));
        if matches!(incoming, Incoming::Closed) || self.malformed > MAX_MALFORMED {
            self.lose_client();
            return Incoming::Closed;
        }
        incoming
    }

    /// Whether the client at the socket went. Says it once.
    pub(crate) fn has_lost_client(&mut self) -> bool {
        std::mem::take(&mut self.lost_client)
    }

    /// The client at the socket is gone, or none of ours.
    pub(crate) fn lose_client(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
            self.lost_client = true;
        }
    }

    fn send(&mut self, message: &FromSupervisor, descriptor: Option<OwnedFd>) {
        let Some(connection) = &mut self.connection else { return };
        match connection.send(message, descriptor) {
            // The second never is: texts are truncated, and lists are limited.
            Ok(()) | Err(WireError::TooLong { .. }) => {}
            Err(_) => self.lose_client(),
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
