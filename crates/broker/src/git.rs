//! Recognises git directories by their structure, and what git would run from them.
//!
//! A directory is guarded as a git directory for what it contains, not for its name: a moved `.git`, a
//! submodule's, a worktree's, a bare one, and one that a `gitdir:` file or `commondir` points to all look the
//! same. No hook can be created in such a directory, and configuration changes only by a copy that was read and
//! judged: a descriptor that is still open on the original refers to another file. Configuration that is
//! written in place goes to a staging file first (`staging.rs`). A directory that is about to become a git
//! directory is judged first, whichever part of it comes last.

use crate::NO_MODE;
use crate::exists::exists;
use crate::python;
use crate::verdict::{Denied, Verdict};
use palisade_guard::gitconfig;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, Dir, FileType, RenameFlags, Timespec, Timestamps, fstat, openat, readlinkat,
    renameat_with, statat, unlinkat,
};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Larger than any real configuration. Larger files are not judged, and so refused.
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// Our temporary name between writing and renaming.
const COPY: &str = "config.palisade-copy";

const WHY_HOOKS: &str = "git runs its hooks on the host";
const WHY_LINKS: &str = "git on the host would write where the link leads";
const WHY_CONFIG: &str = "git configuration can name programs, which git runs on the host";

/// How many names and directories are searched for links.
const MAX_NAMES: usize = 20_000;
const MAX_WAITING: usize = 256;

/// Names with a meaning in a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// `config` and `config.worktree`.
    Config,
    Hooks,
    /// `remotes` and `branches`: where remotes were kept before there was configuration, and still may be.
    OldRemotes,
    /// `lazygit.yml`: settings of a program that works on the repository.
    ToolSettings,
    /// Together with the others of its kind, it makes a directory a git directory.
    Marker(Marker),
    /// `.git`: guarded from its creation, while it is still empty.
    Itself,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Head,
    Objects,
    Refs,
    CommonDirectory,
}

impl Part {
    /// Also matches as a case-insensitive file system would.
    pub(crate) fn of(name: &OsStr) -> Option<Self> {
        const PARTS: [(&str, Part); 11] = [
            ("config", Part::Config),
            ("config.worktree", Part::Config),
            ("hooks", Part::Hooks),
            ("remotes", Part::OldRemotes),
            ("branches", Part::OldRemotes),
            ("lazygit.yml", Part::ToolSettings),
            ("HEAD", Part::Marker(Marker::Head)),
            ("objects", Part::Marker(Marker::Objects)),
            ("refs", Part::Marker(Marker::Refs)),
            ("commondir", Part::Marker(Marker::CommonDirectory)),
            (".git", Part::Itself),
        ];
        let name = palisade_guard::comparable(name.as_bytes());
        let part = PARTS.iter().find(|(text, _)| name.eq_ignore_ascii_case(text.as_bytes()));
        part.map(|(_, part)| *part)
    }
}

impl Marker {
    const ALL: [(Self, &str); 4] = [
        (Self::Head, "HEAD"),
        (Self::Objects, "objects"),
        (Self::Refs, "refs"),
        (Self::CommonDirectory, "commondir"),
    ];
}

/// Whether a path leads into the git directories of submodules. Their configuration names their work tree
/// relative to themselves: moved elsewhere, it would point outside the tree.
pub(crate) fn is_among_modules(path: &Path) -> bool {
    let mut names = path.iter();
    names.any(|name| Part::of(name) == Some(Part::Itself)) && names.any(|name| name == "modules")
}

/// Whether something of this name could make the directory around it one.
pub(crate) fn makes_git_directory(name: &OsStr) -> bool {
    matches!(Part::of(name), Some(Part::Marker(_) | Part::Itself))
}

/// As git's `is_git_directory()` would find it, or as another repository's `commondir` would use it; `coming`
/// counts as if it existed.
pub(crate) fn is_git_directory(dir: BorrowedFd<'_>, coming: Option<Marker>) -> bool {
    let has = |wanted: Marker| {
        coming == Some(wanted)
            || Marker::ALL.iter().any(|(marker, name)| *marker == wanted && exists(dir, *name))
    };
    (has(Marker::Objects) && has(Marker::Refs))
        || (has(Marker::Head) && has(Marker::CommonDirectory))
}

