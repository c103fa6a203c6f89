//! The Landlock rules. They enforce the mount view's rules independently, and are the only enforcement if there
//! are no namespaces.

use crate::facts::HostFacts;
use crate::model::{Execution, Guard, Landlock, MountAccess, MountOp};
use crate::own;
use std::path::{Path, PathBuf};

/// Terminals stay writable, like the device nodes.
const PTS: &str = "/dev/pts";

/// In addition to the mount view: restricts writing, devices, abstract sockets and signals. Reading is left to
/// the view, which enforces it already: with Landlock, every open would cost a walk over the rules.
pub(crate) fn second_floor(
    facts: &HostFacts,
    mounts: &[MountOp],
    guard: Option<&Guard>,
) -> Option<Landlock> {
    let abi = facts.landlock_abi;
    if abi == 0 {
        return None;
    }
    let has = |path: &str| mounts.iter().any(|op| op.target() == Path::new(path));
    let guarded = guard.map(Guard::held_back).unwrap_or_default();
    let is_free = |op: &&MountOp| !(guard.is_some() && matches!(op, MountOp::Bind { .. }));
    let mut writable: Vec<PathBuf> =
        mounts.iter().filter(|op| is_writable(op)).filter(is_free).map(target).collect();
    // The permissions in /proc determine what a process may write there.
    writable.extend(has("/proc").then(|| PathBuf::from("/proc")));
    writable.retain(|path| !guarded.contains(path));
    // A rule applies to everything below its path, so a rule inside another one is redundant.
    let all = writable.clone();
    writable.retain(|path| !all.iter().any(|above| path != above && path.starts_with(above)));
    Some(Landlock {
        abi,
        restrict_reads: false,
        // If truncation is restricted, the kernel walks up the tree on every open, even for reading, which
        // costs a third more. Read-only mounts refuse truncation anyway. But a file that is passed as a stream
        // is on a mount of the host, and `/proc/self/fd/0` names it. One that is open for writing needs no name.
        refuse_truncation: facts.stream_reads_file,
        readable: Vec::new(),
        writable,
        guarded,
        build_dirs: build_dirs(guard),
        devices: device_nodes().chain([PTS]).filter(|path| has(path)).map(PathBuf::from).collect(),
        executables: Execution::Readable,
        refuse_tcp: false,
        scope: abi >= 6,
    })
}

/// Without a mount view: also restricts reading and the network.
pub(crate) fn alone(
    abi: u32,
    mounts: &[MountOp],
    guard: Option<&Guard>,
    refuse_tcp: bool,
) -> Landlock {
    let bound = |wanted: MountAccess| {
        mounts.iter().filter_map(move |op| match op {
            MountOp::Bind { source, access, .. } if *access == wanted => Some(source.clone()),
            _ => None,
        })
    };
    let guarded = guard.map(Guard::held_back).unwrap_or_default();
    // These belong to the host, so names in them are guarded as well.
    let shared = own::SHARED_WITH_HOST.map(PathBuf::from);
    let granted = bound(MountAccess::ReadWrite).chain(shared).filter(|_| guard.is_none());
    let readable = ["/proc", "/sys/devices/system/cpu"].map(PathBuf::from);
    Landlock {
        abi,
        restrict_reads: true,
        refuse_truncation: true,
        readable: bound(MountAccess::ReadOnly).chain(readable).collect(),
        writable: granted.collect(),
        guarded,
        build_dirs: build_dirs(guard),
        // The command's own terminal is added when it is known; the others belong to other programs.
        devices: device_nodes().map(PathBuf::from).collect(),
        executables: Execution::Readable,
        refuse_tcp: refuse_tcp && abi >= 4,
        scope: abi >= 6,
    }
}

fn build_dirs(guard: Option<&Guard>) -> Vec<PathBuf> {
    guard.map(|guard| guard.build_dirs.clone()).unwrap_or_default()
}

fn device_nodes() -> impl Iterator<Item = &'static str> {
    own::DEVICES.into_iter().map(|(path, ..)| path)
}

fn is_writable(op: &MountOp) -> bool {
    matches!(op, MountOp::Mqueue { .. }) || op.is_writable()
}

fn target(op: &MountOp) -> PathBuf {
    op.target().to_owned()
}
