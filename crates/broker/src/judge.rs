//! Decides whether a file may be created under a name: by the list of guarded names, and by git's own
//! structure.
//!
//! Every creating, writing and renaming call in the guarded trees comes through a broker. Its threads, and the brokers of
//! several runs, exclude each other (`lock.rs`): only opening and making directories go side by side, and nothing they
//! do changes what is found here about another name. So it still holds when the call is performed: no other process in a
//! sandbox can move anything. Removing is not judged, and the kernel does it under no lock: it plants nothing, also where
//! another thread makes the removed name again before the call is performed. The last name is never followed, and a
//! directory with something in it cannot be removed from above it.

use crate::exists::exists;
use crate::git::{self, Part};
use crate::newborn::Newborn;
use crate::place::ResolvedParent;
use crate::python;
use crate::verdict::{Allowed, Coming, Denied, Verdict};
use crate::{DIRECTORY, NO_MODE};
use palisade_guard::{Below, Matcher, NamePattern, gitconfig};
use palisade_plan::model::PartlyWritable;
use palisade_sys::OFlags;
use rustix::fs::{AtFlags, Dir, FileType, Stat, openat, readlinkat, statat};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Judge {
    matcher: Matcher,
    /// Directories of which only parts may be written.
    limited: Vec<PartlyWritable>,
    /// Relative values of `core.hooksPath` when the run started.
    hooks: Vec<PathBuf>,
    newborn: Newborn,
    /// Without a run: the guarded tree's path on the host.
    foreseen: Option<Foreseen>,
}

/// A guarded tree, inside and on the host.
#[derive(Clone, Debug)]
pub(crate) struct Foreseen {
    pub(crate) inside: PathBuf,
    pub(crate) on_host: PathBuf,
}

impl Judge {
    pub(crate) fn new(matcher: Matcher, limited: Vec<PartlyWritable>) -> Self {
        Self { matcher, limited, hooks: Vec::new(), newborn: Newborn::default(), foreseen: None }
    }

    /// Judges before a run, on the host: a missing directory would be created in the run.
    pub(crate) fn before_a_run(self, tree: Foreseen) -> Self {
        Self { foreseen: Some(tree), ..self }
    }

    /// Guards the target of a relative `core.hooksPath` in every repository that comes to have it.
    pub(crate) fn with_hooks(self, hooks: Vec<PathBuf>) -> Self {
        Self { hooks, ..self }
    }

    pub(crate) fn may_come(&self, place: &ResolvedParent, coming: Coming<'_>) -> Verdict<Allowed> {
        let Some(tree) = &place.tree else { return Ok(Allowed::Plainly) };
        let mut is_old = |dir: &Path| self.is_old(dir);
        self.may_be_named(tree, &place.path)?;
        // An ancestor of a listed name: a directory that contains it, or a link to where it is not guarded.
        if matches!(
            coming,
            Coming::MovedDirectory(_) | Coming::Link | Coming::SymbolicLink | Coming::MovedLink
        ) {
            for below in self.matcher.below(tree, &place.path, &mut is_old) {
                let counts = match coming {
                    Coming::MovedDirectory(source) => is_there(source, &below),
                    _ => true,
                };
                if counts {
                    return Err(Denied::by(below.hit));
                }
            }
        }
        if self.matcher.is_opened(&place.path) {
            return Ok(Allowed::Plainly);
        }
        self.may_be_in_part(&place.path)?;
        if self.hooks.iter().any(|hooks| is_in_hooks(place, coming, tree, hooks)) {
            return Err(git::hook_denied());
        }
        if let Some(allowed) = python::may_come(&place.path, coming, &|dir| self.is_old(dir))? {
            return Ok(allowed);
        }
        if is_jujutsu_pointer(place, coming) && self.is_old(above(place.directory())) {
            return Err(Denied {
                rule: ".jj/repo".to_owned(),
                why: "as a file it leads Jujutsu to a repository whose settings name programs"
                    .to_owned(),
            });
        }
        match (self.may_come_for_git(place, coming)?, coming) {
            (Allowed::Plainly, Coming::Directory) => Ok(Allowed::AsNewborn),
            (allowed, _) => Ok(allowed),
        }
    }

    /// The same for something whose directory does not exist yet: by its names, and by the nearest git
    /// directory above.
    pub(crate) fn may_come_later(&self, tree: &Path, path: &Path) -> Verdict<()> {
        self.may_be_named(tree, path)?;
        if self.matcher.is_opened(path) {
            return Ok(());
        }
        self.may_be_in_part(path)?;
        let part = path.parent().and_then(Path::file_name).and_then(Part::of);
        let is_run = part == Some(Part::OldRemotes)
            || (part == Some(Part::Hooks) && path.file_name().is_some_and(git::is_hook));
        let above = path.ancestors().nth(2);
        if is_run && above.is_some_and(|above| self.is_git_directory_on_host(above)) {
            return Err(git::hook_denied());
        }
        Ok(())
    }

