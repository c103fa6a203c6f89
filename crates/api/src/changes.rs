//! What a sandbox with a transaction changed: shown, applied, discarded. The `sandbox` program does it, as it may be as much as a
//! command liked; this reads what it prints.

use crate::error::{Error, Result};
use crate::program::{Answer, Call, WORK_PATIENCE};
use crate::sandbox::{Core, Sandbox};
use serde::{Deserialize, Deserializer};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// What `sandbox apply` ends with if something stands in the way.
const HELD: i32 = 1;

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
    /// Not applied ([`Apply::skip_refused`]). A directory stands for everything in it.
    pub refused: Vec<PathBuf>,
    /// Not applied: the project's version was kept ([`OnConflict::KeepProject`]).
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
}

/// What happens where a file changed in the project, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// Nothing is applied.
    #[default]
    Refuse,
    /// The sandbox's version is taken.
    TakeSandbox,
    /// The project's version is kept.
    KeepProject,
    /// Both are merged by the version in git.
    Merge,
}

/// What is applied, and how.
///
/// ```
/// use palisade::{Apply, OnConflict};
///
/// let shown = Apply::checkpoint(2);
/// let part = Apply::all().only(["src", "Makefile"]).on_conflict(OnConflict::Merge);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it describes an apply; `Sandbox::apply` does it"]
pub struct Apply {
    checkpoint: Option<u32>,
    paths: Vec<PathBuf>,
    on_conflict: OnConflict,
    skip_refused: bool,
}

impl Apply {
    /// Everything that the sandbox has changed so far.
    pub fn all() -> Self {
        let (paths, on_conflict) = (Vec::new(), OnConflict::Refuse);
        Self { checkpoint: None, paths, on_conflict, skip_refused: false }
    }

    /// The state that was kept as this checkpoint, whatever the sandbox has changed since. What somebody was shown
    /// ([`Sandbox::diff_between`] 0 and this one) is exactly what is applied.
    pub fn checkpoint(number: u32) -> Self {
        Self { checkpoint: Some(number), ..Self::all() }
    }

    /// Only these paths of the project, and what is below them.
    pub fn only<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// What happens where a file changed in the project, too.
    pub fn on_conflict(mut self, what: OnConflict) -> Self {
        self.on_conflict = what;
        self
    }

    /// Applies the rest if something is refused.
    pub fn skip_refused(mut self) -> Self {
        self.skip_refused = true;
        self
    }

    fn call(&self, sandbox: &str, dry_run: bool) -> Call {
        let call = Call::new(["apply", "--json"])
            .flag("force", self.on_conflict == OnConflict::TakeSandbox)
            .flag("ours", self.on_conflict == OnConflict::KeepProject)
            .flag("merge", self.on_conflict == OnConflict::Merge)
            .flag("skip-refused", self.skip_refused)
            .flag("dry-run", dry_run)
            .option_if("checkpoint", self.checkpoint.map(|number| number.to_string()))
            .word(sandbox)
            .within(WORK_PATIENCE);
        match self.paths.is_empty() {
            true => call,
            false => self.paths.iter().fold(call.word("--"), Call::word),
        }
    }
}

impl Sandbox {
    /// What it changed in its project so far.
    pub fn diff(&self) -> Result<Changes> {
        of(&self.core)
    }

    /// What changed between two checkpoints. 0 is the project without changes.
    pub fn diff_between(&self, from: u32, to: u32) -> Result<Changes> {
        let states = format!("{from}..{to}");
        look(&self.core, Call::new(["diff", "--json", self.id(), &states]))?.json()
    }

    /// What it changed in its project so far, as `git diff` shows it. The text has whatever its commands wrote: escape it for a terminal.
    pub fn patch(&self) -> Result<Vec<u8>> {
        look(&self.core, Call::new(["diff", self.id()])).map(|answer| answer.stdout)
    }

    /// The same between two checkpoints.
    pub fn patch_between(&self, from: u32, to: u32) -> Result<Vec<u8>> {
        let states = format!("{from}..{to}");
        look(&self.core, Call::new(["diff", self.id(), &states])).map(|answer| answer.stdout)
    }

    /// Brings changes to the project: all that are meant, or none. [`Error::Held`] says what stands in the way.
    pub fn apply(&self, what: &Apply) -> Result<Applied> {
        let answer = self.core.program.ask(&what.call(self.id(), false))?;
        match answer.code {
            Some(0) => answer.json(),
            Some(HELD) => Err(Error::Held(Box::new(answer.json()?))),
            _ => Err(answer.error().into_conflict()),
        }
    }

    /// What would stand in the way of an apply. Nothing is applied.
    pub fn preview_apply(&self, what: &Apply) -> Result<Held> {
        let answer = self.core.program.ask(&what.call(self.id(), true))?;
        match answer.code {
            Some(0 | HELD) => answer.json(),
            _ => Err(answer.error().into_conflict()),
        }
    }

    /// Forgets what it changed, and its checkpoints. Only when it has ended; [`Sandbox::rollback`] to 0 does it to one that runs.
    pub fn discard(&self) -> Result<()> {
        let call = Call::new(["discard", self.id()]).within(WORK_PATIENCE);
        self.core.program.done(&call).map(drop).map_err(Error::into_conflict)
    }
}

/// What a sandbox changed so far.
pub(crate) fn of(core: &Core) -> Result<Changes> {
    look(core, Call::new(["diff", "--json", core.directory.id()]))?.json()
}

fn look(core: &Core, call: Call) -> Result<Answer> {
    core.program.done(&call.within(WORK_PATIENCE)).map_err(Error::into_conflict)
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
#[path = "changes_tests.rs"]
mod tests;
