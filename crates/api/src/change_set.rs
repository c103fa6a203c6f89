//! What a transaction changed, and what stands in the way of an apply, as `sandbox diff --json` and `sandbox apply --json` print it.
//! Data only; fields that a newer program adds are ignored.

use serde::{Deserialize, Deserializer};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// What a sandbox changed, ordered by path: a directory comes before what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Changes {
    /// All of them.
    pub changes: Vec<Change>,
    /// Which of them belong together, as far as that can be told.
    pub renames: Vec<Rename>,
    /// Directories whose paths exceed the kernel's limit. What is in them is neither shown nor applied.
    #[serde(default)]
    pub too_deep: Vec<PathBuf>,
}

/// One path that a sandbox changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Change {
    /// From the root of the project.
    #[serde(flatten, deserialize_with = "exact_path")]
    pub path: PathBuf,
    /// What became of it.
    pub kind: ChangeKind,
    /// Before the change.
    #[serde(default)]
    pub old: Option<Entry>,
    /// After it.
    #[serde(default)]
    pub new: Option<Entry>,
    /// Another name of the same file, made by the sandbox.
    #[serde(default)]
    pub hard_link_of: Option<PathBuf>,
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// There was nothing.
    Added,
    /// The content of a file or the target of a link; permissions may have changed, too.
    Modified,
    /// There is nothing any more.
    Deleted,
    /// A directory became a file, a file a link, and so on.
    TypeChanged,
    /// Permissions only.
    ModeChanged,
    /// Extended attributes; permissions may have changed, too.
    AttributesChanged,
    /// Only the time of modification.
    Touched,
    /// The same content as before, but now another name of another file.
    Linked,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// An entry of a directory, before or after a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// In bytes.
    pub size: u64,
    /// Of its content.
    pub modified: FileTime,
    /// Of a symbolic link.
    #[serde(default)]
    pub target: Option<PathBuf>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// A time of a file, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct FileTime {
    /// Whole seconds.
    pub seconds: i64,
    /// And so much more.
    pub nanoseconds: u32,
}

/// A file that was deleted in one place and added in another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Rename {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is.
    pub to: PathBuf,
    /// In percent; 100 for the same content.
    pub similarity: u8,
}

/// What an apply did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Applied {
    /// Paths of the project that are now as in the sandbox.
    pub applied: Vec<PathBuf>,
    /// Not applied ([`Apply::skip_refused`](crate::Apply::skip_refused)). A directory stands for everything in it.
    pub refused: Vec<PathBuf>,
    /// Not applied: the project's version was kept ([`OnConflict::KeepProject`](crate::OnConflict::KeepProject)).
    pub kept: Vec<PathBuf>,
}

/// What stands in the way of an apply, path by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Held {
    /// Changes that must not come to the project.
    pub refused: Vec<Refused>,
    /// Changes that meet others of the project.
    pub conflicts: Vec<Conflict>,
}

/// A change that must not come to the project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Refused {
    /// From the root of the project.
    pub path: PathBuf,
    /// Why not.
    pub reason: RefusedReason,
}

/// Why a change must not come to the project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RefusedReason {
    /// The host would run it later, such as a git hook.
    RunLater(Objection),
    /// The sandbox could not see what the host has there.
    Hidden,
    /// It is a device, a FIFO or a socket.
    SpecialFile,
    /// It is a link that leads out of the project.
    LinkLeavesProject,
    /// The name is reserved for the sandbox.
    ReservedName,
    /// Its path exceeds the kernel's limit.
    PathTooLong,
    /// Something in the directory that it replaces was not applied.
    PartOfItStays,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Objection {
    /// The rule.
    pub rule: String,
    /// Its reason.
    pub why: String,
}

/// A change of the sandbox that meets one of the project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Conflict {
    /// From the root of the project.
    pub path: PathBuf,
    /// How they meet.
    pub reason: ConflictReason,
}

/// How two changes meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ConflictReason {
    /// The project's file changed, too.
    ChangedOnHost,
    /// The project's file was deleted.
    DeletedOnHost,
    /// Both changed it, and there is no common version to merge by.
    NoBase,
    /// Both changed the same lines.
    CannotMerge,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// `path`, and `pathHex` with the exact bytes if they are not UTF-8.
fn exact_path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        path: PathBuf,
        path_hex: Option<String>,
    }
    let Written { path, path_hex } = Written::deserialize(from)?;
    let Some(digits) = path_hex else { return Ok(path) };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    match bytes.collect::<Option<Vec<u8>>>() {
        Some(bytes) if rest.is_empty() => Ok(OsString::from_vec(bytes).into()),
        _ => Err(serde::de::Error::custom("pathHex is no row of hexadecimal digits")),
    }
}

#[cfg(test)]
#[path = "change_set_tests.rs"]
mod tests;
