//! Identifies a file independently of its name. Must never be derived from a path: the name may refer to another file
//! by now.

use rustix::fs::{AtFlags, StatxFlags, makedev, statx};
use std::os::fd::AsFd;

/// Device, inode, and birth time in seconds and nanoseconds, since inode numbers are reused.
pub type FileIdentity = (u64, u64, i64, u32);

/// `None` where the file system does not record birth times.
pub fn identity_of(file: impl AsFd) -> Option<FileIdentity> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(file, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(wanted);
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    let born = found.stx_btime;
    is_told.then_some((device, found.stx_ino, born.tv_sec, born.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::identity_of;

    #[test]
    fn a_file_keeps_its_identity_under_another_name_and_another_file_has_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let file = std::fs::File::create(&one).unwrap();
        let identity = identity_of(&file);
        assert!(identity.is_some());
        std::fs::rename(&one, &other).unwrap();
        assert_eq!(identity_of(std::fs::File::open(&other).unwrap()), identity);
        assert_ne!(identity_of(std::fs::File::create(&one).unwrap()), identity);
    }
}