/// A hook git would run by this name.
pub(crate) fn is_hook(name: &OsStr) -> bool {
    !palisade_guard::comparable(name.as_bytes()).to_ascii_lowercase().ends_with(b".sample")
}

pub(crate) fn link_denied() -> Denied {
    Denied { rule: "git links".to_owned(), why: WHY_LINKS.to_owned() }
}

/// Whether a link stays below its directory: git creates only such links (`refs/heads/main`, and a test on
/// init).
pub(crate) fn stays_below(target: &[u8]) -> bool {
    !target.starts_with(b"/") && target.split(|byte| *byte == b'/').all(|name| name != b"..")
}

/// Whether anything in a directory, at any depth, is a link that leads out. Yes, if there is more than can be
/// searched.
pub(crate) fn holds_link_out(dir: BorrowedFd<'_>) -> bool {
    let open = |at: BorrowedFd<'_>, name: &OsStr| {
        openat(at, name, OFlags::RDONLY | DIRECTORY_ITSELF, NO_MODE)
    };
    let Ok(top) = open(dir, OsStr::new(".")) else { return true };
    let mut waiting = vec![top];
    let mut names = 0;
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = Dir::read_from(&dir) else { return true };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            // Objects are many, and git names them itself.
            if matches!(name.as_bytes(), b"." | b".." | b"objects") {
                continue;
            }
            names += 1;
            let is_deep = names > MAX_NAMES || waiting.len() > MAX_WAITING;
            let leads_out = readlinkat(&dir, name, Vec::new())
                .is_ok_and(|target| !stays_below(target.as_bytes()));
            if is_deep || leads_out {
                return true;
            }
            if entry.file_type() == FileType::Directory {
                match open(dir.as_fd(), name) {
                    Ok(below) => waiting.push(below),
                    Err(_) => return true,
                }
            }
        }
    }
    false
}

pub(crate) fn hook_denied() -> Denied {
    Denied { rule: "git hooks".to_owned(), why: WHY_HOOKS.to_owned() }
}

pub(crate) fn tool_settings_denied() -> Denied {
    let why = "lazygit runs what its settings in a git directory name".to_owned();
    Denied { rule: "lazygit.yml".to_owned(), why }
}

pub(crate) fn config_denied() -> Denied {
    Denied { rule: "git config".to_owned(), why: WHY_CONFIG.to_owned() }
}

/// A configuration file as it was read: what is judged, and then written to a new file.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) content: Vec<u8>,
    pub(crate) attributes: Attributes,
}

/// What a copy keeps besides the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) mode: Mode,
    pub(crate) accessed: Timespec,
    pub(crate) modified: Timespec,
}

impl Attributes {
    pub(crate) fn of(found: &rustix::fs::Stat) -> Self {
        let time = |seconds, nanoseconds: u64| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.try_into().unwrap_or_default(),
        };
        Self {
            mode: Mode::from_raw_mode(found.st_mode & 0o777),
            accessed: time(found.st_atime, found.st_atime_nsec),
            modified: time(found.st_mtime, found.st_mtime_nsec),
        }
    }

    /// Takes over what changed between two looks at another file.
    pub(crate) fn take_changes(&mut self, before: &Self, after: &Self) {
        if after.mode != before.mode {
            self.mode = after.mode;
        }
        if after.modified != before.modified {
            (self.accessed, self.modified) = (after.accessed, after.modified);
        }
    }

    pub(crate) fn times(&self) -> Timestamps {
        Timestamps { last_access: self.accessed, last_modification: self.modified }
    }
}

/// Settings whose relative values change their meaning when the file is moved.
const LEADING: [&str; 4] = ["include.path", "includeif.*.path", "core.hookspath", "core.worktree"];

