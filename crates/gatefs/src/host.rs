//! The host's tree, as far as the server looks at it: what type something has, where a link leads, and the content of
//! what was granted.
//!
//! Must never enter `/proc`, `/sys` or `/dev`, trigger an automount, or touch a file system that another machine or
//! program serves: the command chose the name, and a look-up there may never return.

use crate::identity::Identity;
use palisade_gate::RemoteMounts;
use palisade_sys::beneath::open_beneath;
use palisade_sys::proc::{self, PollFd, PollFlags, read_kernel_file};
use palisade_sys::{Errno, Mode, OFlags, mounts};
use rustix::fs::{FileType, ResolveFlags, Stat, fstat, openat2, readlinkat};
use std::fs::File;
use std::io::Seek as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::time::Duration;

const CLOSED: [&str; 3] = ["proc", "sys", "dev"];
/// `linux/magic.h`: procfs, sysfs, devpts and autofs may be mounted elsewhere, too.
const CLOSED_MAGIC: [i64; 4] = [0x9fa0, 0x6265_6572, 0x1cd1, 0x0187];
const PINNED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Something of the host that is open, for reading alone: no call that changes anything takes it.
#[derive(Debug)]
pub(crate) struct HostFile(OwnedFd);

impl HostFile {
    /// What the keeper opened for one call.
    pub(crate) fn lent(file: OwnedFd) -> Self {
        Self(file)
    }

    pub(crate) fn to_read(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    /// Read-only with everything below (`startup.rs`).
    root: OwnedFd,
    /// `/proc/self/mountinfo`, which tells when mounts change (proc_pid_mounts(5)).
    mountinfo: File,
    remote: RemoteMounts,
}

impl Host {
    pub(crate) fn new(root: OwnedFd, mountinfo: OwnedFd) -> Self {
        let mut host = Self { root, mountinfo: mountinfo.into(), remote: RemoteMounts::default() };
        host.read_mounts();
        host
    }

    fn read_mounts(&mut self) {
        let read = self.mountinfo.rewind().and_then(|()| read_kernel_file(&self.mountinfo));
        if let Ok(text) = read {
            self.remote = RemoteMounts::of(&text);
        }
    }

    /// Whether a path may be looked at.
    fn is_open(&mut self, path: &Path) -> bool {
        let mut changed = [PollFd::new(&self.mountinfo, PollFlags::PRI)];
        if matches!(proc::poll(&mut changed, Some(Duration::ZERO)), Ok(1..)) {
            self.read_mounts();
        }
        let mut names = path.components().skip(1);
        let is_closed = |name: Component<'_>| CLOSED.iter().any(|one| name.as_os_str() == *one);
        !names.next().is_some_and(is_closed)
            && !self.remote.has(path.as_os_str().as_encoded_bytes())
    }

    /// What is at a path without links. None if there is nothing, or nothing that may be told of.
    pub(crate) fn look(&mut self, identity: &Identity, path: &Path) -> Option<Stat> {
        fstat(self.pin(identity, path).ok()?).ok()
    }

    /// Holds what is there without opening it.
    pub(crate) fn pin(&mut self, identity: &Identity, path: &Path) -> Result<OwnedFd, Errno> {
        if !self.is_open(path) {
            return Err(Errno::NOENT);
        }
        identity.on_host()?;
        let resolve =
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(&self.root, path, PINNED, Mode::empty(), resolve)?;
        let magic = mounts::fstatfs_magic(&found).map_err(|error| error.errno)?;
        if CLOSED_MAGIC.contains(&magic) { Err(Errno::NOENT) } else { Ok(found) }
    }

    /// Where a link leads.
    pub(crate) fn link_target(
        &mut self,
        identity: &Identity,
        path: &Path,
    ) -> Result<Vec<u8>, Errno> {
        let link = self.pin(identity, path)?;
        readlinkat(&link, c"", Vec::new()).map(std::ffi::CString::into_bytes)
    }

    /// Opens something that was granted, for reading.
    pub(crate) fn open(
        &mut self,
        identity: &Identity,
        path: &Path,
        kind: FileType,
    ) -> Result<HostFile, Errno> {
        if !self.is_open(path) {
            return Err(Errno::NOENT);
        }
        identity.on_host()?;
        let directory =
            if kind == FileType::Directory { OFlags::DIRECTORY } else { OFlags::empty() };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | directory;
        let file = open_beneath(&self.root, path, flags).map_err(|error| error.errno)?;
        let found = FileType::from_raw_mode(fstat(&file)?.st_mode);
        let magic = mounts::fstatfs_magic(&file).map_err(|error| error.errno)?;
        if CLOSED_MAGIC.contains(&magic) {
            return Err(Errno::NOENT);
        }
        if found == kind && matches!(kind, FileType::RegularFile | FileType::Directory) {
            Ok(HostFile(file))
        } else {
            Err(Errno::ACCESS)
        }
    }
}
