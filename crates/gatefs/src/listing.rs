//! The names in a directory: those of a ground with what is mounted on it, or all of a directory that was granted. No
//! name is asked about for being listed: one that is not granted is not shown. In static mode those are listed that would be
//! shown when they are used.
//!
//! Names are read as they are asked for. A listing that is open holds a descriptor, or the few names that are mounted.

use crate::callers::CallerClass;
use crate::grounds::Grounds;
use crate::handles::{HostPosition, Open, ToldDirectory, VisibleName};
use crate::host::HostFile;
use crate::nodes::Origin;
use crate::server::{Answer, GateFsServer};
use palisade_fuse::{
    DirectoryEntry, FileHandle, Listing, ListingPlus, NodeId, Reply, Request, Room,
};
use palisade_sys::Errno;
use rustix::fs::{FileType, RawDir, SeekFrom, seek};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Offsets from here on count the names that are mounted. A tmpfs counts its entries from 1 (`offset_dir_emit`).
const MOUNTED: u64 = 1 << 62;
/// From here on, those of the host that static mode tells are counted. The host's own offsets may be any number.
const TOLD: u64 = 1 << 61;
/// More than people grant in one directory.
const MAX_NAMES: usize = 256;
const BUFFER_BYTES: usize = 32 << 10;

/// Takes one entry after the other, until it has no more room.
type Adder<'a> = &'a mut dyn FnMut(&DirectoryEntry<'_>) -> Room;

impl GateFsServer<'_> {
    pub(crate) fn list(&self, handle: FileHandle, offset: u64, size: u32) -> Answer {
        let mut listing = Listing::new(size);
        self.add_entries(handle, offset, &mut |entry| listing.add(entry))?;
        Ok(Some(Reply::listing(&listing).into_owned()))
    }

    /// Also looks up what is listed for the process that builds the view, which would ask for each name next. For all
    /// others a listing looks nothing up, so that it costs no node.
    pub(crate) fn list_with_look_ups(
        &mut self,
        request: &Request<'_>,
        (handle, offset): (FileHandle, u64),
        size: u32,
    ) -> Answer {
        let mut listing = ListingPlus::new(size);
        if self.setup.is_none() || self.class(request)? != CallerClass::Helper {
            self.add_entries(handle, offset, &mut |entry| listing.add(entry, None))?;
            return Ok(Some(Reply::listing_plus(&listing).into_owned()));
        }
        let mut names = Vec::new();
        // What is mounted on is the sandbox's own, which comes before what the host has.
        self.add_entries(handle, offset, &mut |entry| {
            if names.len() >= MAX_NAMES || entry.next_offset >= TOLD {
                return Room::Full;
            }
            names.push((entry.name.to_vec(), DirectoryEntry { name: b"", ..*entry }));
            Room::Added
        })?;
        for (name, entry) in &names {
            let is_dot = matches!(&**name, b"." | b"..");
            let found = (!is_dot).then(|| self.own_entry(request.node, name).ok()).flatten();
            if listing.add(&DirectoryEntry { name, ..*entry }, found.as_ref()) == Room::Full {
                // The kernel never hears of this look-up.
                found.into_iter().for_each(|found| self.nodes.forget(found.node, 1));
                break;
            }
        }
        Ok(Some(Reply::listing_plus(&listing).into_owned()))
    }

    fn add_entries(&self, handle: FileHandle, offset: u64, add: Adder<'_>) -> Result<(), Errno> {
        let handle = self.handles.get(handle).ok_or(Errno::BADF)?;
        match &handle.open {
            Open::HostDirectory(directory) => {
                let _ = list_open(directory.to_read(), offset, add)?;
            }
            Open::Directory(directory) => {
                let is_full =
                    offset < MOUNTED && list_open(directory.as_fd(), offset, add)? == Room::Full;
                if !is_full {
                    let mut names = self.visible_names(handle.node);
                    names.retain(|shown| Grounds::look_in(directory, &shown.name).is_err());
                    list_names(&names, offset, add);
                }
            }
            Open::Told(told) => {
                let path = &told.path;
                let is_own = |name: &[u8]| {
                    told.own.as_ref().is_some_and(|own| Grounds::look_in(own, name).is_ok())
                };
                let mut room = Room::Added;
                if let Some(own) = told.own.as_ref().filter(|_| offset < TOLD) {
                    room = list_open(own.as_fd(), offset, add)?;
                }
                if room != Room::Full && offset < MOUNTED {
                    let is_told = |name: &[u8]| {
                        let is_dot = matches!(name, b"." | b"..");
                        match is_dot {
                            true => told.own.is_none(),
                            false => self.is_listed(path, name) && !is_own(name),
                        }
                    };
                    room = list_host(told, offset.max(TOLD) - TOLD, is_told, add)?;
                }
                if room != Room::Full {
                    let mut names = self.visible_names(handle.node);
                    names
                        .retain(|shown| !self.is_listed(path, &shown.name) && !is_own(&shown.name));
                    list_names(&names, offset, add);
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
                    if offset < next_offset && add(&entry) == Room::Full {
                        return Ok(());
                    }
                }
                list_names(names, offset, add);
            }
            Open::File(_) | Open::HostFile(_) | Open::Lent(..) => return Err(Errno::NOTDIR),
        }
        Ok(())
    }

    /// What the host has of a directory that static mode lists.
    pub(crate) fn open_told(&mut self, path: &Path) -> Option<HostFile> {
        let is_told = self.gate.is_told_by_rule(path);
        is_told.then(|| self.host.open(&self.identity, path, FileType::Directory).ok()).flatten()
    }

    /// A directory that is not in the view as a whole.
    pub(crate) fn open_names(&mut self, id: NodeId, path: &Path) -> Open {
        match self.open_told(path) {
            Some(host) => Open::Told(ToldDirectory::new(path.to_owned(), None, host)),
            None => Open::Names(self.visible_names(id)),
        }
    }

    fn is_listed(&self, directory: &Path, name: &[u8]) -> bool {
        self.gate.is_told_by_rule(&directory.join(OsStr::from_bytes(name)))
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

fn list_names(names: &[VisibleName], offset: u64, add: Adder<'_>) {
    let first = offset.max(MOUNTED);
    for (shown, number) in names.iter().zip(MOUNTED..).filter(|(_, number)| *number >= first) {
        let entry = DirectoryEntry {
            ino: shown.node.0,
            next_offset: number + 1,
            file_type: shown.kind,
            name: &shown.name,
        };
        if add(&entry) == Room::Full {
            return;
        }
    }
}

/// What the host has from the name with this number on. Listings are read in order; who goes back is counted for anew.
fn list_host(
    told: &ToldDirectory,
    from: u64,
    is_told: impl Fn(&[u8]) -> bool,
    add: Adder<'_>,
) -> Result<Room, Errno> {
    let known = told.reached.get();
    let mut at = if known.names <= from { known } else { HostPosition::default() };
    let directory = told.host.to_read();
    seek(directory, SeekFrom::Start(at.cookie))?;
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let next = HostPosition { names: at.names + 1, cookie: entry.next_entry_cookie() };
        let is_skipped = at.names < from || !may_be_shown(entry.file_type()) || !is_told(name);
        let added = DirectoryEntry {
            ino: entry.ino().max(1),
            next_offset: TOLD + next.names,
            file_type: entry.file_type(),
            name,
        };
        if !is_skipped && add(&added) == Room::Full {
            told.reached.set(at);
            return Ok(Room::Full);
        }
        at = next;
    }
    told.reached.set(at);
    Ok(Room::Added)
}

/// Devices, pipes and sockets look absent.
fn may_be_shown(kind: FileType) -> bool {
    matches!(
        kind,
        FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Unknown
    )
}

/// What the kernel lists, from an offset of its own.
fn list_open(directory: BorrowedFd<'_>, offset: u64, add: Adder<'_>) -> Result<Room, Errno> {
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
        if add(&entry) == Room::Full {
            return Ok(Room::Full);
        }
    }
    Ok(Room::Added)
}
