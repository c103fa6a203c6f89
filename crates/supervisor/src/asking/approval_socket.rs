//! The socket at which people and programs answer questions (GATE-6): checks who may connect, and moves the bytes.
//!
//! Must never accept a peer other than the same user or root, by the kernel's credentials. `palisade_ask` implements
//! the protocol. The socket is created with the first question, and removed at the end of the run.

use crate::error::{Result, SupervisorError};
use crate::peer::shares_user_namespace;
use crate::poll_set::{PollSet, Ready};
use palisade_ask::server::{ConnectionId, Introduction, Peer, Received, Server};
use palisade_ask::{Decided, QuestionId, Queue};
use rustix::event::PollFlags;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::sockopt::socket_peercred;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// How much is read from one client at a time.
const ENOUGH_INPUT: usize = 16 * 1024;
/// Keys in a poll set; a client's key is its index in the list plus this.
const LISTENER: usize = 0;
const FIRST_CLIENT: usize = 1;

#[derive(Debug)]
pub(super) struct ApprovalSocket {
    directory: OwnedFd,
    name: String,
    listener: UnixListener,
    server: Server,
    clients: Vec<(ConnectionId, UnixStream)>,
}

impl ApprovalSocket {
    pub(super) fn open(directory: &Path, introduction: Introduction) -> Result<Self> {
        let failed = |source| {
            let directory = directory.to_owned();
            SupervisorError::ApprovalSocket { directory, source }
        };
        // Accessible to its owner only.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        let name = format!("{}.sock", introduction.session);
        // A socket address has room for 107 bytes, and the path of a home directory may be longer.
        let address = format!("/proc/self/fd/{}/{name}", held.as_raw_fd());
        let listener = UnixListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let server = Server::new(introduction);
        Ok(Self { directory: held, name, listener, server, clients: Vec::new() })
    }

    pub(super) fn has_clients(&self) -> bool {
        self.server.has_clients()
    }

    pub(super) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        set.add(LISTENER, self.listener.as_fd(), PollFlags::IN);
        for (key, (id, stream)) in (FIRST_CLIENT..).zip(&self.clients) {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, self.server.has_output(*id));
            set.add(key, stream.as_fd(), events);
        }
    }

    /// Reads and writes what is ready.
    pub(super) fn handle(&mut self, ready: &Ready, queue: &Queue) -> Vec<Received> {
        const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);
        let mut received = Vec::new();
        let clients = (FIRST_CLIENT..).zip(&self.clients);
        let readable: Vec<ConnectionId> = clients
            .filter(|(key, _)| ready.at(*key).intersects(READABLE))
            .map(|(_, (id, _))| *id)
            .collect();
        for id in readable {
            received.extend(self.read(id));
        }
        if !ready.at(LISTENER).is_empty() {
            self.accept(queue);
        }
        self.write(queue);
        received
    }

    /// Writes pending output.
    pub(super) fn write(&mut self, queue: &Queue) {
        let server = &mut self.server;
        self.clients.retain_mut(|(id, stream)| {
            while server.has_output(*id) {
                let output = server.output(*id, queue);
                if output.is_empty() {
                    break;
                }
                match stream.write(output) {
                    Ok(count) => server.wrote(*id, count),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {
                        server.disconnect(*id);
                        return false;
                    }
                }
            }
            let is_finished = server.is_finished(*id);
            if is_finished {
                server.disconnect(*id);
            }
            !is_finished
        });
    }

    pub(super) fn asked(&mut self, id: QuestionId) {
        self.server.asked(id);
    }

    pub(super) fn decided(&mut self, decided: &Decided) {
        self.server.decided(decided);
    }

    pub(super) fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    fn accept(&mut self, queue: &Queue) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Ok(peer) = socket_peercred(&stream) else { continue };
            let uid = peer.uid.as_raw();
            let may_answer = peer.uid.is_root() || peer.uid == rustix::process::geteuid();
            // The command runs as the same user; should it ever reach this socket, it must not answer itself.
            let is_outside = peer.uid.is_root() || shares_user_namespace(peer.pid);
            if !may_answer || !is_outside || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let peer = Peer { uid, pid: peer.pid.as_raw_pid().unsigned_abs() };
            if let Some(id) = self.server.connect(peer, queue) {
                self.clients.push((id, stream));
            }
        }
    }

    fn read(&mut self, id: ConnectionId) -> Vec<Received> {
        let Some((_, stream)) = self.clients.iter_mut().find(|(known, _)| *known == id) else {
            return Vec::new();
        };
        let mut buffer = [0; ENOUGH_INPUT];
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => self.server.received(id, &buffer[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Vec::new()
            }
            _ => {
                self.server.disconnect(id);
                self.clients.retain(|(known, _)| *known != id);
                Vec::new()
            }
        }
    }
}

impl Drop for ApprovalSocket {
    fn drop(&mut self) {
        // If the socket cannot be removed, the next client finds it dead.
        let _ =
            rustix::fs::unlinkat(&self.directory, self.name.as_str(), rustix::fs::AtFlags::empty());
    }
}

/// Whether a `sandbox approve` is running: it keeps this file locked.
pub(super) fn approver_is_there(directory: &Path) -> bool {
    let path: PathBuf = directory.join(palisade_ask::sessions::APPROVER_LOCK);
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_err()
}
