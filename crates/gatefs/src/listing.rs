//! The names in a directory: those of a ground with what is mounted on it, or all of a directory that was granted. No
//! name is asked about for being listed: one that is not granted is not shown.
//!
//! Names are read as they are asked for. A listing that is open holds a descriptor, or the few names that are mounted.

use crate::grounds::Grounds;
use crate::handles::{Open, VisibleName};
use crate::nodes::Origin;
use crate::server::{Answer, GateFsServer};
use palisade_fuse::{DirectoryEntry, FileHandle, Listing, NodeId, Reply, Room};
use palisade_sys::Errno;
use rustix::fs::{FileType, RawDir, SeekFrom, seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Offsets from here on count the names that are mounted. A tmpfs counts its entries from 1 (`offset_dir_emit`).
const MOUNTED: u64 = 1 << 62;
/// More than people grant in one directory.
const MAX_NAMES: usize = 256;
const BUFFER_BYTES: usize = 32 << 10;

impl GateFsServer<'_> {
    pub(crate) fn list(&self, handle: FileHandle, offset: u64, size: u32) -> Answer {
        let handle = self.handles.get(handle).ok_or(Errno::BADF)?;
        let mut listing = Listing::new(size);
        match &handle.open {
            Open::HostDirectory(directory) => {
                let _ = list_open(directory.to_read(), offset, &mut listing)?;
            }
            Open::Directory(directory) => {
                let is_full = offset < MOUNTED
                    && list_open(directory.as_fd(), offset, &mut listing)? == Room::Full;
                if !is_full {
                    let mut names = self.visible_names(handle.node);
                    names.retain(|shown| Grounds::look_in(directory, &shown.name).is_err());
                    list_names(&names, offset, &mut listing);
                }
            }
            Open::Names(names) => {
                let dots: [&[u8]; 2] = [b".", b".."];
                for (name, next_offset) in dots.into_iter().zip(1..) {
                    let entry = DirectoryEntry {
                        ino: handle.node.0,
                        next_offset,
                        file_type: FileType::Directory,
                        name,
                    };
                    if offset < next_offset && listing.add(&entry) == Room::Full {
                        return Ok(Some(reply(&listing)));
                    }
                }
                list_names(names, offset, &mut listing);
            }
            Open::File(_) | Open::HostFile(_) | Open::Lent(..) => return Err(Errno::NOTDIR),
        }
        Ok(Some(reply(&listing)))
    }

    /// The names of stubs that something is mounted on, or below.
    pub(crate) fn visible_names(&self, directory: NodeId) -> Vec<VisibleName> {
        let shown = self
            .nodes
            .children(directory)
            .filter(|(_, _, node)| node.origin == Origin::Stub && node.is_visible());
        let names = shown.map(|(name, id, node)| VisibleName {
            name: name.into(),
            node: id,
            kind: node.kind,
        });
        names.take(MAX_NAMES).collect()
    }
}

fn list_names(names: &[VisibleName], offset: u64, listing: &mut Listing) {
    let first = offset.max(MOUNTED);
    for (shown, number) in names.iter().zip(MOUNTED..).filter(|(_, number)| *number >= first) {
        let entry = DirectoryEntry {
            ino: shown.node.0,
            next_offset: number + 1,
            file_type: shown.kind,
            name: &shown.name,
        };
        if listing.add(&entry) == Room::Full {
            return;
        }
    }
}

fn reply(listing: &Listing) -> Reply<'static> {
    Reply::listing(listing).into_owned()
}

/// What the kernel lists, from an offset of its own.
fn list_open(directory: BorrowedFd<'_>, offset: u64, listing: &mut Listing) -> Result<Room, Errno> {
    seek(directory, SeekFrom::Start(offset))?;
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let entry = DirectoryEntry {
            ino: entry.ino().max(1),
            next_offset: entry.next_entry_cookie(),
            file_type: entry.file_type(),
            name,
        };
        if listing.add(&entry) == Room::Full {
            return Ok(Room::Full);
        }
    }
    Ok(Room::Added)
}
