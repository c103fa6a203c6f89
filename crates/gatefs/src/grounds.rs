//! The sandbox's own file systems, by the path at which each is shown. Names in them are reached from the ground's own
//! descriptor, follow no link and cross no mount.

use crate::identity::Identity;
use palisade_gate::MAX_PATH_BYTES;
use palisade_sys::beneath::open_on_mount;
use palisade_sys::{Errno, Mode, OFlags, SysError};
use rustix::fs::{AtFlags, Stat, fstat, mkdirat, statat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

const NEW_DIRECTORY: Mode = Mode::from_raw_mode(0o755);

#[derive(Debug)]
struct Ground {
    path: PathBuf,
    root: OwnedFd,
}

#[derive(Debug, Default)]
pub(crate) struct Grounds(Vec<Ground>);

impl Grounds {
    pub(crate) fn add(&mut self, path: PathBuf, root: OwnedFd) {
        self.0.push(Ground { path, root });
        // The first that a path is in is the one it belongs to.
        self.0.sort_by_key(|ground| std::cmp::Reverse(ground.path.as_os_str().len()));
    }

    /// Whether a ground is shown at this path or below it.
    pub(crate) fn are_below(&self, path: &Path) -> bool {
        self.0.iter().any(|ground| ground.path.starts_with(path))
    }

    /// The ground, and the path from there.
    fn place<'p>(&self, path: &'p Path) -> Result<(&OwnedFd, &'p Path), Errno> {
        self.0
            .iter()
            .find_map(|ground| Some((&ground.root, path.strip_prefix(&ground.path).ok()?)))
            .ok_or(Errno::NOENT)
    }

    /// The root of the ground that a path belongs to.
    pub(crate) fn root_of(&self, path: &Path) -> Result<&OwnedFd, Errno> {
        self.place(path).map(|(root, _)| root)
    }

    pub(crate) fn open(
        &self,
        identity: &Identity,
        path: &Path,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        identity.as_command()?;
        let (root, rest) = self.place(path)?;
        let mut rest = rest.as_os_str().as_bytes();
        let mut reached = None;
        while rest.len() >= MAX_PATH_BYTES {
            let end = rest[..MAX_PATH_BYTES].iter().rposition(|byte| *byte == b'/');
            let (part, beyond) = rest.split_at(end.ok_or(Errno::NAMETOOLONG)?);
            reached = Some(open_part(reached.as_ref().unwrap_or(root), part, DIRECTORY)?);
            rest = &beyond[1..];
        }
        let rest = if rest.is_empty() { b"." } else { rest };
        open_part(reached.as_ref().unwrap_or(root), rest, flags)
    }

    pub(crate) fn directory(&self, identity: &Identity, path: &Path) -> Result<OwnedFd, Errno> {
        self.open(identity, path, DIRECTORY)
    }

    /// Makes a directory, and those above it that the ground does not have.
    pub(crate) fn make_directories(&self, identity: &Identity, path: &Path) -> Result<(), Errno> {
        identity.as_command()?;
        let (root, rest) = self.place(path)?;
        let mut directory = open_part(root, b".", DIRECTORY)?;
        for name in rest {
            match mkdirat(&directory, name, NEW_DIRECTORY) {
                Ok(()) | Err(Errno::EXIST) => {
                    directory = open_part(&directory, name.as_bytes(), DIRECTORY)?;
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// What a ground has at this path, whatever its type.
    pub(crate) fn pin(&self, identity: &Identity, path: &Path) -> Result<OwnedFd, Errno> {
        self.open(identity, path, OFlags::PATH | OFlags::NOFOLLOW)
    }

    pub(crate) fn look(&self, identity: &Identity, path: &Path) -> Result<Stat, Errno> {
        fstat(self.pin(identity, path)?)
    }

    /// The same for a name in a directory that is open.
    pub(crate) fn look_in(directory: &OwnedFd, name: &[u8]) -> Result<Stat, Errno> {
        statat(directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// As much of a path as a call can take.
fn open_part(from: &OwnedFd, part: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let part = Path::new(OsStr::from_bytes(part));
    open_on_mount(from, part, flags).map_err(|SysError { errno, .. }| errno)
}

#[cfg(test)]
mod tests {
    use super::{DIRECTORY, Grounds};
    use crate::identity::{Identity, ServerIdentity};
    use palisade_sys::{Mode, OFlags};
    use rustix::fs::{CWD, mkdirat, openat};
    use std::path::PathBuf;

    fn open_root(directory: &tempfile::TempDir) -> std::os::fd::OwnedFd {
        openat(CWD, directory.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    /// A directory is moved below another, with all that is in it.
    #[test]
    fn what_is_deeper_than_a_path_can_be_long_is_reached() {
        let directory = tempfile::tempdir().unwrap();
        let name = "n".repeat(250);
        let mut at = open_root(&directory);
        let mut path = PathBuf::from("/home");
        for _ in 0..40 {
            mkdirat(&at, &*name, Mode::RWXU).unwrap();
            at = openat(&at, &*name, DIRECTORY, Mode::empty()).unwrap();
            path.push(&name);
        }
        mkdirat(&at, "last", Mode::RWXU).unwrap();
        let mut grounds = Grounds::default();
        grounds.add("/home".into(), open_root(&directory));
        let identity = Identity::new(ServerIdentity::OrdinaryUser);
        assert!(grounds.look(&identity, &path.join("last")).is_ok());
        assert!(grounds.look(&identity, &path.join("other")).is_err());
        assert!(grounds.directory(&identity, &path).is_ok());
    }

    #[test]
    fn a_directory_is_made_with_those_above_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut grounds = Grounds::default();
        grounds.add("/home".into(), open_root(&directory));
        let identity = Identity::new(ServerIdentity::OrdinaryUser);
        for path in ["/home/a/b", "/home/a/b", "/home/a/c", "/home"] {
            grounds.make_directories(&identity, path.as_ref()).unwrap();
        }
        assert!(directory.path().join("a/b").is_dir() && directory.path().join("a/c").is_dir());
    }
}
