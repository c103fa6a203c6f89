//! The host's real tree, for the plan to look at.

use palisade_plan::facts::{Entry, EntryKind, HostTree};
use std::ffi::OsString;
use std::fs::{File, FileType};
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Longer than any `.git` file or back pointer.
const SMALL: u64 = 16 * 1024;

/// Looks at the host through the caller's own rights.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTree;

impl HostTree for RealTree {
    fn entry(&self, path: &Path) -> Option<Entry> {
        let found = path.symlink_metadata().ok()?;
        Some(Entry { kind: kind(found.file_type()), uid: found.uid(), gid: found.gid() })
    }

    fn read_link(&self, path: &Path) -> Option<PathBuf> {
        path.read_link().ok()
    }

    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)> {
        let Ok(entries) = path.read_dir() else { return Vec::new() };
        entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.file_name(), kind(entry.file_type().ok()?))))
            .collect()
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        let file = open_regular(path)?;
        let mut part = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let at = offset.checked_add(u64::try_from(filled).ok()?)?;
            match file.read_at(&mut part[filled..], at).ok()? {
                0 => break,
                count => filled += count,
            }
        }
        part.truncate(filled);
        Some(part)
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        let identity = |path: &Path| {
            let found = path.symlink_metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        identity(one).is_some_and(|one| Some(one) == identity(other))
    }

    fn read_small(&self, path: &Path) -> Option<String> {
        let mut text = String::new();
        open_regular(path)?.take(SMALL).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// A FIFO would block for ever.
fn open_regular(path: &Path) -> Option<File> {
    if path.symlink_metadata().ok()?.is_file() { File::open(path).ok() } else { None }
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
