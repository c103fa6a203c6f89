//! The entries of a directory, as READDIR and READDIRPLUS are answered.

use crate::entry::Entry;
use crate::fields::Writer;
use rustix::fs::FileType;
use std::time::Duration;

/// One entry. The kernel rejects a whole listing for a name that is empty, contains a slash, or exceeds 1,024 bytes.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<'a> {
    /// The inode number that getdents(2) shows; must not be 0.
    pub ino: u64,
    /// Where a listing continues after this entry; must not be 0, which is where it begins.
    pub next_offset: u64,
    pub file_type: FileType,
    pub name: &'a [u8],
}

/// Whether an entry was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Room {
    Added,
    /// Nothing was added: end the listing here. The kernel continues from the last entry that was.
    Full,
}

/// The answer to READDIR. Empty at the end of the directory.
#[derive(Clone, Debug)]
pub struct Listing(Records);

impl Listing {
    /// A listing of at most `size` bytes, as the request says.
    pub fn new(size: u32) -> Self {
        Self(Records::new(size))
    }

    pub fn add(&mut self, entry: &DirectoryEntry<'_>) -> Room {
        self.0.add(None, entry)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// The answer to READDIRPLUS.
#[derive(Clone, Debug)]
pub struct ListingPlus(Records);

impl ListingPlus {
    /// A listing of at most `size` bytes, as the request says.
    pub fn new(size: u32) -> Self {
        Self(Records::new(size))
    }

    /// With what a look-up would answer; without, the kernel looks the name up itself. What was added with a `found`
    /// counts as a look-up, unless the name is `.` or `..`.
    pub fn add(&mut self, entry: &DirectoryEntry<'_>, found: Option<&Entry>) -> Room {
        self.0.add(Some(found.copied().unwrap_or(Entry::negative(Duration::ZERO))), entry)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// Records of `struct fuse_dirent` or `struct fuse_direntplus`, each padded to eight bytes.
#[derive(Clone, Debug)]
struct Records {
    bytes: Vec<u8>,
    size: usize,
}

impl Records {
    const HEAD_SIZE: usize = 24;

    fn new(size: u32) -> Self {
        Self { bytes: Vec::new(), size: size.try_into().unwrap_or(usize::MAX) }
    }

    fn add(&mut self, found: Option<Entry>, entry: &DirectoryEntry<'_>) -> Room {
        let before = if found.is_some() { Entry::SIZE } else { 0 };
        let end = before + Self::HEAD_SIZE + entry.name.len();
        let padded = end.next_multiple_of(8);
        let Ok(name_length) = u32::try_from(entry.name.len()) else { return Room::Full };
        if self.size - self.bytes.len() < padded {
            return Room::Full;
        }
        let record = Writer::from(std::mem::take(&mut self.bytes));
        let record = match found {
            Some(found) => found.write(record),
            None => record,
        };
        self.bytes = record
            .u64(entry.ino)
            .u64(entry.next_offset)
            .u32(name_length)
            .u32(type_number(entry.file_type))
            .bytes(entry.name)
            .zeros(padded - end)
            .finish();
        Room::Added
    }
}

/// `DT_*`: the type bits of a mode; 0 if the type is not known.
fn type_number(file_type: FileType) -> u32 {
    match file_type {
        FileType::Unknown => 0,
        known => known.as_raw_mode() >> 12,
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
