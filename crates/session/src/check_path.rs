//! Checks whether a path may be used, for programs that take paths from untrusted input.
//!
//! The result is a descriptor: the file that is used is the file that was checked, whatever happens to the tree
//! afterwards. Must never create anything, and never return a descriptor of something outside the root or denied.

mod denied;
mod glob;
mod refusal;
mod steps;
mod walk;

pub use refusal::Refusal;

use crate::error::{Result, SessionError};
use denied::{Denied, Subject};
use palisade_sys::beneath::open_entry;
use palisade_sys::{Errno, SysError};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use steps::Step;
use walk::{Reached, Root};

/// How often the check is repeated if the tree changes meanwhile.
const TRIES: u32 = 64;

/// A root directory and what is denied in it.
///
/// # Examples
///
/// ```
/// # let place = std::env::temp_dir();
/// use palisade_session::check_path::PathCheck;
/// let check = PathCheck::new(&place, ["secrets", "**/*.pem"])?;
/// assert_eq!(check.check("../etc/passwd".as_ref()).unwrap_err().reason(), "traversal");
/// assert_eq!(check.check("secrets/key".as_ref()).unwrap_err().reason(), "denied");
/// let new = check.check("out/result.txt".as_ref()).unwrap();
/// // Create `new.missing` below `new.descriptor`, and never by name.
/// # Ok::<(), palisade_session::SessionError>(())
/// ```
#[derive(Debug)]
pub struct PathCheck {
    root: OwnedFd,
    /// The real name first, then the one the caller used.
    names: Vec<PathBuf>,
    denied: Denied,
}

/// A path that may be used, with its descriptor.
#[derive(Debug)]
pub struct CheckedPath {
    /// `O_PATH`: the path's file, or, if that does not exist, its nearest existing directory. To read or write, open
    /// `/proc/self/fd/N`.
    pub descriptor: OwnedFd,
    /// Absolute and free of links; includes the missing part.
    pub real_path: PathBuf,
    /// The part to be created below the descriptor; empty if the path exists.
    pub missing: PathBuf,
}

/// Why one attempt failed.
enum Failed {
    /// The tree changed meanwhile; the attempt is inconsistent.
    Changed,
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for Failed {
    fn from(refusal: E) -> Self {
        Self::Refused(refusal.into())
    }
}

impl PathCheck {
    /// `denied` are paths (relative to the root, or absolute) or, where they contain `*` or `?`, globs.
    ///
    /// A denied path covers its file under every name: through links, hard links and second mounts, and, if it exists
    /// now, wherever it is moved. A glob covers matching names, and hard links of files with such a name. Both include
    /// everything below. Matching is case-sensitive, and a `..` in either removes the name before it, whether that is a
    /// link or not.
    pub fn new<D: AsRef<Path>>(root: &Path, denied: impl IntoIterator<Item = D>) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(root, flags, Mode::empty())
            .map_err(|errno| SessionError::io("open the root", root, errno.into()))?;
        let given = std::path::absolute(root)
            .map_err(|error| SessionError::io("open the root", root, error))?;
        let real = walk::real_path(&opened)?;
        let denied = Denied::new(&real, denied)?;
        Ok(Self { root: opened, names: vec![real, given], denied })
    }

    /// Checks one path, relative to the root or absolute and inside it. Links are followed.
    pub fn check(&self, path: &Path) -> Result<CheckedPath, Refusal> {
        self.check_with(path, walk::resolve)
    }

    fn check_with(
        &self,
        path: &Path,
        resolve: impl Fn(Root<'_>, &[Step]) -> Result<Reached, Refusal>,
    ) -> Result<CheckedPath, Refusal> {
        let steps = steps::below_root(path, &self.names)?;
        for _ in 0..TRIES {
            let reached = resolve(self.root(), &steps)?;
            match self.judge(reached, &steps) {
                Ok(checked) => return Ok(checked),
                Err(Failed::Refused(refusal)) => return Err(refusal),
                Err(Failed::Changed) => {}
            }
        }
        Err(Refusal::Unsettled { tries: TRIES })
    }

    fn root(&self) -> Root<'_> {
        Root { directory: self.root.as_fd(), names: &self.names }
    }

    fn real_root(&self) -> &Path {
        self.names.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    fn judge(&self, reached: Reached, steps: &[Step]) -> Result<CheckedPath, Failed> {
        let Reached { descriptor, missing } = reached;
        let real = walk::real_path(&descriptor)?;
        if walk::real_path(&self.root)? != self.real_root() {
            return Err(Refusal::RootMoved { root: self.real_root().to_owned() })?;
        }
        // It was moved out or removed in between: resolve the path again.
        let below = real.strip_prefix(self.real_root()).map_err(|_| Failed::Changed)?;
        let found = walk::stat(&descriptor)?;
        let lineage = lineage(self.root.as_fd(), below, &found)?;
        let by_letters = steps::by_letters(steps);
        let real_path = if missing.as_os_str().is_empty() { real } else { real.join(&missing) };
        self.denied.judge(&Subject {
            names: self.names.iter().map(|root| root.join(&by_letters)).collect(),
            real_path: &real_path,
            lineage: &lineage,
            other_names: missing.as_os_str().is_empty()
                && found.st_nlink > 1
                && FileType::from_raw_mode(found.st_mode) != FileType::Directory,
            root: self.root.as_fd(),
        })?;
        Ok(CheckedPath { descriptor, real_path, missing })
    }
}

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The root and every directory from there to the file, opened name by name without following links. That the last one
/// is the file proves that the descriptor is below the root.
fn lineage(root: BorrowedFd<'_>, below: &Path, thing: &Stat) -> Result<Vec<Identity>, Failed> {
    let mut lineage = vec![Identity::from(&walk::stat(root)?)];
    let mut last: Option<OwnedFd> = None;
    for name in below {
        let here = last.as_ref().map_or(root, OwnedFd::as_fd);
        let entry = match open_entry(here, name) {
            Err(SysError { errno: Errno::NOENT | Errno::NOTDIR, .. }) => {
                return Err(Failed::Changed);
            }
            entry => entry?,
        };
        lineage.push(Identity::from(&walk::stat(&entry)?));
        last = Some(entry);
    }
    if lineage.last() == Some(&Identity::from(thing)) { Ok(lineage) } else { Err(Failed::Changed) }
}

#[cfg(test)]
#[path = "check_path/check_path_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "check_path/race_tests.rs"]
mod race_tests;

#[cfg(test)]
#[path = "check_path/property_tests.rs"]
mod property_tests;
