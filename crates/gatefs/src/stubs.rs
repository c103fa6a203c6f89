//! What a stub shows: its type, and nothing else.

use crate::identity::Identity;
use palisade_fuse::{Attributes, NodeId};
use rustix::fs::{FileType, Stat};

const BLOCK_BYTES: u32 = 4096;

/// The type that a stub of the host's file has. Devices, pipes and sockets cannot be granted; the kernel would act on
/// such a type by itself.
pub(crate) fn kind_of(stat: &Stat) -> FileType {
    match FileType::from_raw_mode(stat.st_mode) {
        kind @ (FileType::Directory | FileType::Symlink) => kind,
        _ => FileType::RegularFile,
    }
}

/// The kernel keeps these, and `statx` with `AT_STATX_DONT_SYNC` reads them without asking. It replaces nothing whose
/// owner the sandbox's user namespace does not map (`EOVERFLOW`).
pub(crate) fn blank(node: NodeId, kind: FileType, identity: &Identity) -> Attributes {
    let (uid, gid) = identity.command();
    Attributes {
        ino: node.0,
        mode: kind.as_raw_mode(),
        links: 1,
        uid,
        gid,
        block_size: BLOCK_BYTES,
        ..Attributes::default()
    }
}

/// A directory of which only the name was granted.
pub(crate) fn named(node: NodeId, kind: FileType, identity: &Identity) -> Attributes {
    let mode = kind.as_raw_mode() | 0o755;
    Attributes { mode, links: 2, ..blank(node, kind, identity) }
}

/// What was granted, as the host has it.
pub(crate) fn mirrored(stat: &Stat, identity: &Identity) -> Attributes {
    let (uid, gid) = identity.shown_owner(stat.st_uid, stat.st_gid);
    Attributes { uid, gid, ..Attributes::from(stat) }
}
