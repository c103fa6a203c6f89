//! Answers to requests, as typed constructors. Each says which operations it is for.

use crate::attributes::{Attributes, Timestamp};
use crate::entry::Entry;
use crate::fields::Writer;
use crate::handshake::{self, Agreement};
use crate::ids::FileHandle;
use crate::listing::{Listing, ListingPlus};
use bitflags::bitflags;
use rustix::fs::StatVfs;
use rustix::io::Errno;
use std::borrow::Cow;
use std::time::Duration;

/// An answer; which request it is for is said when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    error: i32,
    payload: Cow<'a, [u8]>,
}

bitflags! {
    /// How the kernel uses an open file (`FOPEN_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// Each read and write is a request; nothing is cached.
        const DIRECT_IO = 1 << 0;
        /// What is cached of the file stays.
        const KEEP_CACHE = 1 << 1;
        const NONSEEKABLE = 1 << 2;
        /// The kernel may cache the listing of this directory.
        const CACHE_DIR = 1 << 3;
        /// Like a pipe: there is no position.
        const STREAM = 1 << 4;
        /// No FLUSH when it is closed.
        const NOFLUSH = 1 << 5;
    }
}

/// An open file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub handle: FileHandle,
    pub flags: OpenFlags,
}

/// The file system as a whole, see statfs(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystemStats {
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub files: u64,
    pub files_free: u64,
    pub block_size: u32,
    pub max_name: u32,
    pub fragment_size: u32,
}

impl From<&StatVfs> for FileSystemStats {
    fn from(stat: &StatVfs) -> Self {
        let narrow = |value: u64| value.try_into().unwrap_or(u32::MAX);
        Self {
            blocks: stat.f_blocks,
            blocks_free: stat.f_bfree,
            blocks_available: stat.f_bavail,
            files: stat.f_files,
            files_free: stat.f_ffree,
            block_size: narrow(stat.f_bsize),
            max_name: narrow(stat.f_namemax),
            fragment_size: narrow(stat.f_frsize),
        }
    }
}

impl<'a> Reply<'a> {
    /// It failed. Any operation.
    pub fn error(errno: Errno) -> Self {
        Self { error: -errno.raw_os_error(), payload: Cow::Borrowed(&[]) }
    }

    /// It was done, and there is nothing to say: Unlink, RmDir, Rename, Release, Flush, FSync, SetXattr, RemoveXattr,
    /// ReleaseDir, FSyncDir, Access, Destroy.
    pub fn done() -> Self {
        Self::bytes(Cow::Borrowed(&[]))
    }

    /// What a name leads to: Lookup, Symlink, MkNod, MkDir, Link.
    pub fn entry(entry: &Entry) -> Self {
        Self::owned(entry.write(Writer::with_capacity(Entry::SIZE)))
    }

    /// There is no such name, and the kernel need not ask again for so long: Lookup.
    pub fn no_entry(valid: Duration) -> Self {
        Self::entry(&Entry::negative(valid))
    }

    /// The attributes and how long they may be used: GetAttr, SetAttr.
    pub fn attributes(attributes: &Attributes, valid: Duration) -> Self {
        let head = Writer::with_capacity(16 + Attributes::SIZE)
            .u64(valid.as_secs())
            .u32(valid.subsec_nanos())
            .zeros(4);
        Self::owned(attributes.write(head))
    }

    /// The same with the time of birth: Statx. After an `ENOSYS` the kernel uses GetAttr.
    pub fn statx(attributes: &Attributes, born: Option<Timestamp>, valid: Duration) -> Self {
        let head = Writer::with_capacity(32 + Attributes::STATX_SIZE)
            .u64(valid.as_secs())
            .u32(valid.subsec_nanos())
            .zeros(4 + 16);
        Self::owned(attributes.write_statx(born, head))
    }

    /// Open, OpenDir.
    pub fn opened(opened: Opened) -> Self {
        Self::owned(opened.write(Writer::default()))
    }

    /// Create.
    pub fn created(entry: &Entry, opened: Opened) -> Self {
        Self::owned(opened.write(entry.write(Writer::with_capacity(Entry::SIZE + Opened::SIZE))))
    }

    /// Bytes: Read, ReadLink, GetXattr and ListXattr with a size. Never more than was asked for; the kernel takes fewer
    /// bytes of a Read as the end of the file.
    pub fn data(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::bytes(bytes.into())
    }

    /// How many bytes were taken: Write.
    pub fn written(size: u32) -> Self {
        Self::owned(Writer::default().u32(size).zeros(4))
    }

    /// StatFs.
    pub fn statfs(stats: &FileSystemStats) -> Self {
        let stats = Writer::default()
            .u64(stats.blocks)
            .u64(stats.blocks_free)
            .u64(stats.blocks_available)
            .u64(stats.files)
            .u64(stats.files_free)
            .u32(stats.block_size)
            .u32(stats.max_name)
            .u32(stats.fragment_size)
            .zeros(4 + 24);
        Self::owned(stats)
    }

    /// How long the value or the list is: GetXattr and ListXattr with a size of 0.
    pub fn xattr_size(size: u32) -> Self {
        Self::owned(Writer::default().u32(size).zeros(4))
    }

    /// ReadDir.
    pub fn listing(listing: &'a Listing) -> Self {
        Self::data(listing.bytes())
    }

    /// ReadDirPlus.
    pub fn listing_plus(listing: &'a ListingPlus) -> Self {
        Self::data(listing.bytes())
    }

    /// The new position: Lseek.
    pub fn position(offset: u64) -> Self {
        Self::owned(Writer::default().u64(offset))
    }

    /// Init, agreed.
    pub fn init(agreement: &Agreement) -> Self {
        Self::bytes(Cow::Owned(agreement.write()))
    }

    /// Init of a later major version: the kernel makes another offer.
    pub fn our_version() -> Self {
        Self::bytes(Cow::Owned(handshake::our_version()))
    }

    /// The same, with bytes of its own.
    pub fn into_owned(self) -> Reply<'static> {
        Reply { error: self.error, payload: Cow::Owned(self.payload.into_owned()) }
    }

    fn owned(payload: Writer) -> Self {
        Self::bytes(Cow::Owned(payload.finish()))
    }

    fn bytes(payload: Cow<'a, [u8]>) -> Self {
        Self { error: 0, payload }
    }

    /// 0, or an errno made negative, as the header has it.
    pub(crate) fn error_field(&self) -> i32 {
        self.error
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Opened {
    const SIZE: usize = 16;

    /// `struct fuse_open_out`, whose last field has a meaning with PASSTHROUGH alone.
    fn write(self, to: Writer) -> Writer {
        to.u64(self.handle.0).u32(self.flags.bits()).zeros(4)
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
