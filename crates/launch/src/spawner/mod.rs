//! Starts further commands in a running sandbox. The spawner is a helper outside the sandbox's pid namespace
//! that enters all its namespaces once, applies all restrictions once, and forks every command from there.
//!
//! It is executed anew (`/proc/self/exe`, no environment): its forks can be inspected from inside until their
//! own exec, so nothing of the caller may be in their memory. It has no pid inside, so no process there can
//! signal, trace or limit it. It must never start a command before all restrictions are in force, and must
//! never pass a descriptor to a command except its three streams.

mod child;
mod config;
mod message;
mod process;
mod serve;
mod stage;

pub use message::{CommandId, CommandKind, CommandStart, SpawnerEvent};

use message::SpawnerRequest;
pub use stage::SpawnerStage;

use crate::error::{During, LaunchError, Result};
use crate::helper::{Helper, HelperKind, Helpers};
use crate::inherited::Inherited;
use crate::selfcheck::Targets;
use config::{STEP, SpawnerConfig};
use palisade_cgroup::RunGroup;
use palisade_plan::model::{Landlock, Owner, Plan, SandboxLifetime};
use palisade_sys::fdpass::{reveal_senders, socketpair};
use palisade_sys::proc::PollFlags;
use palisade_sys::{At as _, Pid, tty};
use palisade_wire::{Received, SendQueue, WireError, WireMessage as _};
use rustix::fs::{Gid, MemfdFlags, SealFlags, Uid};
use rustix::termios::Winsize;
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

/// Requests that it has not read. It takes microseconds for each.
const MAX_UNREAD: usize = 256;

/// The sandbox as the spawner sees it.
#[derive(Debug)]
struct Inside {
    user_namespace: OwnedFd,
    mount_namespace: OwnedFd,
    /// A project whose changes are kept, as commands see it.
    transaction: Option<OwnedFd>,
    terminals: Option<OwnedFd>,
}

/// The running spawner, seen from the supervisor.
#[derive(Debug)]
pub struct Spawner {
    helper: Helper,
    socket: OwnedFd,
    /// The supervisor's event loop never waits for it.
    unread: RefCell<SendQueue>,
    inside: RefCell<Option<Inside>>,
    /// Whether the project's changes are kept.
    has_transaction: bool,
    refuses_truncation: bool,
    /// The owner of a terminal, where root gave the command its id.
    owner: Option<Owner>,
}

impl Spawner {
    /// Forks and executes it. It waits for the process that sets the sandbox up, and gets `broker` for the
    /// handshake with the broker. None where the sandbox ends with its command. Also returns the other end for
    /// that process.
    pub(crate) fn start(
        helpers: &Helpers,
        plan: &Plan,
        (inherited, targets, owner): (&Inherited, Targets, Option<Owner>),
        group: Option<&RunGroup>,
        broker: Option<BorrowedFd<'_>>,
    ) -> Result<Option<(Self, OwnedFd)>> {
        if plan.sandbox.lifetime == SandboxLifetime::OneCommand {
            return Ok(None);
        }
        let supervisor = rustix::process::getpid();
        let config = SpawnerConfig::of(plan, inherited, targets, supervisor)?;
        let config = in_a_file(&palisade_wire::encode(&config).during(STEP)?)?;
        let (socket, socket_of_spawner) = socketpair().during(STEP)?;
        let (setup, setup_of_spawner) = socketpair().during(STEP)?;
        reveal_senders(&setup_of_spawner).during(STEP)?;
        let groups = group.map(|group| group.entry().members()).unwrap_or_default();
        let stage = SpawnerStage {
            config: config.as_raw_fd(),
            socket: socket_of_spawner.as_raw_fd(),
            setup: setup_of_spawner.as_raw_fd(),
            broker: broker.map(|broker| broker.as_raw_fd()),
            groups: groups.iter().map(AsRawFd::as_raw_fd).collect(),
        };
        let helper = helpers.start(HelperKind::Spawner, STEP, stage.descriptors(), |_| {
            // Returns only if it failed, which the helper's exit reports.
            stage.execute();
        })?;
        let unread = RefCell::new(SendQueue::new(MAX_UNREAD));
        let has_transaction = !plan.transactions().is_empty();
        let refuses_truncation =
            plan.sandbox.landlock.as_ref().is_some_and(Landlock::refuses_truncation);
        let inside = RefCell::new(None);
        let spawner =
            Self { helper, socket, unread, inside, has_transaction, refuses_truncation, owner };
        Ok(Some((spawner, setup)))
    }

    pub(crate) fn pid(&self) -> Pid {
        self.helper.pid()
    }

    /// Readable when there is an event, or the spawner is gone. None once that is known.
    pub fn watched(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let room =
            if self.unread.borrow().wants_room() { PollFlags::OUT } else { PollFlags::empty() };
        self.helper.is_serving().then(|| (self.socket.as_fd(), PollFlags::IN | room))
    }

    /// When there is something to [`flush`](Self::flush) whatever happens at the socket.
    pub fn next_retry(&self) -> Option<Instant> {
        self.unread.borrow().next_retry().filter(|_| self.helper.is_serving())
    }

