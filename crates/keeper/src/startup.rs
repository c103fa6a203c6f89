//! How the keeper starts: forked beside the sandbox, it gets a copy of the host's tree that it may clone from
//! and descriptors of both mount namespaces, and drops the rest.
//!
//! It shares no pid namespace with the command, which can neither see nor signal it. If it fails or dies,
//! nothing more is shown; what was shown stays.

use crate::identity::CallerIdentity;
use crate::look::Host;
use crate::message::{KeeperEvent, KeeperRequest};
use crate::own_files::OwnFiles;
use crate::sandbox_mounts::{Layout, SandboxMounts};
use crate::serve::KeeperServer;
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::proc::{self, Resource, ResourceLimit};
use palisade_sys::{At as _, Mode, OFlags, Pid, SysError, creds, other};
use palisade_wire::{WireError, WireMessage as _};
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

#[derive(Debug)]
pub struct KeeperStartup {
    /// Our parent; the keeper does not outlive it. The launcher ensures that until credentials change.
    pub supervisor_pid: Pid,
    /// Receives each [`KeeperRequest`] and sends each [`KeeperEvent`].
    pub supervisor: OwnedFd,
    /// The sandbox's.
    pub user_namespace: OwnedFd,
    pub mount_namespace: OwnedFd,
    pub layout: Layout,
    pub identity: CallerIdentity,
    /// Installs the keeper's own filter; the launcher knows how.
    pub confine: fn() -> Result<(), String>,
}

/// Serves until the supervisor is gone; the process does nothing else.
pub fn run_keeper(startup: KeeperStartup) -> ! {
    let KeeperStartup { supervisor_pid, supervisor, confine, .. } = &startup;
    let (pid, confine) = (*supervisor_pid, *confine);
    let Ok(supervisor) = supervisor.try_clone() else { proc::exit_now(1) };
    let taken = settle(startup)
        .map_err(|error| error.to_string())
        .and_then(|server| confine().map(|()| server))
        .and_then(|server| {
            // New credentials may have cleared the parent-death signal (`commit_creds` in the kernel).
            creds::end_with_parent(pid).map(|()| server).map_err(|error| error.to_string())
        });
    match taken {
        Ok(server) => serve(server, &supervisor),
        Err(why) => {
            let _ = palisade_wire::send(&supervisor, &KeeperEvent::Unable { why }, &[]);
            proc::exit_now(1)
        }
    }
}

fn settle(startup: KeeperStartup) -> Result<KeeperServer, SysError> {
    match &startup.identity {
        CallerIdentity::OrdinaryUser => {
            other::enter_user(&startup.user_namespace)?;
            // Owned by the sandbox's user namespace, where we may clone; later mounts of the host still appear
            // in it.
            unshare(CloneFlags::NEWNS)?;
            creds::keep_only_mounting()?;
        }
        CallerIdentity::Root(_) => {
            // A group of root's would open files to the command.
            creds::setgroups_empty()?;
            creds::keep_only_mounting_as_root()?;
        }
    }
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    rustix::process::umask(Mode::empty());
    hold_many();
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY)?;
    let own_namespace = open("/proc/self/ns/mnt", OFlags::RDONLY)?;
    let own_files = OwnFiles::open()?;
    let KeeperStartup { mount_namespace, layout, identity, .. } = startup;
    let inside = SandboxMounts::open(mount_namespace, own_namespace, layout, &identity)?;
    Ok(KeeperServer { host: Host { root }, own_files, identity, inside, held: VecDeque::new() })
}

/// Each graft holds a descriptor. If the limit cannot be raised, fewer can be shown.
fn hold_many() {
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    let _ = proc::set_rlimit(Resource::Nofile, ResourceLimit { soft: hard, hard });
}

fn open(path: &str, flags: OFlags) -> Result<OwnedFd, SysError> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).at("open", Path::new(path))
}

fn serve(mut server: KeeperServer, supervisor: &OwnedFd) -> ! {
    let mut buffer = vec![0; KeeperRequest::MAX_BYTES];
    loop {
        let request = match palisade_wire::receive(supervisor, &mut buffer) {
            Ok(received) => received.message,
            Err(WireError::Closed) => proc::exit_now(0),
            // The supervisor sent something that cannot be decoded.
            Err(_) => proc::exit_now(1),
        };
        if let Some((event, file)) = server.answer(request) {
            let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
            if tell(supervisor, &event, &files).is_err() {
                proc::exit_now(1);
            }
        }
    }
}

/// Forty links of full length would not fit; they occur only in attempts to break this.
fn tell(
    supervisor: &OwnedFd,
    event: &KeeperEvent,
    files: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    match (palisade_wire::send(supervisor, event, files), event) {
        (Err(WireError::TooLong { .. }), KeeperEvent::Found(found)) => {
            palisade_wire::send(supervisor, &KeeperEvent::Absent { token: found.token }, &[])
        }
        (sent, _) => sent,
    }
}
