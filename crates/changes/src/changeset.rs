//! What a session changed, as a list.

use crate::contents::Located;
use crate::entry::{Entry, EntryKind};
use crate::paths::{is_within, order};
use serde::{Serialize, Serializer};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    Added,
    /// The content of a file or the target of a link; permissions may have changed, too.
    Modified,
    Deleted,
    /// A directory became a file, a file a link, and so on. What was in a replaced directory is listed as deleted.
    TypeChanged,
    ModeChanged,
    /// Extended attributes (`user.`); permissions may have changed, too.
    AttributesChanged,
    /// Only the time of modification. Applied, but not shown in diffs.
    Touched,
    /// The same content as before, but now another name of another file.
    Linked,
}

/// One path that a session changed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    #[serde(flatten, serialize_with = "as_path")]
    pub path: PathBuf,
    pub kind: ChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Entry>,
    /// Another name of the same file, made by the session.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_name")]
    pub hard_link_of: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) old_at: Option<Located>,
    #[serde(skip)]
    pub(crate) new_at: Option<Located>,
}

/// A file that was deleted in one place and added in another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rename {
    #[serde(serialize_with = "as_text")]
    pub from: PathBuf,
    #[serde(serialize_with = "as_text")]
    pub to: PathBuf,
    /// In percent; 100 for the same content.
    pub similarity: u8,
}

/// All changes, ordered by path: a directory comes before what is in it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSet {
    pub(crate) changes: Vec<Change>,
    pub(crate) renames: Vec<Rename>,
    /// Directories so deep that their paths exceed the kernel's limit. What is in them is not known.
    #[serde(serialize_with = "as_texts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) too_deep: Vec<PathBuf>,
}

impl ChangeSet {
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub fn renames(&self) -> &[Rename] {
        &self.renames
    }

    /// Directories whose paths exceed the kernel's limit. What is in them is neither shown nor applied.
    pub fn too_deep(&self) -> &[PathBuf] {
        &self.too_deep
    }

    /// Leaves out changes, to show the others.
    pub fn retain(&mut self, is_kept: impl Fn(&Change) -> bool) {
        self.changes.retain(is_kept);
        let mut renames = std::mem::take(&mut self.renames);
        renames.retain(|rename| self.get(&rename.from).is_some() && self.get(&rename.to).is_some());
        self.renames = renames;
    }

    /// Nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub fn get(&self, path: &Path) -> Option<&Change> {
        self.changes.get(self.number(path)?)
    }

    pub(crate) fn number(&self, path: &Path) -> Option<usize> {
        self.changes.binary_search_by(|change| order(&change.path, path)).ok()
    }

    /// The changes below a directory, without its own.
    pub(crate) fn below<'s>(&'s self, directory: &'s Path) -> &'s [Change] {
        let from = self.changes.partition_point(|change| order(&change.path, directory).is_le());
        let rest = &self.changes[from..];
        &rest[..rest.partition_point(|change| is_within(&change.path, directory))]
    }
}

impl Change {
    /// The type after the change; before it, if it was deleted.
    pub fn entry_kind(&self) -> EntryKind {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.map_or(EntryKind::File, |entry| entry.kind)
    }

    pub fn is_directory(&self) -> bool {
        self.entry_kind() == EntryKind::Directory
    }
}

/// `path`, and `pathHex` with the exact bytes if they are not UTF-8.
fn as_path<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap as _;
    let mut map = out.serialize_map(None)?;
    map.serialize_entry("path", &path.to_string_lossy())?;
    if path.to_str().is_none() {
        let hex: String =
            path.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        map.serialize_entry("pathHex", &hex)?;
    }
    map.end()
}

pub(crate) fn as_name<S: Serializer>(path: &Option<PathBuf>, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.as_deref().unwrap_or(Path::new("")).display())
}

pub(crate) fn as_text<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.display())
}

fn as_texts<S: Serializer>(paths: &[PathBuf], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(paths.iter().map(|path| path.display().to_string()))
}
