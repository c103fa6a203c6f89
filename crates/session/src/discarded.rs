//! What a run wrote to its private home directory, which goes with the run (FS-3): counted in full, listed in part.
//!
//! The command made every name in there, so nothing is opened but directories and what stands for copies of ours, no link is
//! followed and no mount crossed. It is looked at when everything inside has ended.

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

/// How many names are looked at, and for how long: the end of a run must not be delayed.
const MAX_NAMES: u64 = 100_000;
const MAX_SCAN_TIME: Duration = Duration::from_millis(250);
/// How many paths are listed.
const MAX_LISTED: usize = 100;

/// What is no work of the command's.
#[derive(Debug)]
pub(crate) struct Known<'p> {
    home: PathBuf,
    /// What is ours, by its path; with the content where the command may change it.
    ours: HashMap<PathBuf, Option<&'p str>>,
    /// What tools leave everywhere, below the home directory.
    leftovers: Vec<PathBuf>,
}

impl<'p> Known<'p> {
    /// `shown` is where something was put into the view while it ran. `None` where the home is not the run's own.
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

/// What the command may change of ours.
fn content(op: &MountOp) -> Option<&str> {
    match op {
        MountOp::File { content, .. } | MountOp::Copy { content, .. } => Some(content),
        _ => None,
    }
}

/// Costs next to nothing, so that a run which wrote nothing pays nothing.
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

/// Whether the file has this content, and so nothing was written that is worth telling.
fn is_unchanged(directory: &OwnedFd, path: &Path, content: &str) -> bool {
    // Nothing that is opened so keeps us waiting, whatever the command has put there.
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
            // What is mounted there is not ours to tell of; what cannot be read is the command's own doing.
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
