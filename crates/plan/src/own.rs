//! Directories that are always private to the sandbox: `/proc`, `/dev`, `/run`, `/tmp` and others (FS-7).
//!
//! Nothing of the host may be visible there except a few harmless device nodes.

use crate::denied::{Class, Denied};
use crate::facts::{EntryKind, HostFacts};
use crate::host::{Host, Link};
use crate::model::MountOp;
use crate::path_map::PathMap;
use crate::path_text::PathText as _;
use palisade_policy::model::{Filesystem, Level};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// No grant replaces these, and no bound directory contains the host's version.
pub(crate) const OWN_AREAS: [&str; 6] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp"];

/// Directories with many small mounts in which nothing is ever granted. Where a process serves the view, each name that
/// something is mounted on costs a request to it: these have a file system of their own instead.
pub(crate) const FRAMED_AREAS: [&str; 2] = ["/dev", "/sys"];

/// Writable directories that belong to the host if there is no mount namespace.
pub(crate) const SHARED_WITH_HOST: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Parts of `/proc` that affect the whole host; read-only, as in the OCI runtime specification.
const PROC_READ_ONLY: [&str; 8] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Parts of `/proc` that reveal the host's memory, keys and other processes.
const PROC_BLANK: [&str; 5] =
    ["/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/timer_list"];

/// Path, major, minor: `Documentation/admin-guide/devices.txt`.
pub(crate) const DEVICES: [(&str, u32, u32); 6] = [
    ("/dev/full", 1, 7),
    ("/dev/null", 1, 3),
    ("/dev/random", 1, 8),
    ("/dev/tty", 5, 0),
    ("/dev/urandom", 1, 9),
    ("/dev/zero", 1, 5),
];

const DEV_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
];

/// The area that a grant would replace: the area itself, or any part of `/proc` and `/dev`, where the host's
/// version would become visible.
pub(crate) fn area_of_grant(target: &Path) -> Option<&'static str> {
    if target.is_in("/dev/shm") {
        return Some("/dev/shm");
    }
    OWN_AREAS.into_iter().find(|area| {
        target.is_same(area) || (matches!(*area, "/proc" | "/dev") && target.is_in(area))
    })
}

/// The directories that contain all users' homes. They are never visible as a whole.
pub(crate) fn holds_homes(target: &Path) -> bool {
    target == Path::new("/home") || target == Path::new("/root")
}

/// The caller's runtime directory, if it is at the usual place.
pub(crate) fn runtime_dir(facts: &HostFacts) -> Option<PathBuf> {
    let dir = PathBuf::from(facts.env.get(OsStr::new("XDG_RUNTIME_DIR"))?);
    (dir.parent() == Some(Path::new("/run/user"))).then_some(dir)
}

/// Older names for parts of `/run` on the host, which programs still use.
pub(crate) fn links(host: &Host<'_>) -> Vec<Link> {
    let found = ["/var/run", "/var/lock"].map(|name| host.resolve(Path::new(name)));
    let links = found.into_iter().map(|found| match found {
        Ok(found) => found.links,
        Err(missing) => missing.links,
    });
    links.flatten().filter(|link| link.place.starts_with("/var")).collect()
}

/// The mount steps, without what the policy denies.
pub(crate) fn mounts(
    filesystem: &Filesystem,
    level: Level,
    facts: &HostFacts,
    denied: &Denied,
    host: &Host<'_>,
) -> PathMap<MountOp> {
    let mut ops = Vec::with_capacity(40);
    devices(&mut ops, level);
    ops.push(MountOp::Proc { target: "/proc".into() });
    for target in PROC_READ_ONLY {
        ops.push(MountOp::Seal { target: target.into(), optional: true });
    }
    for target in PROC_BLANK {
        ops.push(MountOp::Blank { target: target.into(), optional: true });
    }
    ops.push(tmpfs("/run", 0o755, None, false));
    ops.push(MountOp::Dir { target: "/run/lock".into(), mode: 0o1777 });
    if let Some(target) = runtime_dir(facts) {
        ops.push(MountOp::Dir { target, mode: 0o700 });
    }
    ops.push(tmpfs("/tmp", 0o1777, filesystem.tmp_size, true));
    ops.push(tmpfs("/var/tmp", 0o1777, filesystem.var_tmp_size, true));

    let mut own: PathMap<MountOp> =
        ops.into_iter().map(|op| (op.target().to_owned(), op)).collect();
    if denied.has_asked() {
        leave_out(&mut own, denied, host);
    }
    own
}

/// Removes what the policy denies.
fn leave_out(own: &mut PathMap<MountOp>, denied: &Denied, host: &Host<'_>) {
    let is_asked = |path: &Path| denied.above(path).is_some_and(|(_, class)| class == Class::Asked);
    own.retain(|target, _| !is_asked(target));
    if own.contains_key(Path::new("/proc")) {
        own.extend(denied_in_proc(denied, host));
    }
    // A blank is a mount of the null device, which must exist.
    if !own.contains_key(Path::new("/dev/null")) {
        own.retain(|_, op| !matches!(op, MountOp::Blank { .. }));
    }
}

fn devices(ops: &mut Vec<MountOp>, level: Level) {
    // On our own root, which finally becomes read-only: nothing can be created in it.
    ops.push(MountOp::Dir { target: "/dev".into(), mode: 0o755 });
    for (path, major, minor) in DEVICES {
        let path = PathBuf::from(path);
        ops.push(MountOp::Device { source: path.clone(), target: path, major, minor });
    }
    for (target, points_to) in DEV_LINKS {
        ops.push(MountOp::Symlink { target: target.into(), points_to: points_to.into() });
    }
    ops.push(MountOp::DevPts { target: "/dev/pts".into() });
    ops.push(tmpfs("/dev/shm", 0o1777, None, true));
    // Without its own IPC namespace, a new mount would show the host's queues.
    if level == Level::Full {
        ops.push(MountOp::Mqueue { target: "/dev/mqueue".into() });
    }
}

/// Hides what the policy denies below our own `/proc`.
fn denied_in_proc(denied: &Denied, host: &Host<'_>) -> Vec<(PathBuf, MountOp)> {
    let asked = denied.below(Path::new("/proc")).filter(|(_, denial)| denial.class == Class::Asked);
    asked
        .map(|(path, _)| {
            let target = path.to_owned();
            let op = match host.kind(path) {
                Some(EntryKind::Dir) => {
                    MountOp::Tmpfs { target, mode: 0o555, size: Some(4096), exec: false }
                }
                _ => MountOp::Blank { target, optional: true },
            };
            (path.to_owned(), op)
        })
        .collect()
}

fn tmpfs(target: &str, mode: u32, size: Option<u64>, exec: bool) -> MountOp {
    MountOp::Tmpfs { target: target.into(), mode, size, exec }
}
