//! How the server starts: forked beside the sandbox, it mounts its file system for the process that builds the view,
//! and drops the rest.
//!
//! It shares no pid namespace with the command, which can neither see nor signal it. It alone holds the connection to the
//! kernel: if it dies, every call that waits fails, and the run ends.

use crate::callers::Callers;
use crate::grounds::Grounds;
use crate::handles::Handles;
use crate::host::Host;
use crate::identity::{Identity, ServerIdentity};
use crate::message::{FromSetup, GateFsMessage, ToSetup};
use crate::nodes::Nodes;
use crate::serve::serve;
use crate::server::GateFsServer;
use crate::waiting::Waiting;
use crate::watcher::Watcher;
use palisade_fuse::Connection;
use palisade_gate::OWN_FILESYSTEM;
use palisade_plan::model::Gate;
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::proc::{self, Resource, ResourceLimit};
use palisade_sys::{At as _, Errno, Mode, OFlags, Pid, Result, creds, other};
use palisade_wire::{Received, WireMessage as _};
use std::collections::HashSet;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

#[derive(Debug)]
pub struct GateFsStartup<'p> {
    /// Our parent; the server does not outlive it.
    pub supervisor_pid: Pid,
    /// Takes [`GateFsMessage`]s, sends [`crate::ToGateFs`]s.
    pub supervisor: OwnedFd,
    /// To the process that builds the view, until the command runs.
    pub setup: OwnedFd,
    pub gate: &'p Gate,
    pub identity: ServerIdentity,
    /// Installs the server's own filter; the launcher knows how.
    pub confine: fn() -> std::result::Result<(), String>,
}

/// Serves until the sandbox or the supervisor is gone; the process does nothing else.
pub fn run_gatefs(startup: GateFsStartup<'_>) -> ! {
    let GateFsStartup { supervisor_pid, supervisor, setup, gate, identity, confine } = startup;
    let Some(namespace) = first_message(&setup) else {
        // A launch that fails reports the reason itself.
        proc::exit_now(0)
    };
    let mounted = mount_for(namespace.as_ref()).map_err(|error| error.to_string());
    let (device, mount) = match mounted {
        Ok(mounted) => mounted,
        Err(why) => {
            let _ = palisade_wire::send(&setup, &ToSetup::Failed(why.clone()), &[]);
            fail(&supervisor, why)
        }
    };
    // At once: the view is built while we settle. Its first request waits for us.
    if palisade_wire::send(&setup, &ToSetup::Mounted, &[mount.as_fd()]).is_err() {
        proc::exit_now(0);
    }
    // The sandbox holds it from now on, and it goes with the sandbox.
    drop(mount);
    let settled = settle(device, identity, confine)
        .map_err(|error| error.to_string())
        .and_then(|settled| confine().map(|()| settled))
        .and_then(|settled| {
            // New credentials may have cleared the parent-death signal.
            let tied = creds::end_with_parent(supervisor_pid).map_err(|error| error.to_string());
            tied.map(|()| settled)
        });
    let Settled { connection, host, callers, watcher, handles } =
        settled.unwrap_or_else(|why| fail(&supervisor, why));
    let server = GateFsServer {
        connection,
        supervisor,
        gate,
        nodes: Nodes::new(),
        grounds: Grounds::default(),
        host,
        identity: Identity::new(identity),
        callers,
        handles,
        waiting: Waiting::default(),
        watcher,
        granted: HashSet::new(),
        told_absent: HashSet::new(),
        setup: Some(setup),
    };
    serve(server)
}

fn fail(supervisor: &OwnedFd, why: String) -> ! {
    let _ = palisade_wire::send(supervisor, &GateFsMessage::Failed(why), &[]);
    proc::exit_now(1)
}

/// Where to mount. None if nobody is there any more.
fn first_message(setup: &OwnedFd) -> Option<Option<OwnedFd>> {
    let mut buffer = vec![0; FromSetup::MAX_BYTES];
    let Received { message, mut descriptors } =
        palisade_wire::receive::<FromSetup>(setup, &mut buffer).ok()?;
    match message {
        FromSetup::UserNamespace => Some(Some(descriptors.pop()?)),
        FromSetup::HostsNamespace => Some(None),
        FromSetup::Ground { .. } => None,
    }
}

struct Settled {
    connection: Connection,
    host: Host,
    callers: Callers,
    watcher: Watcher,
    handles: Handles,
}

