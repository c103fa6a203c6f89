//! What a run wrote to its private home directory, which goes with the run (FS-3): counted in full, listed in part.
//!
//! The command made every name in there, so nothing is opened but directories, no link is followed and no mount
//! crossed. It is looked at when everything inside has ended.

use palisade_launch::PrivateHome;
use palisade_plan::model::{Confinement, MountOp, Plan};
use palisade_record::DiscardedFiles;
use palisade_sys::OFlags;
use palisade_sys::beneath::open_on_mount;
use rustix::fs::{AtFlags, Dir, FileType};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So many names are looked at, and for so long: nobody waits at the end of a run.
const MOST_NAMES: u64 = 100_000;
const LONGEST_LOOK: Duration = Duration::from_millis(250);
/// So many paths are listed.
const MOST_LISTED: usize = 100;

/// What is no work of the command's.
#[derive(Debug)]
pub(crate) struct Known {
    home: PathBuf,
    /// Files of ours, by their paths; with their sizes where the command may change them.
    ours: HashMap<PathBuf, Option<usize>>,
    /// What tools leave everywhere, below the home directory.
    leftovers: Vec<PathBuf>,
}

impl Known {
    /// `shown` is where something was put into the view while it ran. `None` where the home is not the run's own.
    pub(crate) fn of(
        plan: &Plan,
        shown: &HashSet<PathBuf>,
        leftovers: Vec<PathBuf>,
    ) -> Option<Self> {
        let Confinement::Namespaces(inside) = &plan.confinement else { return None };
        let home = inside.private_home.clone()?;
        let size = |op: &MountOp| match op {
            MountOp::File { content, .. } => Some(content.len()),
            _ => None,
        };
        let planned = inside.mounts.iter().map(|op| (op.target().to_owned(), size(op)));
        let mut ours: HashMap<PathBuf, Option<usize>> = planned.collect();
        let made_for = shown.iter().flat_map(|path| path.ancestors());
        ours.extend(made_for.map(|path| (path.to_owned(), None)));
        Some(Self { home, ours, leftovers })
    }
}

/// Costs next to nothing, so that a run which wrote nothing pays nothing.
pub(crate) fn may_hold_files(home: &PrivateHome) -> bool {
    home.inodes_in_use().is_none_or(|inodes| inodes > home.inodes_at_start)
}

/// `None` if nothing was written.
pub(crate) fn list(home: &PrivateHome, known: &Known) -> Option<DiscardedFiles> {
    let found =
        DiscardedFiles { home: shown(&known.home), is_complete: true, ..DiscardedFiles::default() };
    let until = Instant::now() + LONGEST_LOOK;
    let mut look = Look { known, found, names: 0, until };
    look.walk(&home.directory);
    look.found.paths.sort_unstable();
    (look.found.count > 0).then_some(look.found)
}

struct Look<'k> {
    known: &'k Known,
    found: DiscardedFiles,
    names: u64,
    until: Instant,
}

impl Look<'_> {
    fn walk(&mut self, home: &OwnedFd) {
        let mut waiting = vec![PathBuf::new()];
        while let Some(directory) = waiting.pop() {
            let from = if directory.as_os_str().is_empty() { Path::new(".") } else { &directory };
            // What is mounted there is not ours to tell of; what can not be read is the command's own doing.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let Ok(opened) = open_on_mount(home, from, flags) else { continue };
            let Ok(entries) = Dir::read_from(&opened) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                self.names += 1;
                if self.names > MOST_NAMES || Instant::now() > self.until {
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
        if let Some(size) = self.known.ours.get(&whole) {
            let is_changed = size.is_some_and(|size| {
                let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
                found.is_ok_and(|found| usize::try_from(found.st_size).ok() != Some(size))
            });
            if !is_changed {
                return;
            }
        }
        self.found.count += 1;
        if self.known.leftovers.iter().any(|leftover| path.starts_with(leftover)) {
            self.found.leftovers += 1;
        } else if self.found.paths.len() < MOST_LISTED {
            self.found.paths.push(shown(&whole));
        }
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "discarded_tests.rs"]
mod tests;
