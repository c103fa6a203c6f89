//! Recognises Python environments by their structure: `lib/python3.12/site-packages` in a directory that
//! existed before the run.
//!
//! The interpreter reads the path files (`*.pth`) there at every start and runs some of their lines, and
//! editors start it by themselves. Packages can be installed; a path file changes only by a copy that was read
//! and judged, like git configuration. Never searches for environments: the path that is written says enough.

use crate::exists::exists;
use crate::verdict::{Allowed, Coming, Denied, Verdict};
use crate::{DIRECTORY, NO_MODE};
use palisade_guard::path_file;
use palisade_sys::OFlags;
use rustix::fs::{Dir, openat};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const PACKAGES: &str = "site-packages";
const MARK: &str = "pyvenv.cfg";
/// Versions of Python in one environment.
const MAX_VERSIONS: usize = 64;

pub(crate) fn is_path_file(name: &OsStr) -> bool {
    palisade_guard::comparable(name.as_bytes()).to_ascii_lowercase().ends_with(b".pth")
}

/// What to do about a path in an environment; none outside of one. `is_old` says whether a directory existed
/// before the run.
pub(crate) fn may_come(
    path: &Path,
    coming: Coming<'_>,
    is_old: &dyn Fn(&Path) -> bool,
) -> Verdict<Option<Allowed>> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    if is_path_file(name) && is_named(dir, PACKAGES) {
        if !is_old(environment_of(dir)) {
            return Ok(None);
        }
        return match coming {
            Coming::Written | Coming::Link | Coming::Moved => Ok(Some(Allowed::AsJudgedContent)),
            Coming::SymbolicLink | Coming::MovedLink => Err(denied()),
            Coming::Directory | Coming::MovedDirectory(_) => Ok(None),
        };
    }
    // Something that becomes an ancestor of path files.
    let Some((environment, rest)) = on_the_way(path) else { return Ok(None) };
    let holds = match coming {
        Coming::MovedDirectory(source) => holds_path_file(source, rest),
        Coming::SymbolicLink | Coming::MovedLink | Coming::Link => {
            rustix::fs::lstat(environment.join(MARK)).is_ok()
        }
        Coming::Directory | Coming::Written | Coming::Moved => false,
    };
    if holds && is_old(environment) { Err(denied()) } else { Ok(None) }
}

/// Whether the new content of a path file may replace the old.
pub(crate) fn judge(old: Option<&[u8]>, new: &[u8]) -> Verdict<()> {
    if path_file::brings_code(old, new) { Err(denied()) } else { Ok(()) }
}

fn denied() -> Denied {
    Denied {
        rule: "site-packages/*.pth".to_owned(),
        why: "Python runs its `import` lines at every start, and editors start it by themselves"
            .to_owned(),
    }
}

fn is_named(dir: &Path, wanted: &str) -> bool {
    dir.file_name().is_some_and(|name| name == wanted)
}

fn is_version(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"))
}

/// The environment that a `site-packages` belongs to, or the directory itself.
fn environment_of(packages: &Path) -> &Path {
    on_the_way(packages).map_or(packages, |(environment, _)| environment)
}

/// How many levels a directory is above the path files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Here,
    InPackages,
    InVersions,
}

/// For `lib`, `lib/python3.12` and `lib/python3.12/site-packages`: the environment.
fn on_the_way(path: &Path) -> Option<(&Path, Rest)> {
    let is_library = |dir: &Path| is_named(dir, "lib");
    let above = path.parent()?;
    if is_named(path, PACKAGES) && is_version(above) {
        let library = above.parent().filter(|dir| is_library(dir))?;
        return Some((library.parent()?, Rest::Here));
    }
    if is_version(path) && is_library(above) {
        return Some((above.parent()?, Rest::InPackages));
    }
    is_library(path).then_some((above, Rest::InVersions))
}

/// Whether a directory contains path files that would then be read. One that cannot be read might.
fn holds_path_file(dir: BorrowedFd<'_>, rest: Rest) -> bool {
    let below = |name: &OsStr, rest: Rest| match openat(dir, name, DIRECTORY, NO_MODE) {
        Ok(below) => holds_path_file(below.as_fd(), rest),
        Err(_) => false,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rest {
        Rest::InPackages => below(OsStr::new(PACKAGES), Rest::Here),
        Rest::Here | Rest::InVersions => {
            let Ok(listed) = openat(dir, ".", flags, NO_MODE) else { return true };
            let Ok(entries) = Dir::read_from(&listed) else { return true };
            let mut versions = 0;
            entries.into_iter().flatten().any(|entry| {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                match rest {
                    Rest::InVersions if is_version(Path::new(name)) => {
                        versions += 1;
                        versions > MAX_VERSIONS || below(name, Rest::InPackages)
                    }
                    Rest::InVersions | Rest::InPackages => false,
                    Rest::Here => is_path_file(name) && exists(dir, name),
                }
            })
        }
    }
}