/// The connection to the kernel, and the file system.
fn mount_for(namespace: Option<&OwnedFd>) -> Result<(OwnedFd, OwnedFd)> {
    if let Some(namespace) = namespace {
        other::enter_user(namespace)?;
    }
    // Owned by the sandbox's user namespace for an ordinary user, who may mount there; later mounts of the host still
    // appear in it.
    unshare(CloneFlags::NEWNS)?;
    // In the user namespace that the file system belongs to: the kernel compares them (`fuse_fill_super`).
    let device = open("/dev/fuse", OFlags::RDWR)?;
    let mount = mount(&device)?;
    Ok((device, mount))
}

fn settle(
    device: OwnedFd,
    identity: ServerIdentity,
    confine: fn() -> std::result::Result<(), String>,
) -> Result<Settled> {
    let own_files = open("/proc/self/fd", OFlags::PATH | OFlags::DIRECTORY)?;
    let own_files = mounts::open_tree(&own_files, Path::new(""), Recursion::Single)?;
    let mountinfo = open("/proc/self/mountinfo", OFlags::RDONLY)?;
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY)?;
    make_read_only(&root)?;
    match identity {
        ServerIdentity::OrdinaryUser => creds::keep_only_sys_ptrace()?,
        ServerIdentity::Root { .. } => {
            // A group of root's would open directories that are closed to the command.
            creds::setgroups_empty()?;
            creds::keep_only_acting_as_another()?;
        }
    }
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    rustix::process::umask(Mode::empty());
    let handles = Handles::new(hold_many());
    let callers = || open("/proc", OFlags::PATH | OFlags::DIRECTORY).map(Callers::new);
    rustix::process::fchdir(&own_files).call("fchdir")?;
    // With the rights that we have by now. Closing a mount waits until no CPU uses it, which can take milliseconds on a
    // busy machine.
    let watcher = Watcher::start(callers()?, identity, confine, own_files)?;
    let callers = callers()?;
    let connection = Connection::new(device)?;
    let host = Host::new(root, mountinfo);
    Ok(Settled { connection, host, callers, watcher, handles })
}

/// The file system, not attached yet. Without `default_permissions` the kernel asks only about where a path ends, not
/// about every directory on the way.
fn mount(device: &OwnedFd) -> Result<OwnedFd> {
    let number = device.as_raw_fd().to_string();
    let uid = rustix::process::geteuid().as_raw().to_string();
    let gid = rustix::process::getegid().as_raw().to_string();
    let subtype = OWN_FILESYSTEM.trim_start_matches("fuse.");
    let options = [
        FsOption::Text("source", "sandbox"),
        FsOption::Text("fd", &number),
        FsOption::Text("rootmode", "40000"),
        FsOption::Text("user_id", &uid),
        FsOption::Text("group_id", &gid),
        FsOption::Text("subtype", subtype),
        FsOption::Flag("allow_other"),
    ];
    // What is served for one use is for reading: a program is granted by a mount of its own.
    let attrs = MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
    mounts::new_fs("fuse", &options, attrs)
}

/// Through no mount of ours can a file of the host be changed, nor a device be opened: neither by mistake, nor by a server
/// that the command has taken over. Without links, nor through those of others: `/proc/PID/root` and `/proc/PID/fd` lead to
/// their mounts. The grounds are not in our namespace.
///
/// Landlock would not do: a process that restricts itself may no longer inspect those that do not share its restrictions,
/// the command among them (`hook_ptrace_access_check`).
fn make_read_only(root: &OwnedFd) -> Result<()> {
    let set = MountAttrs::RDONLY | MountAttrs::NODEV | MountAttrs::NOSUID | MountAttrs::NOEXEC;
    let change = |set| {
        let attr = MountAttr { set, ..MountAttr::default() };
        mounts::mount_setattr(root, Recursion::Recursive, &attr)
    };
    match change(set | MountAttrs::NOSYMFOLLOW) {
        // Before 5.14.
        Err(error) if error.errno == Errno::INVAL => change(set),
        done => done,
    }
}

/// Each open file holds a descriptor. If the limit cannot be raised, fewer can be open.
fn hold_many() -> u64 {
    const ENOUGH: u64 = 1 << 16;
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    let soft = Some(hard.unwrap_or(ENOUGH).min(ENOUGH));
    let _ = proc::set_rlimit(Resource::Nofile, ResourceLimit { soft, hard });
    rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(ENOUGH)
}

fn open(path: &str, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).at("open", Path::new(path))
}
