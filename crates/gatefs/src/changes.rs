//! Requests that change something, which only the sandbox's own file systems allow. The mount decides beforehand whether
//! the command may write there at all.

use crate::by_number::by_number;
use crate::handles::Open;
use crate::nodes::Origin;
use crate::server::{Answer, GateFsServer};
use palisade_fuse::{
    Changes, FileHandle, NewTime, NodeId, OpenFlags, Opened, Reply, Request, Timestamp,
};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    XattrFlags, chmodat, chownat, fchmod, ftruncate, futimens, linkat, mkdirat, mknodat, openat,
    renameat_with, symlinkat, unlinkat, utimensat,
};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

const PERMISSIONS: u32 = 0o7777;
/// What CREATE takes from the caller.
const PASSED_ON: OFlags = OFlags::RDWR
    .union(OFlags::WRONLY)
    .union(OFlags::APPEND)
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC);

impl GateFsServer<'_> {
    /// A directory of a ground.
    fn directory(&mut self, id: NodeId) -> Result<OwnedFd, Errno> {
        let is_own = self.origin(id)? == Origin::Own;
        let path = self.nodes.path(id).filter(|_| is_own).ok_or(Errno::ACCESS)?;
        self.grounds.directory(&self.identity, &path)
    }

    /// A directory of a ground that is about to get a new name. One of the host that the sandbox sees by its name alone
    /// becomes the sandbox's own with the first name that the command makes there.
    fn directory_to_fill(&mut self, id: NodeId) -> Result<OwnedFd, Errno> {
        if self.origin(id)? == Origin::Stub {
            let path = self.nodes.path(id).ok_or(Errno::STALE)?;
            let node = self.node(id)?;
            let is_seen = node.kind == FileType::Directory && node.is_visible();
            // What is made below the mount of a grant is made on the host, by whoever was granted that.
            let is_granted = path.ancestors().any(|above| self.granted.contains(above));
            if !is_seen || is_granted {
                return Err(Errno::ACCESS);
            }
            self.grounds.make_directories(&self.identity, &path)?;
        }
        self.directory(id)
    }

    pub(crate) fn make_directory(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        mode: u32,
    ) -> Answer {
        let parent = self.directory_to_fill(request.node)?;
        mkdirat(&parent, OsStr::from_bytes(name), Mode::from_raw_mode(mode & PERMISSIONS))?;
        self.entry_of_own(request.node, name).map(Some)
    }

    pub(crate) fn make_node(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        (mode, device): (u32, u32),
    ) -> Answer {
        let kind = FileType::from_raw_mode(mode);
        let is_whiteout = kind == FileType::CharacterDevice && device == 0;
        if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) && !is_whiteout {
            return Err(Errno::PERM);
        }
        let parent = self.directory_to_fill(request.node)?;
        let permissions = Mode::from_raw_mode(mode & PERMISSIONS);
        mknodat(&parent, OsStr::from_bytes(name), kind, permissions, 0)?;
        self.entry_of_own(request.node, name).map(Some)
    }

    pub(crate) fn make_link(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        target: &[u8],
    ) -> Answer {
        let parent = self.directory_to_fill(request.node)?;
        symlinkat(OsStr::from_bytes(target), &parent, OsStr::from_bytes(name))?;
        self.entry_of_own(request.node, name).map(Some)
    }

    pub(crate) fn make_hard_link(
        &mut self,
        request: &Request<'_>,
        old: NodeId,
        name: &[u8],
    ) -> Answer {
        let source = self.node(old)?;
        if source.origin == Origin::Stub {
            return Err(Errno::XDEV);
        }
        if !self.nodes.is_attached(old) {
            return Err(Errno::NOENT);
        }
        let source_name = source.name.clone();
        let from = self.directory(source.parent)?;
        let parent = self.directory_to_fill(request.node)?;
        let (old_name, new_name) = (OsStr::from_bytes(&source_name), OsStr::from_bytes(name));
        linkat(&from, old_name, &parent, new_name, AtFlags::empty())?;
        self.entry_of_own(request.node, name).map(Some)
    }

    pub(crate) fn create(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        (flags, mode): (u32, u32),
    ) -> Answer {
        let parent = self.directory_to_fill(request.node)?;
        let flags = OFlags::from_bits_retain(flags) & PASSED_ON;
        let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & PERMISSIONS);
        let file = openat(&parent, OsStr::from_bytes(name), flags, mode)?;
        let entry = self.own_entry(request.node, name)?;
        let handle = self.handles.add(entry.node, Open::File(file))?;
        let opened = Opened { handle, flags: OpenFlags::empty() };
        Ok(Some(Reply::created(&entry, opened)))
    }

    pub(crate) fn remove(&mut self, request: &Request<'_>, name: &[u8], flags: AtFlags) -> Answer {
        self.check_free(request.node, name)?;
        let parent = self.directory(request.node)?;
        unlinkat(&parent, OsStr::from_bytes(name), flags)?;
        self.nodes.detach(request.node, name);
        Ok(Some(Reply::done()))
    }

    /// An error if something is mounted there or below: a name on the way to a mount stays as long as the mount.
    fn check_free(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        let path = self.nodes.path_of_name(parent, name).ok_or(Errno::NAMETOOLONG)?;
        let id = self.nodes.child(parent, name);
        let is_taken = self.carries_mounts(id, &path);
        if is_taken { Err(Errno::BUSY) } else { Ok(()) }
    }

    pub(crate) fn rename(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        (new_parent, new_name): (NodeId, &[u8]),
        flags: u32,
    ) -> Answer {
        self.check_free(request.node, name)?;
        self.check_free(new_parent, new_name)?;
        let (from, to) = (self.directory(request.node)?, self.directory_to_fill(new_parent)?);
        let flags = RenameFlags::from_bits_retain(flags);
        renameat_with(&from, OsStr::from_bytes(name), &to, OsStr::from_bytes(new_name), flags)?;
        let (old, new) = ((request.node, name), (new_parent, new_name));
        if flags.contains(RenameFlags::EXCHANGE) {
            self.nodes.exchange(old, new);
        } else {
            self.nodes.rename(old, new);
        }
        Ok(Some(Reply::done()))
    }

    pub(crate) fn set_attributes(&mut self, request: &Request<'_>, changes: &Changes) -> Answer {
        let id = request.node;
        if self.node(id)?.origin != Origin::Own {
            return Err(Errno::ACCESS);
        }
        self.identity.as_command()?;
        let handle = changes.handle.and_then(|handle| self.handles.own_file(handle).ok());
        let gone = || self.handles.own_of_node(id).filter(|_| !self.nodes.is_attached(id));
        match handle.or_else(gone) {
            Some(file) => change_open(file, changes)?,
            None => {
                let path = self.nodes.path(id).ok_or(Errno::STALE)?;
                let file = self.grounds.pin(&self.identity, &path)?;
                let kind = self.node(id)?.kind;
                change_pinned(&file, kind, changes)?;
            }
        }
        self.own_attributes(id).map(Some)
    }

    pub(crate) fn set_xattr(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        (value, flags): (&[u8], u32),
    ) -> Answer {
        let path = self.own_by_number(request.node)?;
        rustix::fs::setxattr(&path.1, name, value, XattrFlags::from_bits_retain(flags))?;
        Ok(Some(Reply::done()))
    }

    pub(crate) fn remove_xattr(&mut self, request: &Request<'_>, name: &[u8]) -> Answer {
        let path = self.own_by_number(request.node)?;
        rustix::fs::removexattr(&path.1, name)?;
        Ok(Some(Reply::done()))
    }

    /// A file of a ground, and the path by which extended attributes of it are reached.
    fn own_by_number(&self, id: NodeId) -> Result<(OwnedFd, PathBuf), Errno> {
        let is_own = self.node(id)?.origin == Origin::Own;
        let path = self.nodes.path(id).filter(|_| is_own).ok_or(Errno::ACCESS)?;
        let file = self.grounds.pin(&self.identity, &path)?;
        let number = by_number(&file);
        Ok((file, number))
    }

    pub(crate) fn write(&self, handle: FileHandle, offset: u64, data: &[u8]) -> Answer {
        let file = self.handles.own_file(handle)?;
        let mut written = 0;
        while written < data.len() {
            let at = offset + written as u64;
            match rustix::io::pwrite(file, &data[written..], at) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(errno) if written == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(Some(Reply::written(u32::try_from(written).unwrap_or(u32::MAX))))
    }
}

