//! Access to the host's file tree, for the plan.

use palisade_plan::facts::{DirEntry, EntryKind, HostTree};
use std::ffi::OsString;
use std::fs::{File, FileType};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Reads with the caller's own rights.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTree;

impl HostTree for RealTree {
    fn entry(&self, path: &Path) -> Option<DirEntry> {
        let found = path.symlink_metadata().ok()?;
        Some(DirEntry { kind: kind(found.file_type()), uid: found.uid(), gid: found.gid() })
    }

    fn read_link(&self, path: &Path) -> Option<PathBuf> {
        path.read_link().ok()
    }

    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)> {
        self.first_children(path, usize::MAX)
    }

    fn first_children(&self, path: &Path, most: usize) -> Vec<(OsString, EntryKind)> {
        let Ok(entries) = path.read_dir() else { return Vec::new() };
        entries
            .take(most)
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.file_name(), kind(entry.file_type().ok()?))))
            .collect()
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        let (mut file, size) = open_regular(path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset)).ok()?;
        }
        let length = u64::try_from(length).ok()?;
        // Room for the expected size and a little more, to notice the end.
        let expected = size.saturating_sub(offset).min(length).saturating_add(32);
        let mut part = Vec::with_capacity(usize::try_from(expected).ok()?);
        file.take(length).read_to_end(&mut part).ok()?;
        Some(part)
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        let identity = |path: &Path| {
            let found = path.symlink_metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        identity(one).is_some_and(|one| Some(one) == identity(other))
    }

    fn overlay_obstacle(&self, lower: &Path) -> Option<String> {
        super::doctor::overlay_obstacle(lower)
    }
}

/// With its size. A FIFO would block forever.
fn open_regular(path: &Path) -> Option<(File, u64)> {
    let found = path.symlink_metadata().ok().filter(|found| found.is_file())?;
    Some((File::open(path).ok()?, found.len()))
}

fn kind(found: FileType) -> EntryKind {
    if found.is_dir() {
        EntryKind::Dir
    } else if found.is_file() {
        EntryKind::File
    } else if found.is_symlink() {
        EntryKind::Symlink
    } else {
        EntryKind::Other
    }
}