    fn is_git_directory_on_host(&self, dir: &Path) -> bool {
        dir.file_name().and_then(Part::of) == Some(Part::Itself)
            || openat(rustix::fs::CWD, self.on_host(dir).as_ref(), DIRECTORY, NO_MODE)
                .is_ok_and(|dir| git::is_git_directory(dir.as_fd(), None))
    }

    fn may_be_named(&self, tree: &Path, path: &Path) -> Verdict<()> {
        match self.matcher.judge(tree, path, &mut |dir: &Path| self.is_old(dir)) {
            Some(hit) => Err(Denied::by(hit)),
            None => Ok(()),
        }
    }

    fn may_be_in_part(&self, path: &Path) -> Verdict<()> {
        if self.limited.iter().all(|limited| limited.covers(path)) {
            return Ok(());
        }
        Err(Denied {
            rule: "git directory".to_owned(),
            why: "a worktree writes only parts of the repository it belongs to".to_owned(),
        })
    }

    /// Whether a link at `place` may have this target: any, but from inside a git directory only below it.
    pub(crate) fn may_lead(&self, place: &ResolvedParent, target: &[u8]) -> Verdict<()> {
        if git::stays_below(target) || !is_within_git_directory(place) {
            return Ok(());
        }
        Err(git::link_denied())
    }

    /// Whether an existing file may get a second name, through which it could be written.
    pub(crate) fn may_be_linked(&self, place: &ResolvedParent) -> Verdict<()> {
        match self.may_come(place, Coming::Written)? {
            Allowed::AsJudgedContent => Err(git::config_denied()),
            Allowed::Plainly | Allowed::AsNewborn | Allowed::AsOldRepository => Ok(()),
        }
    }

    /// Forgets that a directory was created in this run.
    pub(crate) fn forget(&self, dir: BorrowedFd<'_>) {
        if let Ok(found) = rustix::fs::fstat(dir) {
            self.newborn.forget((found.st_dev, found.st_ino));
        }
    }

    /// Makes a directory, and remembers that it was created in this run.
    pub(crate) fn remember<E>(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        make: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.newborn.remember(|| {
            make()?;
            let made = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
            let is_directory =
                |made: &Stat| FileType::from_raw_mode(made.st_mode) == FileType::Directory;
            Ok(made.filter(is_directory).map(|made| (made.st_dev, made.st_ino)))
        })
    }

    fn may_come_for_git(&self, place: &ResolvedParent, coming: Coming<'_>) -> Verdict<Allowed> {
        let dir = place.parent.as_fd();
        let dir_name = place.directory().file_name().unwrap_or_default();
        let is_run = match Part::of(dir_name) {
            Some(Part::Hooks) => git::is_hook(&place.name) && !matches!(coming, Coming::Directory),
            Some(Part::OldRemotes) => true,
            _ => false,
        };
        if is_run && is_git_directory_above(dir, place.directory()) {
            return Err(git::hook_denied());
        }
        if let Coming::MovedDirectory(source) = coming
            && is_within_git_directory(place)
            && git::holds_link_out(source)
        {
            return Err(git::link_denied());
        }
        let Some(part) = Part::of(&place.name) else { return Ok(Allowed::Plainly) };
        let is_git_directory =
            Part::of(dir_name) == Some(Part::Itself) || git::is_git_directory(dir, None);
        match (part, coming) {
            (Part::Config, Coming::Moved | Coming::Written | Coming::Link) if is_git_directory => {
                Ok(Allowed::AsJudgedContent)
            }
            (
                Part::Config,
                Coming::SymbolicLink | Coming::MovedLink | Coming::MovedDirectory(_),
            ) if is_git_directory => Err(git::config_denied()),
            (Part::Hooks, Coming::MovedDirectory(source)) if is_git_directory => {
                let moved = reopened(source);
                if moved.is_some_and(|moved| git::holds_samples_only(&moved)) {
                    Ok(Allowed::Plainly)
                } else {
                    Err(git::hook_denied())
                }
            }
            (
                Part::Hooks,
                Coming::Written
                | Coming::Link
                | Coming::SymbolicLink
                | Coming::Moved
                | Coming::MovedLink,
            ) if is_git_directory => Err(git::hook_denied()),
            (Part::ToolSettings, _) if is_git_directory => Err(git::tool_settings_denied()),
            (Part::OldRemotes, Coming::Directory) => Ok(Allowed::Plainly),
            (Part::OldRemotes, _) if is_git_directory => Err(git::config_denied()),
            (Part::Marker(marker), _) if !is_git_directory => {
                if git::is_git_directory(dir, Some(marker)) {
                    git::adopt(dir, &setting(place, place.directory()))?;
                }
                Ok(Allowed::Plainly)
            }
            (Part::Itself, coming) => self.may_become_repository(place, coming),
            _ => Ok(Allowed::Plainly),
        }
    }