/// Whether a git directory may be moved to another directory: what was guarded or judged by where it leads must
/// not lead elsewhere from there.
pub(crate) fn may_be_moved(dir: BorrowedFd<'_>) -> Verdict<()> {
    let denied = |what: String| Denied {
        rule: "git directory".to_owned(),
        why: format!("{what} would lead git elsewhere from the new place"),
    };
    for name in ["config", "config.worktree"] {
        let content = match read(dir, OsStr::new(name)) {
            Ok(config) => config.content,
            Err(Errno::NOENT) => continue,
            Err(_) => return Err(config_denied()),
        };
        for key in LEADING {
            let values = gitconfig::values(&content, key);
            if values.iter().any(|value| gitconfig::is_relative(value)) {
                return Err(denied(format!("the relative `{key}` in `{name}`")));
            }
        }
    }
    let common = read(dir, OsStr::new("commondir")).ok().map(|common| common.content);
    if common.is_some_and(|common| gitconfig::is_relative(&common)) {
        return Err(denied("the relative `commondir`".to_owned()));
    }
    let modules = openat(dir, "modules", OFlags::RDONLY | DIRECTORY_ITSELF, NO_MODE);
    let has_modules = match modules {
        Ok(modules) => !is_empty(&modules),
        Err(errno) => errno != Errno::NOENT,
    };
    if has_modules {
        return Err(denied("the `core.worktree` of a submodule".to_owned()));
    }
    if holds_link_out(dir) { Err(link_denied()) } else { Ok(()) }
}

/// Judges a directory that is about to become a git directory, and replaces its configuration by a copy that no
/// other process holds open.
pub(crate) fn adopt(dir: BorrowedFd<'_>, place: &gitconfig::ConfigLocation<'_>) -> Verdict<()> {
    if exists(dir, "hooks") {
        let hooks = openat(dir, "hooks", OFlags::RDONLY | DIRECTORY_ITSELF, NO_MODE);
        if !hooks.is_ok_and(|hooks| holds_samples_only(&hooks)) {
            let why = format!("this would be a git directory with hooks, and {WHY_HOOKS}");
            return Err(Denied { why, ..hook_denied() });
        }
    }
    for name in ["remotes", "branches"] {
        if exists(dir, name) {
            let old = openat(dir, name, OFlags::RDONLY | DIRECTORY_ITSELF, NO_MODE);
            if !old.is_ok_and(|old| is_empty(&old)) {
                return Err(config_denied());
            }
        }
    }
    if exists(dir, "lazygit.yml") {
        return Err(tool_settings_denied());
    }
    if holds_link_out(dir) {
        return Err(link_denied());
    }
    for name in ["config", "config.worktree"] {
        if exists(dir, name) {
            let config = read(dir, OsStr::new(name)).map_err(|_| config_denied())?;
            judge(OsStr::new(name), None, &config.content, place)?;
            replace(dir, OsStr::new(name), &config).map_err(|_| config_denied())?;
        }
    }
    Ok(())
}

/// The location of a git directory's configuration, and what its settings are judged by.
pub(crate) fn setting<'p>(git_dir: &'p Path, tree: &'p Path) -> gitconfig::ConfigLocation<'p> {
    gitconfig::ConfigLocation { git_dir, tree, worktree: worktree_of(tree) }
}

/// The files of a worktree whose own directory is a separate tree (`plan/src/git.rs`): each must point to the
/// other.
fn worktree_of(tree: &Path) -> Option<PathBuf> {
    if tree.parent()?.file_name()? != "worktrees" {
        return None;
    }
    let pointer = tree.join(line_of(&tree.join("gitdir"))?);
    let files = pointer.parent().filter(|_| pointer.ends_with(".git"))?.canonicalize().ok()?;
    let back = line_of(&files.join(".git"))?;
    let back = files.join(OsStr::from_bytes(back.as_bytes().strip_prefix(b"gitdir: ")?));
    (back.canonicalize().ok()? == tree).then_some(files)
}

fn line_of(path: &Path) -> Option<OsString> {
    let content = read(rustix::fs::CWD, path.as_os_str()).ok()?.content;
    Some(OsStr::from_bytes(content.trim_ascii_end()).to_owned())
}

