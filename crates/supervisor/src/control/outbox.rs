//! The one way out for what the supervisor says: to the process's own client, and to those at a socket. A response goes to
//! who asked, what happens to a command to who started it or watches it, everything else to everybody.

use super::connection::Incoming;
use super::endpoint::{ClientId, Endpoint};
use super::interface::{Event, FromSupervisor, Response};
use palisade_launch::CommandId;
use rustix::event::PollFlags;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Outbox<'p> {
    /// Until the process's own client takes them.
    own: VecDeque<FromSupervisor>,
    endpoint: Option<&'p mut Endpoint>,
    /// Who started each command.
    starters: BTreeMap<CommandId, ClientId>,
}

impl<'p> Outbox<'p> {
    pub(crate) fn new(endpoint: Option<&'p mut Endpoint>) -> Self {
        Self { own: VecDeque::new(), endpoint, starters: BTreeMap::new() }
    }

    /// This client is told of the command from now on.
    pub(crate) fn started_by(&mut self, command: CommandId, client: ClientId) {
        self.starters.insert(command, client);
    }

    /// A client is gone. Says which commands it has started that have not ended.
    pub(crate) fn forget_starter(&mut self, client: ClientId) -> Vec<CommandId> {
        let own = self.starters.extract_if(.., |_, starter| *starter == client);
        own.map(|(command, _)| command).collect()
    }

    /// What happened, for everybody it concerns.
    pub(crate) fn emit(&mut self, event: Event) {
        self.emit_except(event, &[]);
    }

    /// The same, but these clients are told otherwise.
    pub(crate) fn emit_except(&mut self, event: Event, except: &[ClientId]) {
        let starter = event.command().map(|command| self.starters.get(&command).copied());
        let is_last = matches!(event, Event::CommandExited { .. } | Event::CommandFailed { .. });
        if let Some(command) = event.command().filter(|_| is_last) {
            self.starters.remove(&command);
        }
        let may_be_lost = event.may_be_lost();
        let message = FromSupervisor::Event(event);
        if let Some(endpoint) = &mut self.endpoint {
            for client in endpoint.ids() {
                let is_owner = endpoint.owner() == Some(client);
                let is_concerned =
                    is_owner || starter.is_none_or(|starter| starter == Some(client));
                let is_lost = may_be_lost && !endpoint.is_keeping_up(client);
                let is_told = is_concerned && !is_lost && endpoint.has_greeted(client);
                if is_told && !except.contains(&client) {
                    endpoint.send(client, &message, None);
                }
            }
        }
        self.own.push_back(message);
    }

    /// The response to the request that made the sandbox, which the process's own client and the owner share.
    pub(crate) fn created(&mut self, session: &str) {
        let created = FromSupervisor::Response(Response::Created { session: session.to_owned() });
        if let Some(endpoint) = &mut self.endpoint
            && let Some(owner) = endpoint.owner().filter(|owner| endpoint.has_greeted(*owner))
        {
            endpoint.send(owner, &created, None);
        }
        self.own.push_back(created);
    }

    /// To the client at a socket that asked.
    pub(crate) fn respond(
        &mut self,
        client: ClientId,
        response: Response,
        descriptor: Option<OwnedFd>,
    ) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.send(client, &FromSupervisor::Response(response), descriptor);
        }
    }

    /// What happened, for one client.
    pub(crate) fn tell(&mut self, client: ClientId, event: Event) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.send(client, &FromSupervisor::Event(event), None);
        }
    }

    /// Whether a client has read nearly all that it was sent.
    pub(crate) fn is_reading(&self, client: ClientId) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.is_reading(client))
    }

    /// The next message for the process's own client.
    pub(crate) fn next(&mut self) -> Option<FromSupervisor> {
        self.own.pop_front()
    }

    pub(crate) fn clients(&self) -> usize {
        self.endpoint.as_ref().map_or(0, |endpoint| endpoint.count())
    }

    /// Whether the sandbox ends with this client.
    pub(crate) fn is_owner(&self, client: ClientId) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.owner() == Some(client))
    }

    /// Whether the sandbox waits for its owner to claim it.
    pub(crate) fn is_prepared(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.is_prepared())
    }

    /// It does so no longer.
    pub(crate) fn claimed(&mut self, ends_with_owner: bool) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.claimed(ends_with_owner);
        }
    }

    /// Where new clients come.
    pub(crate) fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.listener())
    }

    /// The clients' sockets, and what to wait for at each.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (ClientId, BorrowedFd<'_>, PollFlags)> {
        self.endpoint.iter().flat_map(|endpoint| endpoint.watched())
    }

    /// When there is something to [`flush`](Self::flush) whatever happens at the sockets.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.next_retry())
    }

    /// Takes in who has connected. Says who that is.
    pub(crate) fn accept(&mut self) -> Vec<ClientId> {
        self.endpoint.as_mut().map(|endpoint| endpoint.accept()).unwrap_or_default()
    }

    /// Sends the clients at sockets what they have room for.
    pub(crate) fn flush(&mut self) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.flush();
        }
    }

    /// What a client at a socket says.
    pub(crate) fn receive(&mut self, client: ClientId) -> Incoming {
        self.endpoint.as_mut().map_or(Incoming::Closed, |endpoint| endpoint.receive(client))
    }

    pub(crate) fn has_greeted(&self, client: ClientId) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.has_greeted(client))
    }

    pub(crate) fn greeted(&mut self, client: ClientId) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.greeted(client);
        }
    }

    /// It is gone, or none of ours.
    pub(crate) fn drop_client(&mut self, client: ClientId) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.drop_client(client);
        }
    }

    pub(crate) fn is_connected(&self, client: ClientId) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.is_connected(client))
    }

    /// Whether it closed its end, though not all that it sent was read.
    pub(crate) fn is_hung_up(&self, client: ClientId) -> bool {
        self.endpoint.as_ref().is_none_or(|endpoint| endpoint.is_hung_up(client))
    }

    /// Who went. Says each once.
    pub(crate) fn take_gone(&mut self) -> Vec<ClientId> {
        self.endpoint.as_mut().map(|endpoint| endpoint.take_gone()).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