    /// Something becomes `.git`. A directory created just now is a repository of the run's own (init, clone). A
    /// file or a link leads to one that may be the host's (a worktree), and so does a directory from elsewhere:
    /// programs of the host may know it.
    fn may_become_repository(
        &self,
        place: &ResolvedParent,
        coming: Coming<'_>,
    ) -> Verdict<Allowed> {
        if matches!(coming, Coming::Directory) {
            return Ok(Allowed::Plainly);
        }
        let around = place.parent.as_fd();
        let is_free = |hooks: &&PathBuf| {
            let path = place.directory().join(hooks);
            let tree = place.tree.as_deref().unwrap_or(&path);
            self.matcher.judge(tree, &path, &mut |_| true).is_none()
        };
        let mut free_hooks = self.hooks.iter().filter(is_free);
        if free_hooks.any(|hooks| exists(around, hooks.as_path())) {
            return Err(git::hook_denied());
        }
        if self.is_newborn(around)
            && let Some(denied) = self.counts_in_repository(place)
        {
            return Err(denied);
        }
        if let Coming::MovedDirectory(source) = coming
            && !git::is_git_directory(source, None)
        {
            git::adopt(source, &setting(place, &place.path))?;
        }
        Ok(Allowed::AsOldRepository)
    }

    /// What is beside it and would not have been allowed in a directory older than the run.
    fn counts_in_repository(&self, place: &ResolvedParent) -> Option<Denied> {
        let tree = place.tree.as_ref()?;
        let Some(Ok(entries)) = reopened(place.parent.as_fd()).map(|dir| Dir::read_from(&dir))
        else {
            return Some(git::config_denied());
        };
        entries.into_iter().flatten().find_map(|entry| {
            let path = place.directory().join(OsStr::from_bytes(entry.file_name().to_bytes()));
            self.matcher.judge(tree, &path, &mut |_| true).map(Denied::by)
        })
    }

    fn is_newborn(&self, dir: BorrowedFd<'_>) -> bool {
        rustix::fs::fstat(dir).is_ok_and(|found| self.newborn.has((found.st_dev, found.st_ino)))
    }

    /// Whether programs of the host may know `dir`: it existed before this run.
    fn is_old(&self, dir: &Path) -> bool {
        if self.foreseen.is_some() {
            return rustix::fs::lstat(self.on_host(dir).as_ref()).is_ok();
        }
        rustix::fs::lstat(dir).map_or(true, |found| !self.newborn.has((found.st_dev, found.st_ino)))
    }

    fn on_host<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        let foreseen = self.foreseen.as_ref();
        match foreseen.and_then(|tree| Some((tree, path.strip_prefix(&tree.inside).ok()?))) {
            Some((tree, below)) => Cow::Owned(tree.on_host.join(below)),
            None => Cow::Borrowed(path),
        }
    }
}

/// Where the configuration of a git directory will be.
pub(crate) fn setting<'p>(
    place: &'p ResolvedParent,
    git_dir: &'p Path,
) -> gitconfig::ConfigLocation<'p> {
    git::setting(git_dir, place.tree.as_deref().unwrap_or(git_dir))
}

/// Whether a path is in what `core.hooksPath` means in a directory that shares the settings of a repository: it
/// has a file or link called `.git`, or is a git directory, where the path leads once `core.bare` is set.
fn is_in_hooks(place: &ResolvedParent, coming: Coming<'_>, tree: &Path, hooks: &Path) -> bool {
    let is_same = |(one, other): (&OsStr, &OsStr)| {
        let (one, other) = (one.as_bytes(), other.as_bytes());
        palisade_guard::comparable(one).eq_ignore_ascii_case(&palisade_guard::comparable(other))
    };
    let bases = place.path.ancestors().skip(1).take_while(|base| base.starts_with(tree));
    bases.into_iter().any(|base| {
        let Ok(below) = place.path.strip_prefix(base) else { return false };
        if !below.iter().zip(hooks).all(is_same) {
            return false;
        }
        let rest: PathBuf = hooks.iter().skip(below.iter().count()).collect();
        let counts = match coming {
            _ if rest.as_os_str().is_empty() => true,
            Coming::MovedDirectory(source) => exists(source, rest.as_path()),
            Coming::SymbolicLink | Coming::MovedLink => true,
            _ => false,
        };
        counts && shares_settings(base)
    })
}

