//! Looks up where a path of the caller leads, with one system call and without opening anything.
//!
//! The kernel resolves the path from the caller's own directory. Nothing may be decided by it that protects something:
//! links in `/proc` are followed, with rights that the caller does not have, and the path may lead elsewhere a moment later.

use crate::call::CWD;
use crate::caller::Caller;
use palisade_sys::Errno;
use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, statx};
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

/// What a path leads to. Not which object it is: device and inode numbers are not unique on every file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LookedUp {
    /// Another mount can get the same number when this one is gone and nobody holds it open.
    pub(crate) mount: u64,
    pub(crate) is_directory: bool,
    pub(crate) is_link: bool,
    /// Whether it is the root of its mount; none if the kernel does not say (before 5.8).
    pub(crate) is_mount_root: Option<bool>,
}

impl LookedUp {
    /// Whether it has a name in a directory of its mount.
    pub(crate) fn has_name_on_mount(&self) -> bool {
        self.is_mount_root == Some(false)
    }

    pub(crate) fn of(held: impl AsFd) -> Result<Self, Errno> {
        Self::at(held, c"", AtFlags::EMPTY_PATH)
    }

    fn at(at: impl AsFd, path: &CStr, flags: AtFlags) -> Result<Self, Errno> {
        const WANTED: StatxFlags = StatxFlags::MNT_ID.union(StatxFlags::TYPE);
        // What a file system of another program says of it is not needed.
        let flags = flags | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let found = statx(at, path, flags, WANTED)?;
        if !StatxFlags::from_bits_retain(found.stx_mask).contains(WANTED) {
            return Err(Errno::OPNOTSUPP);
        }
        let (known, set) = (found.stx_attributes_mask, found.stx_attributes);
        let root = StatxAttributes::MOUNT_ROOT;
        Ok(Self {
            mount: found.stx_mnt_id,
            is_directory: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory,
            is_link: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Symlink,
            is_mount_root: known.contains(root).then(|| set.contains(root)),
        })
    }
}

/// A path of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerPath<'c> {
    pub(crate) caller: &'c Caller,
    /// Where it starts if it is relative.
    pub(crate) dir: i32,
    pub(crate) written: &'c [u8],
}

impl CallerPath<'_> {
    /// The object itself. With `follow` a link as the last component is followed.
    pub(crate) fn look_up(self, follow: bool) -> Result<LookedUp, Errno> {
        self.look_up_part(self.written, follow)
    }

    /// The directory that holds the last name. None if there is no last name.
    pub(crate) fn look_up_parent(self) -> Option<Result<LookedUp, Errno>> {
        let end = self.written.iter().rposition(|byte| *byte != b'/')? + 1;
        let name = self.written[..end].iter().rposition(|byte| *byte == b'/');
        let (parent, name) = self.written[..end].split_at(name.map_or(0, |slash| slash + 1));
        (!matches!(name, b"." | b"..")).then(|| self.look_up_part(parent, true))
    }

    fn look_up_part(self, part: &[u8], follow: bool) -> Result<LookedUp, Errno> {
        let thread = self.caller.thread.as_raw_pid();
        let mut path = match self.dir {
            _ if self.written.starts_with(b"/") => Vec::with_capacity(part.len() + 1),
            // It would mean a descriptor.
            _ if self.written.is_empty() => return Err(Errno::NOENT),
            CWD => format!("{thread}/cwd/").into_bytes(),
            number => format!("{thread}/fd/{number}/").into_bytes(),
        };
        path.extend_from_slice(part);
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        let follow = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        LookedUp::at(self.caller.proc, &path, follow)
    }
}
