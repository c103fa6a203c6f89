//! What is known about a file: `struct fuse_attr` and `struct fuse_statx`.

use crate::fields::Writer;
use rustix::fs::{Stat, StatxFlags};

/// A point in time since the epoch; before it, `seconds` is negative and `nanoseconds` counts forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanoseconds: u32,
}

/// The attributes of a file, as stat(2) shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The inode number that is shown. Need not be the [`crate::NodeId`].
    pub ino: u64,
    pub size: u64,
    /// Of 512 bytes each.
    pub blocks: u64,
    pub accessed: Timestamp,
    pub modified: Timestamp,
    pub changed: Timestamp,
    /// File type and permissions. The kernel refuses a reply with a type it does not know, or another one than before.
    pub mode: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// The device that a device file stands for, as the kernel encodes it in 32 bits.
    pub device: u32,
    pub block_size: u32,
}

impl Attributes {
    pub(crate) const SIZE: usize = 88;
    pub(crate) const STATX_SIZE: usize = 256;

    /// `struct fuse_attr`.
    pub(crate) fn write(&self, to: Writer) -> Writer {
        to.u64(self.ino)
            .u64(self.size)
            .u64(self.blocks)
            .i64(self.accessed.seconds)
            .i64(self.modified.seconds)
            .i64(self.changed.seconds)
            .u32(self.accessed.nanoseconds)
            .u32(self.modified.nanoseconds)
            .u32(self.changed.nanoseconds)
            .u32(self.mode)
            .u32(self.links)
            .u32(self.uid)
            .u32(self.gid)
            .u32(self.device)
            .u32(self.block_size)
            // Flags: neither a submount nor DAX.
            .u32(0)
    }

    /// `struct fuse_statx`.
    pub(crate) fn write_statx(&self, born: Option<Timestamp>, to: Writer) -> Writer {
        let mut mask = StatxFlags::BASIC_STATS;
        mask.set(StatxFlags::BTIME, born.is_some());
        let [mode, _] = halves(self.mode);
        let time = |to: Writer, at: Timestamp| to.i64(at.seconds).u32(at.nanoseconds).zeros(4);
        let to = to
            .u32(mask.bits())
            .u32(self.block_size)
            // No attributes (STATX_ATTR_*) are set, and none is supported.
            .u64(0)
            .u32(self.links)
            .u32(self.uid)
            .u32(self.gid)
            .u16(mode)
            .zeros(2)
            .u64(self.ino)
            .u64(self.size)
            .u64(self.blocks)
            .u64(0);
        let times = [self.accessed, born.unwrap_or_default(), self.changed, self.modified];
        let (major, minor) = decode_device(self.device);
        times.into_iter().fold(to, time).u32(major).u32(minor).zeros(8 + 14 * 8)
    }
}

impl From<&Stat> for Attributes {
    fn from(stat: &Stat) -> Self {
        Self {
            ino: stat.st_ino,
            size: stat.st_size.unsigned_abs(),
            blocks: stat.st_blocks.unsigned_abs(),
            accessed: timestamp(stat.st_atime, stat.st_atime_nsec),
            modified: timestamp(stat.st_mtime, stat.st_mtime_nsec),
            changed: timestamp(stat.st_ctime, stat.st_ctime_nsec),
            mode: stat.st_mode,
            links: stat.st_nlink.try_into().unwrap_or(u32::MAX),
            uid: stat.st_uid,
            gid: stat.st_gid,
            device: encode_device(rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)),
            block_size: stat.st_blksize.try_into().unwrap_or_default(),
        }
    }
}

fn timestamp(seconds: i64, nanoseconds: u64) -> Timestamp {
    Timestamp { seconds, nanoseconds: nanoseconds.try_into().unwrap_or_default() }
}

/// The kernel's `new_encode_dev`: 12 bits of the major number between the low 8 and the high 12 of the minor one.
fn encode_device(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
}

fn decode_device(device: u32) -> (u32, u32) {
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00))
}

/// The low and the high half.
fn halves(value: u32) -> [u16; 2] {
    let [a, b, c, d] = value.to_le_bytes();
    [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
}

#[cfg(test)]
#[path = "attributes_tests.rs"]
mod tests;
