//! Attempts at mounts, and mount namespaces in which they can be tried without harm.
//! Nothing here may mount anything in the namespace the program was started in.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use palisade_sys::clone::{CloneFlags, Forked, clone3, unshare};
use palisade_sys::creds::{self, IdKind, MapLine};
use palisade_sys::{fdpass, proc};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::files::write_file;
use crate::surroundings::{end_with, run};
use crate::{Failure, Probe, argument};

pub(crate) const PROBES: &[Probe] = &[
    ("mount-and-plant", "DIRECTORY", mount_and_plant),
    ("unmount-and-write", "MOUNT FILE", unmount_and_write),
    ("remount-and-write", "MOUNT FILE", remount_and_write),
    ("move-and-write", "MOUNT FILE", move_and_write),
    ("nest", "", nest),
    ("nest-and-unmount-and-write", "MOUNT FILE", nest_and_unmount_and_write),
    ("ask-and-read", "REQUEST FILE", ask_and_read),
    ("with-second-bind", "DIRECTORY PLACE -- COMMAND…", with_second_bind),
    ("with-late-mount", "REQUEST DIRECTORY -- COMMAND…", with_late_mount),
    ("with-witness", "DIRECTORY FILE -- COMMAND…", with_witness),
    ("with-seal", "DIRECTORY PROBE…", with_seal),
    ("in-own-mounts", "PROBE…", in_own_mounts),
    ("in-user-namespace", "PROBE…", in_user_namespace),
    ("without-user-namespaces", "-- COMMAND…", without_user_namespaces),
];

const TIMEOUT: Duration = Duration::from_secs(20);
/// The file on a mount that must not be seen from the other side.
const PLANTED: &str = "planted";

/// Mounts a file system and leaves a file on it.
fn mount_and_plant(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    mount_tmpfs(directory)?;
    write_file(&planted(directory))?;
    Ok(directory.to_owned())
}

fn unmount_and_write(arguments: &[String]) -> Result<String, Failure> {
    let file = argument(arguments, 1, "FILE")?;
    rustix::mount::unmount(argument(arguments, 0, "MOUNT")?, UnmountFlags::DETACH)?;
    write_file(file)?;
    Ok(file.to_owned())
}

fn remount_and_write(arguments: &[String]) -> Result<String, Failure> {
    let file = argument(arguments, 1, "FILE")?;
    // nosuid and nodev stay: only to lift read-only is the attack.
    let flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount_remount(argument(arguments, 0, "MOUNT")?, flags, "")?;
    write_file(file)?;
    Ok(file.to_owned())
}

fn move_and_write(arguments: &[String]) -> Result<String, Failure> {
    let file = argument(arguments, 1, "FILE")?;
    fs::create_dir_all("aside")?;
    // What is shared cannot be moved.
    let _ = rustix::mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    );
    rustix::mount::mount_move(argument(arguments, 0, "MOUNT")?, "aside")?;
    write_file(file)?;
    Ok(file.to_owned())
}

/// Uses a capability that a new user namespace gives.
fn nest(_: &[String]) -> Result<String, Failure> {
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWUTS)?;
    proc::sethostname("nested")?;
    Ok("nested".to_owned())
}

fn nest_and_unmount_and_write(arguments: &[String]) -> Result<String, Failure> {
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWNS)?;
    unmount_and_write(arguments)
}

/// Asks `with-late-mount` for its mount, and reads a file that it should bring.
fn ask_and_read(arguments: &[String]) -> Result<String, Failure> {
    let request = argument(arguments, 0, "REQUEST")?;
    let file = argument(arguments, 1, "FILE")?;
    fs::write(request, "")?;
    if !appears(&answer(request), || true) {
        return Err(Failure::Usage(format!("nobody answered {request}")));
    }
    Ok(fs::read_to_string(file)?)
}

/// With a directory mounted at a second place.
fn with_second_bind(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    let place = argument(arguments, 1, "PLACE")?;
    enter_own_mounts()?;
    rustix::mount::mount_bind(directory, place)?;
    end_with(run(arguments)?)
}

/// With a file system that is mounted when REQUEST appears.
fn with_late_mount(arguments: &[String]) -> Result<String, Failure> {
    let request = argument(arguments, 0, "REQUEST")?;
    let directory = argument(arguments, 1, "DIRECTORY")?;
    enter_own_mounts()?;
    let mut child = start(arguments)?;
    if appears(request, || matches!(child.try_wait(), Ok(None))) {
        mount_tmpfs(directory)?;
        write_file(&planted(directory))?;
        fs::write(answer(request), "")?;
    }
    end_with(child.wait()?.code().unwrap_or(1))
}

