//! Everybody who makes requests at a socket: the one client that a sandbox ends with, or all that connect to a session.
//!
//! A client that reads too slowly, sends what is no request or is not ours is dropped. Nothing else must happen then.

use super::connection::{Connection, Incoming, LAST_READS};
use super::interface::FromSupervisor;
use crate::peer::shares_user_namespace;
use palisade_wire::WireError;
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, sockopt::socket_peercred};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

/// A client that sends so many packets which are no requests is none of ours.
const MAX_MALFORMED: usize = 16;
/// Connected to one session. Each may have so many messages unread.
const MAX_CLIENTS: usize = 64;

/// The number of a client, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(u64);

#[cfg(test)]
impl ClientId {
    pub(crate) const FIRST: Self = Self(1);
    pub(crate) const SECOND: Self = Self(2);
}

#[derive(Debug)]
pub struct Endpoint {
    listener: Option<OwnedFd>,
    clients: BTreeMap<ClientId, Client>,
    /// The client that the sandbox ends with.
    owner: Option<ClientId>,
    /// Whether nobody but the owner is answered yet.
    is_prepared: bool,
    last_id: u64,
    /// Dropped, and nobody heard of it yet.
    gone: Vec<ClientId>,
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    malformed: usize,
    has_greeted: bool,
}

impl Client {
    fn new(connection: Connection, has_greeted: bool) -> Self {
        Self { connection, malformed: 0, has_greeted }
    }
}

impl Endpoint {
    /// For a sandbox that ends with its one client.
    pub fn of_owner(connection: Connection) -> Self {
        let owner = ClientId(0);
        // Its greeting came before there was a sandbox.
        let clients = BTreeMap::from([(owner, Client::new(connection, true))]);
        Self {
            listener: None,
            clients,
            owner: Some(owner),
            is_prepared: false,
            last_id: 0,
            gone: Vec::new(),
        }
    }

    /// For a session: a socket that listens and never blocks.
    pub fn listening(listener: OwnedFd) -> Self {
        Self {
            listener: Some(listener),
            clients: BTreeMap::new(),
            owner: None,
            is_prepared: false,
            last_id: 0,
            gone: Vec::new(),
        }
    }

    /// For a session that nobody has yet: it ends with this client, which alone is answered, until the client claims it.
    pub fn prepared(listener: OwnedFd, connection: Connection) -> Self {
        let owner = ClientId(0);
        let clients = BTreeMap::from([(owner, Client::new(connection, false))]);
        let owner = Some(owner);
        Self { clients, owner, is_prepared: true, ..Self::listening(listener) }
    }

    /// The connection to the one client.
    pub fn owner_connection(&mut self) -> Option<&mut Connection> {
        let owner = self.owner?;
        self.clients.get_mut(&owner).map(|client| &mut client.connection)
    }

    /// The last message, to everybody, after all that they have not read yet. Waits for them to read, though not for ever.
    pub fn finish(&mut self, last: &FromSupervisor) {
        let deadline = Instant::now() + LAST_READS;
        for client in self.clients.values_mut() {
            // If sending fails, there is no client left.
            let _ = client.connection.finish_by(last, deadline);
        }
    }

    pub(super) fn owner(&self) -> Option<ClientId> {
        self.owner
    }

    /// Whether it waits for its owner to claim it.
    pub(super) fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// It is a session from now on, and ends with its owner only if it is to.
    pub(super) fn claimed(&mut self, ends_with_owner: bool) {
        self.is_prepared = false;
        if !ends_with_owner {
            self.owner = None;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn is_connected(&self, id: ClientId) -> bool {
        self.clients.contains_key(&id)
    }

    /// Whether it closed its end, though not all that it sent was read.
    pub(super) fn is_hung_up(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_none_or(|client| client.connection.is_hung_up())
    }

    pub(super) fn ids(&self) -> Vec<ClientId> {
        self.clients.keys().copied().collect()
    }

    /// The socket at which new clients come, while there is room for more.
    pub(super) fn listener(&self) -> Option<BorrowedFd<'_>> {
        let has_room = self.clients.len() < MAX_CLIENTS && !self.is_prepared;
        self.listener.as_ref().filter(|_| has_room).map(|listener| listener.as_fd())
    }

    /// The clients' sockets, and what to wait for at each.
    pub(super) fn watched(&self) -> impl Iterator<Item = (ClientId, BorrowedFd<'_>, PollFlags)> {
        self.clients
            .iter()
            .map(|(id, client)| (*id, client.connection.socket(), client.connection.interest()))
    }

    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.clients.values().filter_map(|client| client.connection.next_retry()).min()
    }

    /// Takes in who has connected. Says who that is.
    pub(super) fn accept(&mut self) -> Vec<ClientId> {
        let mut accepted = Vec::new();
        let Some(listener) = &self.listener else { return accepted };
        while self.clients.len() < MAX_CLIENTS {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(socket) = rustix::net::accept_with(listener, flags) else { break };
            let Ok(peer) = socket_peercred(&socket) else { continue };
            // What runs inside may be the same user; should it ever reach this socket, it must not command its own sandbox.
            if peer.uid != rustix::process::geteuid() || !shares_user_namespace(peer.pid) {
                continue;
            }
            self.last_id += 1;
            let client = Client::new(Connection::new(socket), false);
            self.clients.insert(ClientId(self.last_id), client);
            accepted.push(ClientId(self.last_id));
        }
        accepted
    }

    /// Whether it has said which version it speaks.
    pub(super) fn has_greeted(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.has_greeted)
    }

    pub(super) fn greeted(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.has_greeted = true;
        }
    }

    pub(super) fn receive(&mut self, id: ClientId) -> Incoming {
        let Some(client) = self.clients.get_mut(&id) else { return Incoming::Closed };
        let incoming = client.connection.receive();
        client.malformed += usize::from(matches!(incoming, Incoming::Malformed(_)));
        if matches!(incoming, Incoming::Closed) || client.malformed > MAX_MALFORMED {
            self.drop_client(id);
            return Incoming::Closed;
        }
        incoming
    }

    /// Whether it has read so much of what it was sent that there is room for what it may miss.
    pub(super) fn is_keeping_up(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.connection.is_keeping_up())
    }

    /// Whether it has read nearly all that it was sent.
    pub(super) fn is_reading(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.connection.is_reading())
    }

    pub(super) fn send(
        &mut self,
        id: ClientId,
        message: &FromSupervisor,
        descriptor: Option<OwnedFd>,
    ) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        match client.connection.send(message, descriptor) {
            // The second never is: texts are truncated, and lists are limited.
            Ok(()) | Err(WireError::TooLong { .. }) => {}
            Err(_) => self.drop_client(id),
        }
    }

    /// Sends every client what it has room for.
    pub(super) fn flush(&mut self) {
        let failed = |(id, client): (&ClientId, &mut Client)| {
            client.connection.flush().is_err().then_some(*id)
        };
        let failed: Vec<_> = self.clients.iter_mut().filter_map(failed).collect();
        failed.into_iter().for_each(|id| self.drop_client(id));
    }

    pub(super) fn drop_client(&mut self, id: ClientId) {
        if let Some(mut client) = self.clients.remove(&id) {
            client.connection.close();
            self.gone.push(id);
        }
    }

    /// Who was dropped. Says each once.
    pub(super) fn take_gone(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.gone)
    }
}

impl From<ClientId> for usize {
    /// For a poll set.
    fn from(ClientId(number): ClientId) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}