fn shares_settings(base: &Path) -> bool {
    let is_named_git = base.file_name().and_then(Part::of) == Some(Part::Itself);
    let pointer = rustix::fs::lstat(base.join(".git"));
    is_named_git
        || pointer.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Directory)
        || openat(rustix::fs::CWD, base, DIRECTORY, NO_MODE)
            .is_ok_and(|dir| git::is_git_directory(dir.as_fd(), None))
}

/// Whether a directory is, or is in, the place where git keeps the git directories of submodules, whatever the
/// git directory around it is called.
pub(crate) fn is_among_modules(place: &ResolvedParent) -> bool {
    let Some(tree) = &place.tree else { return false };
    git::is_among_modules(&place.path)
        || place
            .path
            .ancestors()
            .take_while(|dir| dir.starts_with(tree))
            .filter(|dir| dir.file_name().is_some_and(|name| name == "modules"))
            .filter_map(|dir| openat(rustix::fs::CWD, dir.parent()?, DIRECTORY, NO_MODE).ok())
            .any(|dir| git::is_git_directory(dir.as_fd(), None))
}

/// Whether a directory that is moved is a git directory by its name or by what is in it.
pub(crate) fn is_git_directory(name: &OsStr, dir: BorrowedFd<'_>) -> bool {
    Part::of(name) == Some(Part::Itself) || git::is_git_directory(dir, None)
}

/// A Jujutsu workspace has its repository elsewhere, named in a file.
fn is_jujutsu_pointer(place: &ResolvedParent, coming: Coming<'_>) -> bool {
    let is = |name: &OsStr, wanted: &[u8]| {
        palisade_guard::comparable(name.as_bytes()).eq_ignore_ascii_case(wanted)
    };
    is(&place.name, b"repo")
        && place.directory().file_name().is_some_and(|name| is(name, b".jj"))
        && !matches!(coming, Coming::Directory | Coming::MovedDirectory(_))
}

fn above(dir: &Path) -> &Path {
    dir.parent().unwrap_or(dir)
}

/// At any depth: git writes to files that are known by their paths, logs and references among them.
fn is_within_git_directory(place: &ResolvedParent) -> bool {
    let Some(tree) = &place.tree else { return false };
    let above = place.directory().ancestors().take_while(|dir| dir.starts_with(tree));
    above.into_iter().any(|dir| {
        dir.file_name().and_then(Part::of) == Some(Part::Itself)
            || openat(rustix::fs::CWD, dir, DIRECTORY, NO_MODE)
                .is_ok_and(|dir| git::is_git_directory(dir.as_fd(), None))
    })
}

/// Of the directory whose `hooks` these are.
fn is_git_directory_above(hooks: BorrowedFd<'_>, path: &Path) -> bool {
    let name = path.parent().and_then(Path::file_name);
    if name.and_then(Part::of) == Some(Part::Itself) {
        return true;
    }
    let Ok(above) = openat(hooks, "..", DIRECTORY, NO_MODE) else { return true };
    git::is_git_directory(above.as_fd(), None)
}

fn is_there(dir: BorrowedFd<'_>, below: &Below<'_>) -> bool {
    let ways = below.dir.ancestors().filter(|way| !way.as_os_str().is_empty());
    if ways.into_iter().any(|way| readlinkat(dir, way, Vec::new()).is_ok()) {
        // A link on the way leads to where other rules apply.
        return true;
    }
    match &below.name {
        NamePattern::Exact(name) => exists(dir, below.dir.join(OsStr::from_bytes(name))),
        NamePattern::Around(..) => {
            let path = if below.dir.as_os_str().is_empty() { Path::new(".") } else { &below.dir };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(listed) = openat(dir, path, flags, NO_MODE) else { return false };
            let Ok(entries) = Dir::read_from(&listed) else { return true };
            entries.into_iter().any(|entry| {
                entry.is_ok_and(|entry| below.name.matches(entry.file_name().to_bytes()))
            })
        }
    }
}

/// Opened for reading: an `O_PATH` descriptor cannot be listed.
fn reopened(dir: BorrowedFd<'_>) -> Option<OwnedFd> {
    openat(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, NO_MODE).ok()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
