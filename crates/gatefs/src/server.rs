//! The state of the server, and how requests are answered.

use crate::callers::{CallerClass, Callers};
use crate::grounds::Grounds;
use crate::handles::Handles;
use crate::host::Host;
use crate::identity::Identity;
use crate::message::GateFsMessage;
use crate::nodes::{Node, Nodes};
use crate::waiting::{Call, PendingCall, Waiting};
use crate::watcher::Watcher;
use palisade_fuse::{Connection, NodeId, Reply, Request, Unique};
use palisade_gate::{MAX_PATH_BYTES, PathAccess, Wants};
use palisade_plan::model::{Gate, Nature};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::{Errno, Pid};
use rustix::fs::{FileType, Stat};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For what only we change: the kernel tells us before it changes anything itself. Short enough for its clock.
pub(crate) const ALWAYS: Duration = Duration::from_hours(24);

/// So many are reported by their names; the supervisor has as many in mind.
const MAX_TOLD_ABSENT: usize = 4096;
const OPEN: Wants = Wants::Open { directory: false, path_only: false };

#[derive(Debug)]
pub(crate) struct GateFsServer<'p> {
    pub(crate) connection: Connection,
    pub(crate) supervisor: OwnedFd,
    pub(crate) gate: &'p Gate,
    pub(crate) nodes: Nodes,
    pub(crate) grounds: Grounds,
    pub(crate) host: Host,
    pub(crate) identity: Identity,
    pub(crate) callers: Callers,
    pub(crate) handles: Handles,
    pub(crate) waiting: Waiting,
    pub(crate) watcher: Watcher,
    /// Where something of the host is mounted that was granted.
    pub(crate) granted: HashSet<PathBuf>,
    /// Names of which the supervisor knows that somebody looked them up in vain.
    pub(crate) told_absent: HashSet<PathBuf>,
    /// To the processes that build the view. The command's exec closes it.
    pub(crate) setup: Option<OwnedFd>,
}

/// What a request is answered, if that is known by now.
pub(crate) type Answer = Result<Option<Reply<'static>>, Errno>;

