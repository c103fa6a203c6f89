//! Finds what a run wrote to its private home directory, which is discarded with the run (FS-3): counted in full,
//! listed in part.
//!
//! The command chose every name in there. So this must never follow a link or cross a mount, and opens only directories
//! and our own copies. It runs after all processes inside have ended.

use palisade_launch::PrivateHome;
use palisade_plan::model::{Confinement, MountOp, Plan};
use palisade_record::DiscardedFiles;
use palisade_sys::beneath::open_on_mount;
use palisade_sys::{Errno, OFlags};
use rustix::fs::{Dir, FileType};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many names are scanned, and for how long: the end of a run must not be delayed.
const MAX_NAMES: u64 = 100_000;
const MAX_SCAN_TIME: Duration = Duration::from_millis(250);
/// How many paths are listed.
const MAX_LISTED: usize = 100;

/// What the command did not write itself.
#[derive(Debug)]
pub(crate) struct Known<'p> {
    home: PathBuf,
    /// Our own files by path; with the content where the command may change it.
    ours: HashMap<PathBuf, Option<&'p str>>,
    /// Files that tools leave everywhere, relative to the home directory.
    leftovers: Vec<PathBuf>,
}

impl<'p> Known<'p> {
    /// `shown` are the paths that were added to the view during the run. `None` if the home directory is not private.
    pub(crate) fn of(
        plan: &'p Plan,
        shown: &HashSet<PathBuf>,
        leftovers: Vec<PathBuf>,
    ) -> Option<Self> {
        let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return None };
        let home = inside.private_home.clone()?;
        let planned = inside.mounts.iter().map(|op| (op.target().to_owned(), content(op)));
        let mut ours: HashMap<PathBuf, Option<&str>> = planned.collect();
        let made_for = shown.iter().flat_map(|path| path.ancestors());
        ours.extend(made_for.map(|path| (path.to_owned(), None)));
        Some(Self { home, ours, leftovers })
    }
}

/// The content of a file of ours that the command may change.
fn content(op: &MountOp) -> Option<&str> {
    match op {
        MountOp::File { content, .. } | MountOp::Copy { content, .. } => Some(content),
        _ => None,
    }
}

/// A cheap check, so that a run that wrote nothing costs nothing.
pub(crate) fn may_hold_files(home: &PrivateHome, plan: &Plan) -> bool {
    let has_more = home.inodes_in_use().is_none_or(|inodes| inodes > home.inodes_at_start);
    has_more || has_changed_copies(home, plan)
}

fn has_changed_copies(home: &PrivateHome, plan: &Plan) -> bool {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return false };
    let Some(top) = &inside.private_home else { return false };
    let copies = inside.mounts.iter().filter_map(|op| {
        let MountOp::Copy { target, content, .. } = op else { return None };
        Some((target.strip_prefix(top).ok()?, content))
    });
    copies.into_iter().any(|(path, content)| !is_unchanged(&home.directory, path, content))
}

/// Whether the file still has this content, so that there is nothing to report.
fn is_unchanged(directory: &OwnedFd, path: &Path, content: &str) -> bool {
    // Opening with these flags never blocks, whatever the command put there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match open_on_mount(directory, path, flags) {
        Ok(file) => file,
        // Something was mounted over it.
        Err(error) => return error.errno == Errno::XDEV,
    };
    let is_as_long = rustix::fs::fstat(&file).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && usize::try_from(found.st_size) == Ok(content.len())
    });
    let mut found = Vec::with_capacity(content.len());
    is_as_long && File::from(file).read_to_end(&mut found).is_ok() && found == content.as_bytes()
}

/// `None` if nothing was written.
pub(crate) fn list(home: &PrivateHome, known: &Known<'_>) -> Option<DiscardedFiles> {
    let found =
        DiscardedFiles { home: shown(&known.home), is_complete: true, ..DiscardedFiles::default() };
    let until = Instant::now() + MAX_SCAN_TIME;
    let mut look = Look { known, found, names: 0, until };
    look.walk(&home.directory);
    look.found.paths.sort_unstable();
    (look.found.count > 0).then_some(look.found)
}

struct Look<'k> {
    known: &'k Known<'k>,
    found: DiscardedFiles,
    names: u64,
    until: Instant,
}

impl Look<'_> {
    fn walk(&mut self, home: &OwnedFd) {
        let mut waiting = vec![PathBuf::new()];
        while let Some(directory) = waiting.pop() {
            let from = if directory.as_os_str().is_empty() { Path::new(".") } else { &directory };
            // Mounts inside the home are not part of it; directories that cannot be read were made so by the command.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let Ok(opened) = open_on_mount(home, from, flags) else { continue };
            let Ok(entries) = Dir::read_from(&opened) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                self.names += 1;
                if self.names > MAX_NAMES || Instant::now() > self.until {
                    self.found.is_complete = false;
                    return;
                }
                let path = directory.join(OsStr::from_bytes(name));
                match entry.file_type() {
                    FileType::Directory => waiting.push(path),
                    _ => self.file(&opened, OsStr::from_bytes(name), &path),
                }
            }
        }
    }

    fn file(&mut self, directory: &OwnedFd, name: &OsStr, path: &Path) {
        let whole = self.known.home.join(path);
        let ours = self.known.ours.get(&whole);
        if let Some(content) = ours
            && content.is_none_or(|content| is_unchanged(directory, Path::new(name), content))
        {
            return;
        }
        self.found.count += 1;
        if self.known.leftovers.iter().any(|leftover| path.starts_with(leftover)) {
            self.found.leftovers += 1;
        } else if self.found.paths.len() < MAX_LISTED {
            self.found.paths.push(shown(&whole));
            self.found.copies.extend(ours.map(|_| shown(&whole)));
        }
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "discarded_tests.rs"]
mod tests;
