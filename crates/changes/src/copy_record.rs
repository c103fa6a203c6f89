//! Which entries of a copied project nobody has touched since: each with its inode and the time of its last status change,
//! which no command can set. With it the copy reads like the upper layer of an overlay, where only what a session touched
//! is. Must be made before a command can write to the copy.

use crate::entry::{EntryKind, Found, Timestamp};
use crate::error::{ChangesError, Result};
use crate::listing::names_in;
use palisade_sys::beneath::open_on_mount;
use palisade_sys::{At as _, OFlags};
use rustix::fs::{AtFlags, Stat, fstatfs, statat};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// statfs(2) of a tmpfs.
const TMPFS: i64 = 0x0102_1994;

/// The entries of a copy as they were when it was made.
#[derive(Clone, Debug, Default)]
pub struct CopyRecord {
    marks: HashMap<PathBuf, Mark>,
    /// Where times cannot be relied on, files are compared with those of the host instead. A tmpfs does not notice every
    /// write through a mapping.
    are_times_vague: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    inode: u64,
    mode: u32,
    size: u64,
    modified: Timestamp,
    changed: Timestamp,
}

/// One entry as it is written down.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(with = "crate::bytes_path")]
    path: PathBuf,
    mark: Mark,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    are_times_vague: bool,
    rows: Vec<Row>,
}

impl CopyRecord {
    /// Of everything in the directory.
    pub(crate) fn of(copy: BorrowedFd<'_>) -> Result<Self> {
        let kind = fstatfs(copy).call("fstatfs")?.f_type;
        #[allow(clippy::unnecessary_cast, reason = "the width differs between architectures")]
        let are_times_vague = kind as i64 == TMPFS;
        let mut marks = HashMap::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = open_on_mount(copy, crate::paths::or_dot(&directory), flags)?;
            for name in names_in(&opened, &directory)? {
                let path = directory.join(&name);
                let stat = statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW).at("statat", &path)?;
                let found = Found::of(&stat);
                let Found { inode, mode, size, modified, changed, .. } = found;
                if found.is_directory() {
                    pending.push(path.clone());
                }
                marks.insert(path, Mark { inode, mode, size, modified, changed });
            }
        }
        Ok(Self { marks, are_times_vague })
    }

    /// A change could have the time of the copy.
    pub fn distrust_times(&mut self) {
        self.are_times_vague = true;
    }

    /// Whether the file of this status changed after every entry was copied.
    pub fn is_older_than(&self, stat: &Stat) -> bool {
        self.newest() < Some(Found::of(stat).changed)
    }

    /// The last status change of any entry.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.marks.values().map(|mark| mark.changed).max()
    }

    /// Whether the host had it when the copy was made.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.marks.contains_key(path)
    }

    /// Whether this is the entry that was copied, as it was. Of a directory, whether it is the same with the same
    /// permissions: what became of the names in it is a question of its own.
    pub(crate) fn is_untouched(&self, path: &Path, found: &Found) -> bool {
        let Some(mark) = self.marks.get(path) else { return false };
        match found.kind {
            EntryKind::Directory => mark.inode == found.inode && mark.mode == found.mode,
            EntryKind::File if self.are_times_vague => false,
            _ => {
                let Found { inode, size, modified, changed, .. } = *found;
                (mark.inode, mark.size, mark.modified, mark.changed)
                    == (inode, size, modified, changed)
            }
        }
    }

    /// Whether the directory is the one that was copied, so that what is in it can be, too.
    pub(crate) fn is_in_place(&self, path: &Path, found: &Found) -> bool {
        self.marks.get(path).is_some_and(|mark| mark.inode == found.inode)
    }

    /// In the form of a file of ours.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let rows = self.marks.iter().map(|(path, mark)| Row { path: path.clone(), mark: *mark });
        let stored = Stored { are_times_vague: self.are_times_vague, rows: rows.collect() };
        postcard::to_extend(&stored, Vec::new()).map_err(ChangesError::CopyRecord)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Stored { are_times_vague, rows } =
            postcard::from_bytes(bytes).map_err(ChangesError::CopyRecord)?;
        let marks = rows.into_iter().map(|row| (row.path, row.mark)).collect();
        Ok(Self { marks, are_times_vague })
    }
}