impl GateFsServer<'_> {
    pub(crate) fn reply(&self, unique: Unique, reply: &Reply<'_>) {
        // Whoever waited may be gone. An error means that the connection is, and the loop sees that.
        let _ = self.connection.reply(unique, reply);
    }

    pub(crate) fn node(&self, id: NodeId) -> Result<&Node, Errno> {
        self.nodes.get(id).ok_or(Errno::STALE)
    }

    /// An error for a caller that cannot be told: it is not ours to be trusted, and nobody could be asked for it.
    pub(crate) fn class(&mut self, request: &Request<'_>) -> Result<CallerClass, Errno> {
        let class = self.callers.class(request.pid).ok_or(Errno::ACCESS)?;
        Ok(match class {
            CallerClass::NamedSetup if self.is_view_built() => CallerClass::Inside,
            CallerClass::NamedSetup => CallerClass::Helper,
            class => class,
        })
    }

    /// Whether the command runs by now: until its exec closes the last copy of the socket, only our own processes are
    /// in its pid namespace.
    fn is_view_built(&self) -> bool {
        let Some(setup) = &self.setup else { return true };
        let mut polled = [PollFd::new(setup, PollFlags::empty())];
        let is_known = proc::poll(&mut polled, Some(Duration::ZERO)).is_ok();
        !is_known || polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// How long attributes of a file in a ground hold.
    pub(crate) fn attributes_hold(&self, path: &Path) -> Duration {
        // A file there may have another name, by which the kernel does not know it as the same.
        let is_changed = self.gate.private_home.as_ref().is_some_and(|home| path.starts_with(home));
        if self.setup.is_none() && !is_changed { ALWAYS } else { Duration::ZERO }
    }

    /// Whether something is mounted at this path or below it, or will be.
    pub(crate) fn carries_mounts(&self, id: Option<NodeId>, path: &Path) -> bool {
        let is_below = |mounted: &PathBuf| mounted.starts_with(path);
        self.gate.mounted.iter().chain(&self.granted).any(is_below)
            || self.grounds.are_below(path)
            || id.is_some_and(|id| self.nodes.is_held_at_or_below(id))
    }

    /// Whether nobody learns that something is there, because nothing that is decided later would show it.
    pub(crate) fn is_never_told(&self, path: &Path) -> bool {
        self.gate.nature(path) == Nature::Never || self.gate.leaves_out(path)
    }

    /// Whether something of the host looks absent to the command, because it is never granted: a device, a pipe or a socket.
    /// That it was wanted is reported, if the run lasts long enough. Of a secret the command is told that it is denied.
    pub(crate) fn looks_absent(
        &mut self,
        request: &Request<'_>,
        path: &Path,
        found: &Stat,
    ) -> bool {
        let may_be_granted = matches!(
            FileType::from_raw_mode(found.st_mode),
            FileType::RegularFile | FileType::Directory | FileType::Symlink
        );
        let looks_absent = !may_be_granted
            && self.gate.nature(path) == Nature::Ordinary
            && !self.carries_mounts(None, path);
        let is_new = looks_absent && !self.told_absent.contains(path);
        if is_new && self.told_absent.len() < MAX_TOLD_ABSENT && !self.waiting.is_full() {
            self.told_absent.insert(path.to_owned());
            if let Some(thread) = request.pid {
                let asked = self.path_access(thread, path.to_owned(), (&Call::Open, OPEN), 0);
                // The answer is known, and nobody waits for it.
                self.waiting.post(&self.supervisor, &GateFsMessage::PathAccess(asked));
            }
        }
        looks_absent
    }

    /// Reports once that somebody looks for one of Palisade's own directories (ESC-1). They are so few that they need no
    /// bound, and nobody finds one to look further below it.
    pub(crate) fn report_look_at_own(&mut self, request: &Request<'_>, path: &Path) {
        let is_own = self.gate.own.iter().any(|own| own == path);
        let Some(thread) = request.pid.filter(|_| is_own && !self.told_absent.contains(path))
        else {
            return;
        };
        self.told_absent.insert(path.to_owned());
        let (pid, executable) = (number_of(thread), self.callers.program(thread));
        let message = GateFsMessage::LookAtOwn { path: path.to_owned(), pid, executable };
        self.waiting.post(&self.supervisor, &message);
    }

    /// Leaves a call unanswered until the supervisor has decided about the path.
    pub(crate) fn ask(&mut self, request: &Request<'_>, call: Call, wants: Wants) -> Answer {
        let Some(thread) = request.pid.filter(|_| !self.waiting.is_full()) else {
            return Err(Errno::ACCESS);
        };
        let path = self.nodes.path(request.node).ok_or(Errno::STALE)?;
        if path.as_os_str().len() >= MAX_PATH_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let (unique, node) = (request.unique, request.node);
        let existing = self.nodes.existing(node);
        let asked = self.path_access(thread, path, (&call, wants), existing);
        self.waiting.add(&self.supervisor, asked, PendingCall { unique, node, call, thread });
        Ok(None)
    }

    /// What the supervisor decides about.
    fn path_access(
        &mut self,
        thread: Pid,
        path: PathBuf,
        (call, wants): (&Call, Wants),
        existing: usize,
    ) -> PathAccess {
        let name = self.callers.call_name(&self.identity, thread);
        // Links on the way are followed by the kernel. Of a secret one, the target counts; but who only reads the link, which may
        // lead nowhere, is asked about the link.
        let is_on_way = *call == Call::ReadLink && !name.is_some_and(reads_link);
        PathAccess {
            id: self.waiting.next_request(),
            call: name.unwrap_or(usual_call(call, wants)).to_owned(),
            wants,
            existing,
            is_covered: false,
            is_read_only: false,
            new_path: Vec::new(),
            follow: is_on_way && self.gate.nature(&path) == Nature::Secret,
            path: path.into_os_string().into_vec(),
            may_be_served: true,
            pid: number_of(thread),
            executable: self.callers.program(thread),
            cwd: self.callers.working_directory(thread),
        }
    }

    /// Ends the process: without it the view is gone, and the run with it.
    pub(crate) fn fail(&mut self, why: String) -> ! {
        self.waiting.post(&self.supervisor, &GateFsMessage::Failed(why));
        proc::exit_now(1)
    }
}

/// The system call that usually leads to the request.
fn usual_call(call: &Call, wants: Wants) -> &'static str {
    match call {
        Call::GetAttr => "newfstatat",
        Call::Open | Call::OpenDir => "openat",
        Call::Access { .. } if wants == Wants::Enter => "chdir",
        Call::Access { .. } => "access",
        Call::ReadLink => "readlink",
        Call::GetXattr { .. } => "getxattr",
        Call::ListXattr { .. } => "listxattr",
        Call::StatFs => "statfs",
    }
}

/// Whether a call is readlink(2) or readlinkat(2); all others that read a link go where it leads.
pub(crate) fn reads_link(call: &str) -> bool {
    call.starts_with("readlink")
}

fn number_of(thread: Pid) -> u32 {
    thread.as_raw_pid().unsigned_abs()
}