    /// Sends requests that it had no room for.
    pub fn flush(&self) -> Result<()> {
        match self.unread.borrow_mut().flush(&self.socket) {
            // Its end arrives by its pidfd.
            Err(WireError::Closed) => Ok(()),
            sent => sent.during("talking to the spawner"),
        }
    }

    /// Starts a command with three streams, or with one terminal; [`SpawnerEvent::Started`] or
    /// [`SpawnerEvent::NotStarted`] follows.
    pub fn start_command(
        &self,
        start: CommandStart,
        streams: Vec<OwnedFd>,
    ) -> Result<(), WireError> {
        self.send(&SpawnerRequest::Start(start), streams)
    }

    /// Whether a file that a command only reads as a stream stays whole.
    pub fn refuses_truncation(&self) -> bool {
        self.refuses_truncation
    }

    pub fn signal(&self, command: CommandId, signal: i32) -> Result<(), WireError> {
        self.send(&SpawnerRequest::Signal { command, signal }, Vec::new())
    }

    /// Signals every command that was started and has not ended.
    pub fn signal_all(&self, signal: i32) -> Result<(), WireError> {
        self.send(&SpawnerRequest::SignalAll { signal }, Vec::new())
    }

    fn send(&self, request: &SpawnerRequest, descriptors: Vec<OwnedFd>) -> Result<(), WireError> {
        self.unread.borrow_mut().send(&self.socket, request, descriptors)
    }

    /// The next event, without waiting for one.
    pub fn receive(&self) -> Result<Option<SpawnerEvent>> {
        const STEP: &str = "listening to the spawner";
        let mut buffer = [0; SpawnerEvent::MAX_BYTES];
        match palisade_wire::try_receive(&self.socket, &mut buffer) {
            Ok(None) => Ok(None),
            Ok(Some(Received { message, descriptors })) => {
                if matches!(message, SpawnerEvent::Ready(_)) {
                    let mut descriptors = descriptors.into_iter();
                    let (Some(user_namespace), Some(mount_namespace)) =
                        (descriptors.next(), descriptors.next())
                    else {
                        return Err(LaunchError::new(STEP, "it came without its namespaces"));
                    };
                    let transaction = self.has_transaction.then(|| descriptors.next()).flatten();
                    let terminals = descriptors.next();
                    let inside = Inside { user_namespace, mount_namespace, transaction, terminals };
                    self.inside.replace(Some(inside));
                }
                Ok(Some(message))
            }
            Err(WireError::Closed) => {
                // The helper register knows whether it exited as asked or died.
                self.helper.has_closed();
                Ok(None)
            }
            Err(error) => Err(error).during(STEP),
        }
    }

    /// A terminal of the sandbox's own devpts, master and slave. A slave of the host's devpts would be "not a
    /// tty" inside.
    pub fn open_terminal(&self, size: Winsize) -> Result<(OwnedFd, OwnedFd)> {
        const STEP: &str = "opening a terminal inside";
        let inside = self.inside.borrow();
        let terminals = inside.as_ref().and_then(|inside| inside.terminals.as_ref());
        let terminals =
            terminals.ok_or_else(|| LaunchError::new(STEP, "the sandbox has no /dev/pts"))?;
        let master = tty::open_ptmx_in(terminals, Path::new("ptmx")).during(STEP)?;
        let slave = tty::open_slave(&master).during(STEP)?;
        if let Some(owner) = self.owner {
            // It belongs to its opener, which is root here and unmapped inside.
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(&slave, Some(uid), Some(gid)).call("fchown").during(STEP)?;
        }
        tty::set_window_size(&slave, size).during(STEP)?;
        Ok((master, slave))
    }

    /// A project whose changes are kept, as commands see it (`O_PATH`). None in a sandbox without a transaction.
    pub fn transaction(&self) -> Option<std::io::Result<OwnedFd>> {
        let inside = self.inside.borrow();
        Some(inside.as_ref()?.transaction.as_ref()?.try_clone())
    }

    /// The user and mount namespaces, for processes that enter the sandbox later.
    pub(crate) fn namespaces(&self) -> Option<std::io::Result<[OwnedFd; 2]>> {
        let inside = self.inside.borrow();
        let inside = inside.as_ref()?;
        let user = inside.user_namespace.try_clone();
        Some(user.and_then(|user| Ok([user, inside.mount_namespace.try_clone()?])))
    }

    /// Asks it to exit, without waiting. The kernel ends its children with pid 1.
    pub(crate) fn dismiss(&self) {
        self.helper.dismiss();
    }
}

/// A message of any length, for a program to read when it starts.
fn in_a_file(message: &[u8]) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(c"spawner", flags).call("memfd_create").during(STEP)?;
    let mut written = 0;
    while written < message.len() {
        let at = u64::try_from(written).unwrap_or(u64::MAX);
        written +=
            rustix::io::pwrite(&file, &message[written..], at).call("pwrite").during(STEP)?;
    }
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).call("fcntl F_ADD_SEALS").during(STEP)?;
    Ok(file)
}
