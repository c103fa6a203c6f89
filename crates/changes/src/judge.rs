//! Judges what comes to the host: whether a program of the host would run it later (FS-9). Asked at apply, since a session
//! writes freely into its own layer.

use crate::entry::EntryKind;
use crate::git::{self, hook_denied, is_git_directory, is_named_git};
use crate::merged_tree::MergedTree;
use crate::objection::{Objection, Verdict};
use crate::python;
use palisade_guard::{Matcher, comparable};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What would be at a path.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'c> {
    /// Relative to the project.
    pub path: &'c Path,
    pub kind: EntryKind,
    /// Of a symbolic link.
    pub target: Option<&'c Path>,
}

/// Decides what may come to the host.
pub trait Judge {
    fn judge(&self, tree: &MergedTree<'_>, coming: Coming<'_>) -> Verdict;

    /// For a file that [`Judge::judge`] could not decide by its name: `new` are exactly the bytes that would be written,
    /// `old` those that the host has.
    fn judge_contents(
        &self,
        tree: &MergedTree<'_>,
        path: &Path,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<(), Objection>;
}

/// Allows everything.
#[derive(Clone, Copy, Debug)]
pub struct NoJudge;

impl Judge for NoJudge {
    fn judge(&self, _: &MergedTree<'_>, _: Coming<'_>) -> Verdict {
        Verdict::Allowed
    }

    fn judge_contents(
        &self,
        _: &MergedTree<'_>,
        _: &Path,
        _: Option<&[u8]>,
        _: &[u8],
    ) -> Result<(), Objection> {
        Ok(())
    }
}

/// The names that the host would run later, git's structure, and path files of Python: what the broker refuses in a run.
#[derive(Clone, Debug)]
pub struct GuardJudge {
    matcher: Matcher,
    /// The project's path as `matcher` knows it.
    project: PathBuf,
    /// Relative values of `core.hooksPath`.
    hooks: Vec<PathBuf>,
}

impl GuardJudge {
    pub fn new(matcher: Matcher, project: PathBuf, hooks: Vec<PathBuf>) -> Self {
        Self { matcher, project, hooks }
    }

    /// Whether a directory of the path counts as one that programs of the host know: they knew it before, or will find
    /// it as the files of a repository that is elsewhere.
    fn is_old(&self, tree: &MergedTree<'_>, dir: &Path) -> bool {
        let Ok(dir) = dir.strip_prefix(&self.project) else { return true };
        tree.existed(dir)
            || tree.kind_after(&dir.join(".git")).is_some_and(|kind| kind != EntryKind::Directory)
    }

    fn by_name(&self, tree: &MergedTree<'_>, coming: Coming<'_>) -> Option<Objection> {
        let path = self.project.join(coming.path);
        let mut is_old = |dir: &Path| self.is_old(tree, dir);
        if let Some(hit) = self.matcher.judge(&self.project, &path, &mut is_old) {
            return Some(Objection::new(hit.name, hit.why));
        }
        if coming.kind != EntryKind::Directory {
            // In the place of a directory that contains a listed name: a link could lead to one that is not guarded.
            let below = self.matcher.below(&self.project, &path, &mut is_old);
            let is_link = coming.kind == EntryKind::Link;
            if let Some(below) = below.first().filter(|_| is_link) {
                return Some(Objection::new(below.hit.name, below.hit.why));
            }
        }
        None
    }

    /// In what `core.hooksPath` means in a directory that shares the settings of a repository.
    fn is_in_hooks(&self, tree: &MergedTree<'_>, coming: Coming<'_>) -> bool {
        let is_same = |(one, other): (&OsStr, &OsStr)| {
            let (one, other) = (comparable(one.as_bytes()), comparable(other.as_bytes()));
            one.eq_ignore_ascii_case(&other)
        };
        self.hooks.iter().any(|hooks| {
            coming.path.ancestors().skip(1).any(|base| {
                let Ok(below) = coming.path.strip_prefix(base) else { return false };
                let is_whole = below.iter().count() >= hooks.iter().count();
                below.iter().zip(hooks).all(is_same)
                    && (is_whole || coming.kind == EntryKind::Link)
                    && shares_settings(tree, base)
            })
        })
    }
}

impl Judge for GuardJudge {
    fn judge(&self, tree: &MergedTree<'_>, coming: Coming<'_>) -> Verdict {
        if let Some(objection) = self.by_name(tree, coming) {
            return Verdict::Refused(objection);
        }
        if self.matcher.is_opened(&self.project.join(coming.path)) {
            return Verdict::Allowed;
        }
        if self.is_in_hooks(tree, coming) {
            return Verdict::Refused(hook_denied());
        }
        if let Some(verdict) = python::judge(tree, coming.path, coming.kind) {
            return verdict;
        }
        if is_jujutsu_pointer(coming) {
            let why = "as a file it leads Jujutsu to a repository whose settings name programs";
            return Verdict::Refused(Objection::new(".jj/repo", why));
        }
        if is_named_git(coming.path) && coming.kind != EntryKind::Directory {
            // A repository that is elsewhere gets files here: hooks beside it begin to count.
            let around = coming.path.parent().unwrap_or(Path::new(""));
            if self.hooks.iter().any(|hooks| tree.exists(&around.join(hooks))) {
                return Verdict::Refused(hook_denied());
            }
        }
        git::judge(tree, coming.path, coming.kind, coming.target)
    }

    fn judge_contents(
        &self,
        tree: &MergedTree<'_>,
        path: &Path,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<(), Objection> {
        if path.file_name().is_some_and(python::is_path_file) {
            return python::judge_path_file(old, new);
        }
        git::judge_config(tree, &self.project, path, old, new)
    }
}

fn shares_settings(tree: &MergedTree<'_>, base: &Path) -> bool {
    let pointer = base.join(".git");
    let is_pointer =
        |kind: Option<EntryKind>| kind.is_some_and(|kind| kind != EntryKind::Directory);
    is_pointer(tree.kind_before(&pointer))
        || is_pointer(tree.kind_after(&pointer))
        || is_git_directory(tree, base)
}

/// A Jujutsu workspace has its repository elsewhere, named in a file.
fn is_jujutsu_pointer(coming: Coming<'_>) -> bool {
    let is = |name: Option<&OsStr>, wanted: &[u8]| {
        name.is_some_and(|name| comparable(name.as_bytes()).eq_ignore_ascii_case(wanted))
    };
    let dir = coming.path.parent().and_then(Path::file_name);
    is(coming.path.file_name(), b"repo") && is(dir, b".jj") && coming.kind != EntryKind::Directory
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
