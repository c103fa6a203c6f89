//! Starts the keeper process and holds the launcher's end of its socket. What the keeper does is in
//! `palisade-keeper`. It is started for the first question: most runs have none.

use crate::error::{During, LaunchError};
use crate::fuse_root::GroundStore;
use crate::helper::{Helper, HelperKind, confine};
use crate::idmap;
use crate::parent::{Running, host_owner};
use crate::spawner::Spawner;
use palisade_bpf::keeper_spec;
use palisade_keeper::{
    CallerIdentity, KeeperEvent, KeeperRequest, KeeperStartup, Layout, Root, run_keeper,
};
use palisade_plan::model::{Confinement, Gate, IdMapping, MountOp, Namespaced, Plan};
use palisade_sys::fdpass::socketpair;
use palisade_sys::{At as _, Mode, OFlags};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const STEP: &str = "starting the keeper";

/// The running keeper, seen from the supervisor.
#[derive(Debug)]
pub struct Keeper {
    helper: Helper,
    socket: OwnedFd,
}

impl Keeper {
    /// Forks it. The caller must be single-threaded, and the command's process alive.
    pub fn start(running: &Running, plan: &Plan) -> Result<Self, LaunchError> {
        let (Confinement::Namespaces(inside), Some(gate)) =
            (&plan.sandbox.confinement, &plan.sandbox.gate)
        else {
            return Err(LaunchError::new(STEP, "this plan asks nothing"));
        };
        let [user_namespace, mount_namespace] = namespaces(running)?;
        let (socket, supervisor) = socketpair().during(STEP)?;
        let stores = stores(running)?;
        let kept = [&supervisor, &user_namespace, &mount_namespace].into_iter();
        let kept = kept.chain(stores.iter().map(|(_, store)| store));
        let kept = kept.map(AsRawFd::as_raw_fd).collect();
        let helper = running.helpers().start(HelperKind::Keeper, STEP, kept, |supervisor_pid| {
            run_keeper(KeeperStartup {
                supervisor_pid,
                supervisor,
                user_namespace,
                mount_namespace,
                layout: Layout { stores, ..layout(gate) },
                identity: identity(inside, gate),
                confine: || confine(keeper_spec),
            })
        })?;
        Ok(Self { helper, socket })
    }

    /// Readable when there is an answer, or the keeper is gone.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Never waits. False if the socket is full: nothing was sent, and the socket is writable when there is room again.
    pub fn send(&self, request: &KeeperRequest) -> Result<bool, LaunchError> {
        send_if_room(&self.socket, request)
    }

    /// The next answer with its descriptor, without waiting for one. An error when the keeper is gone.
    pub fn receive(&self) -> Result<Option<(KeeperEvent, Option<OwnedFd>)>, LaunchError> {
        const STEP: &str = "listening to the keeper";
        let mut buffer = vec![0; KeeperEvent::MAX_BYTES];
        match palisade_wire::try_receive(&self.socket, &mut buffer) {
            Ok(None) => Ok(None),
            Ok(Some(Received { message: KeeperEvent::Unable { why }, .. })) => {
                Err(LaunchError::new(STEP, why))
            }
            Ok(Some(Received { message, mut descriptors })) => {
                Ok(Some((message, descriptors.pop())))
            }
            Err(WireError::Closed) => {
                // The helper register knows what became of it.
                self.helper.has_closed();
                Err(LaunchError::new(STEP, "it has ended"))
            }
            Err(error) => Err(error).during(STEP),
        }
    }
}

fn send_if_room(socket: &OwnedFd, request: &KeeperRequest) -> Result<bool, LaunchError> {
    const STEP: &str = "asking the keeper";
    let packet = palisade_wire::encode(request).during(STEP)?;
    match palisade_wire::try_send(socket, &packet) {
        Ok(()) => Ok(true),
        Err(WireError::NoRoom) => Ok(false),
        Err(error) => Err(error).during(STEP),
    }
}

/// The sandbox's user and mount namespaces, through the command: pid 1 is undumpable.
fn namespaces(running: &Running) -> Result<[OwnedFd; 2], LaunchError> {
    if let Some(inside) = running.spawner().and_then(Spawner::namespaces) {
        return inside.map_err(|error| {
            LaunchError::new(STEP, palisade_sys::io_error_text(&error).to_string())
        });
    }
    let command = running.command();
    let Some(pid) = command else {
        return Err(LaunchError::new(STEP, "the command has ended"));
    };
    let directory = format!("/proc/{}/ns", pid.as_raw_pid());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let process = rustix::fs::open(&directory, flags, Mode::empty())
        .at("open", Path::new(&directory))
        .during(STEP)?;
    // The pid could have been reused; the descriptor refers to the process for good.
    if running.command() != command {
        return Err(LaunchError::new(STEP, "the command has ended"));
    }
    let open = |name: &str| {
        rustix::fs::openat(&process, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .at("open", &Path::new(&directory).join(name))
            .during(STEP)
    };
    Ok([open("user")?, open("mnt")?])
}

/// What is behind the gate's file system.
fn stores(running: &Running) -> Result<Vec<(PathBuf, OwnedFd)>, LaunchError> {
    let copies = running.grounds().iter().map(|GroundStore { path, root }| {
        let root = root.try_clone();
        let root = root.map_err(|error| LaunchError::new(STEP, error.to_string()))?;
        Ok((path.clone(), root))
    });
    copies.collect()
}

fn layout(gate: &Gate) -> Layout {
    let (grounds, mounted) = (gate.grounds.clone(), gate.mounted.clone());
    Layout { grounds, mounted, stores: Vec::new() }
}

fn identity(inside: &Namespaced, gate: &Gate) -> CallerIdentity {
    if inside.identity.mapping == IdMapping::OwnId {
        return CallerIdentity::OrdinaryUser;
    }
    let command = host_owner(&inside.identity);
    CallerIdentity::Root(Root {
        command,
        unmapped: unmapped(&inside.mounts, gate.shown_unmapped()),
        map: Box::new(move |owner| idmap::user_namespace(owner, command)),
        maps: BTreeMap::new(),
    })
}

/// System directories: the plan shows them with their own owners, and leaves out what only root may read, which
/// a map would reveal.
fn unmapped<'p>(
    mounts: &'p [MountOp],
    when_used: impl Iterator<Item = &'p Path>,
) -> BTreeSet<PathBuf> {
    let shown = mounts.iter().filter_map(|op| match op {
        MountOp::Bind { source, idmap: None, .. } => Some(source.ancestors()),
        _ => None,
    });
    let parts = shown.flatten().filter(|path| *path != Path::new("/"));
    parts.chain(when_used).map(Path::to_owned).collect()
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