/// Writes FILE if a mount that the command made can be seen afterwards.
fn with_witness(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    let file = argument(arguments, 1, "FILE")?;
    enter_own_mounts()?;
    let code = run(arguments)?;
    if Path::new(&planted(directory)).exists() {
        fs::write(file, "seen")?;
    }
    end_with(code)
}

/// Another probe of this program, where a directory is read-only as in the sandbox.
fn with_seal(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    enter_own_mounts()?;
    rustix::mount::mount_bind(directory, directory)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount_remount(directory, flags, "")?;
    crate::attempt(&arguments[1..])
}

/// Another probe of this program, in mounts of its own that it has all capabilities over.
fn in_own_mounts(arguments: &[String]) -> Result<String, Failure> {
    enter_own_mounts()?;
    crate::attempt(arguments)
}

/// The same in a user namespace of its own, whoever the caller is.
fn in_user_namespace(arguments: &[String]) -> Result<String, Failure> {
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWNS)?;
    crate::attempt(arguments)
}

/// In a user namespace whose own limit on further ones is zero.
fn without_user_namespaces(arguments: &[String]) -> Result<String, Failure> {
    let (uid, gid) = ids();
    let (ours, theirs) = fdpass::socketpair()?;
    match clone3(CloneFlags::NEWUSER)? {
        Forked::Child => {
            drop(ours);
            // Until the ids are mapped.
            rustix::io::read(&theirs, &mut [0; 1])?;
            fs::write("/proc/sys/user/max_user_namespaces", "0")?;
            end_with(run(arguments)?)
        }
        Forked::Parent { pid, .. } => {
            // Root gets all its ids again, so that the one thing only is missing.
            let all = |first| vec![MapLine { inside: first, outside: first, count: 65536 }];
            let own = |id| vec![MapLine { inside: id, outside: id, count: 1 }];
            let ids = |id: u32| if uid == 0 { all(0) } else { own(id) };
            if uid != 0 {
                creds::deny_setgroups(Some(pid))?;
            }
            creds::write_map(Some(pid), IdKind::Gid, &ids(gid))?;
            creds::write_map(Some(pid), IdKind::Uid, &ids(uid))?;
            rustix::io::write(&ours, b"!")?;
            let ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
            end_with(ended.and_then(|(_, status)| status.exit_status()).unwrap_or(1))
        }
    }
}

/// A private copy of all mounts, shared among themselves as an init system shares the host's.
fn enter_own_mounts() -> Result<(), Failure> {
    let (uid, gid) = ids();
    if uid == 0 {
        unshare(CloneFlags::NEWNS)?;
    } else {
        unshare(CloneFlags::NEWUSER | CloneFlags::NEWNS)?;
        let own = |id| MapLine { inside: id, outside: id, count: 1 };
        map_ids(own(uid), own(gid))?;
    }
    for propagation in [MountPropagationFlags::PRIVATE, MountPropagationFlags::SHARED] {
        rustix::mount::mount_change("/", propagation | MountPropagationFlags::REC)?;
    }
    Ok(())
}

fn ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn map_ids(uids: MapLine, gids: MapLine) -> Result<(), Failure> {
    creds::deny_setgroups(None)?;
    creds::write_map(None, IdKind::Gid, &[gids])?;
    Ok(creds::write_map(None, IdKind::Uid, &[uids])?)
}

fn mount_tmpfs(directory: &str) -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount("none", directory, "tmpfs", flags, None)?)
}

fn planted(directory: &str) -> String {
    format!("{directory}/{PLANTED}")
}

fn answer(request: &str) -> String {
    format!("{request}.answer")
}

fn start(arguments: &[String]) -> Result<Child, Failure> {
    let mut words = arguments.iter().skip_while(|word| *word != "--").skip(1);
    let program = words.next().ok_or_else(|| Failure::Usage("COMMAND is missing".to_owned()))?;
    Ok(Command::new(program).args(words).spawn()?)
}

/// Waits for a file for as long as that makes sense.
fn appears(file: &str, mut makes_sense: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + palisade_testkit::patiently(TIMEOUT);
    while Instant::now() < until && makes_sense() {
        if Path::new(file).exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Path::new(file).exists()
}