/// Puts `source` in the place of the configuration `name` in `dir`, as a copy, as rename(2) would.
pub(crate) fn commit_config(
    source: (BorrowedFd<'_>, &OsStr),
    dir: BorrowedFd<'_>,
    name: &OsStr,
    place: &gitconfig::ConfigLocation<'_>,
) -> Verdict<Result<(), Errno>> {
    let copied = copy_config(source, dir, name, place)?;
    Ok(copied.and_then(|()| unlinkat(source.0, source.1, AtFlags::empty())))
}

/// The same, but keeps the source.
pub(crate) fn copy_config(
    source: (BorrowedFd<'_>, &OsStr),
    dir: BorrowedFd<'_>,
    name: &OsStr,
    place: &gitconfig::ConfigLocation<'_>,
) -> Verdict<Result<(), Errno>> {
    let config = match read(source.0, source.1) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Err(Errno::NOENT)),
        Err(_) => return Err(config_denied()),
    };
    let old = match read(dir, name) {
        Ok(old) => Some(old.content),
        Err(Errno::NOENT) => None,
        Err(_) => return Err(config_denied()),
    };
    judge(name, old.as_deref(), &config.content, place)?;
    Ok(replace(dir, name, &config))
}

fn is_empty(dir: &OwnedFd) -> bool {
    Dir::read_from(dir).is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
        })
    })
}

/// Whether a directory that becomes `hooks` has nothing in it that git would run.
pub(crate) fn holds_samples_only(dir: &OwnedFd) -> bool {
    let Ok(entries) = Dir::read_from(dir) else { return false };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_directory = || {
                statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| {
                    FileType::from_raw_mode(found.st_mode) == FileType::Directory
                })
            };
            !is_hook(name) || is_directory()
        })
    })
}

const DIRECTORY_ITSELF: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// By name: git configuration, or a Python path file, which is written the same way.
pub(crate) fn judge(
    name: &OsStr,
    old: Option<&[u8]>,
    new: &[u8],
    place: &gitconfig::ConfigLocation<'_>,
) -> Verdict<()> {
    if python::is_path_file(name) {
        return python::judge(old, new);
    }
    gitconfig::judge_at(old, new, place)
        .map_err(|refused| Denied { rule: "git config".to_owned(), why: refused.to_string() })
}

/// A regular file, no link, of bearable length.
pub(crate) fn read(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Config, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    read_open(&openat(dir, name, flags, NO_MODE)?)
}

/// From the start, independent of the file offset of others.
pub(crate) fn read_open(file: &OwnedFd) -> Result<Config, Errno> {
    let found = fstat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let mut content = Vec::new();
    let mut part = [0; 8192];
    loop {
        match rustix::io::pread(file, &mut part, content.len() as u64)? {
            0 => return Ok(Config { content, attributes: Attributes::of(&found) }),
            length => content.extend_from_slice(&part[..length]),
        }
        if content.len() > MAX_CONFIG_BYTES {
            return Err(Errno::FBIG);
        }
    }
}

/// Writes a new file and renames it into place: no other process ever had it open for writing.
pub(crate) fn replace(dir: BorrowedFd<'_>, name: &OsStr, config: &Config) -> Result<(), Errno> {
    // Left behind by a broker that was killed here.
    let _ = unlinkat(dir, COPY, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Attributes { mode, .. } = config.attributes;
    let copy = openat(dir, COPY, flags, mode)?;
    let written = write_all(&copy, &config.content)
        .and_then(|()| rustix::fs::fchmod(&copy, mode))
        .and_then(|()| rustix::fs::futimens(&copy, &config.attributes.times()))
        .and_then(|()| renameat_with(dir, COPY, dir, name, RenameFlags::empty()));
    if written.is_err() {
        let _ = unlinkat(dir, COPY, AtFlags::empty());
    }
    written
}

pub(crate) fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        let written = rustix::io::write(file.as_fd(), content)?;
        content = &content[written..];
    }
    Ok(())
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