fn change_open(file: &OwnedFd, changes: &Changes) -> Result<(), Errno> {
    if let Some(mode) = changes.mode {
        fchmod(file, Mode::from_raw_mode(mode & PERMISSIONS))?;
    }
    if changes.uid.is_some() || changes.gid.is_some() {
        rustix::fs::fchown(file, changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw))?;
    }
    if let Some(size) = changes.size {
        ftruncate(file, size)?;
    }
    match times(changes) {
        Some(times) => futimens(file, &times),
        None => Ok(()),
    }
}

fn change_pinned(file: &OwnedFd, kind: FileType, changes: &Changes) -> Result<(), Errno> {
    let path = by_number(file);
    if let Some(mode) = changes.mode.filter(|_| kind != FileType::Symlink) {
        chmodat(CWD, &path, Mode::from_raw_mode(mode & PERMISSIONS), AtFlags::empty())?;
    }
    if changes.uid.is_some() || changes.gid.is_some() {
        let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
        chownat(file, c"", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    if let Some(size) = changes.size {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        ftruncate(openat(CWD, &path, flags, Mode::empty())?, size)?;
    }
    match times(changes) {
        Some(times) => utimensat(CWD, &path, &times, AtFlags::empty()),
        None => Ok(()),
    }
}

fn times(changes: &Changes) -> Option<Timestamps> {
    if changes.accessed.is_none() && changes.modified.is_none() {
        return None;
    }
    let time = |new: Option<NewTime>| match new {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(NewTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(NewTime::At(Timestamp { seconds, nanoseconds })) => {
            Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() }
        }
    };
    Some(Timestamps {
        last_access: time(changes.accessed),
        last_modification: time(changes.modified),
    })
}
