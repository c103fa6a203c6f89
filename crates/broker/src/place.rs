//! From a path of the caller's to the place it means: a directory held open, its real path, a last name.
//!
//! The broker stands in the sandbox's mount namespace and root, so the kernel resolves for it as for the
//! caller. Only the last name is left, for the judge to see before anything happens to it. Links in
//! `/proc` that are not names but other processes' files are never followed.

use crate::caller::Caller;
use crate::descriptor::{from_own_directory, own_descriptor};
use crate::ground::{Ground, Standing};
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{ResolveFlags, openat2, readlinkat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) parent: OwnedFd,
    pub(crate) name: OsString,
    /// The parent's real path and the name, as the sandbox sees them.
    pub(crate) path: PathBuf,
    /// The guarded tree it is in; none where nothing is judged.
    pub(crate) tree: Option<PathBuf>,
    /// Whether the caller wrote a slash behind it.
    pub(crate) is_directory_meant: bool,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Found {
    Ours(Place),
    /// To a file the caller holds open, by its number there.
    Descriptor(i32),
    /// Where nothing is brokered, or nowhere: the kernel answers, and Landlock stands behind it.
    Elsewhere,
}

/// Where a relative path starts: asked for only if the path is one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    Caller(&'a Caller, i32),
    Directory(BorrowedFd<'a>),
}

#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) ground: Ground,
    /// The host's `/proc`, where our own descriptors tell their paths.
    pub(crate) proc: &'static OwnedFd,
}

impl Map {
    /// Resolves everything but the last name.
    pub(crate) fn locate(&self, start: Start<'_>, path: &[u8]) -> Result<Found, Errno> {
        let (start, path) = match (start, from_own_directory(path)) {
            (Start::Caller(caller, _), Some((number, rest))) => {
                (Start::Caller(caller, number), rest)
            }
            _ => (start, path),
        };
        let Some((directory, name, is_directory_meant)) = split(path) else {
            return Ok(Found::Elsewhere);
        };
        let base = match start {
            _ if path.starts_with(b"/") => None,
            Start::Caller(caller, number) => Some(caller.directory(number)?),
            Start::Directory(fd) => {
                Some(fd.try_clone_to_owned().map_err(|error| errno_of(&error))?)
            }
        };
        let parent = match (base, directory) {
            (Some(base), b"") => base,
            (base, directory) => {
                let at = base.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
                let resolve = ResolveFlags::NO_MAGICLINKS;
                match openat2(at, OsStr::from_bytes(directory), DIRECTORY, NO_MODE, resolve) {
                    Ok(parent) => parent,
                    // The kernel will say why, in its own words.
                    Err(_) => return Ok(Found::Elsewhere),
                }
            }
        };
        let mut path = self.path_of(parent.as_fd())?;
        path.push(OsStr::from_bytes(name));
        let tree = match self.ground.standing(&path) {
            Standing::In(tree) => Some(tree.to_owned()),
            Standing::Unjudged => None,
            Standing::Elsewhere => return Ok(Found::Elsewhere),
        };
        let name = OsStr::from_bytes(name).to_owned();
        Ok(Found::Ours(Place { parent, name, path, tree, is_directory_meant }))
    }

    /// The same, and on through links in the last place.
    pub(crate) fn locate_target(&self, start: Start<'_>, path: &[u8]) -> Result<Found, Errno> {
        if let Some(number) = own_descriptor(path) {
            return Ok(Found::Descriptor(number));
        }
        let mut found = self.locate(start, path)?;
        for _ in 0..MOST_LINKS {
            let Found::Ours(place) = &found else { return Ok(found) };
            let Some(target) = place.link_target() else { return Ok(found) };
            if let Some(number) = own_descriptor(&target) {
                return Ok(Found::Descriptor(number));
            }
            found = self.locate(Start::Directory(place.parent.as_fd()), &target)?;
        }
        Err(Errno::LOOP)
    }

    /// Opens what a path means, wherever in the view that is.
    pub(crate) fn open_to_truncate(&self, start: Start<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let base = match start {
            Start::Caller(caller, number) if !path.starts_with(b"/") => {
                Some(caller.directory(number)?)
            }
            _ => None,
        };
        let at = base.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            openat2(at, OsStr::from_bytes(path), flags, NO_MODE, ResolveFlags::NO_MAGICLINKS);
        match opened {
            // A pipe nobody reads, which can not be truncated anyway.
            Err(Errno::NXIO) => Err(Errno::INVAL),
            opened => opened,
        }
    }

    /// The real path of something we hold open.
    pub(crate) fn path_of(&self, fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        let own = format!("self/fd/{}", fd.as_raw_fd());
        let path = readlinkat(self.proc, own, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
    }
}

impl Place {
    /// What the link says, if it is one.
    pub(crate) fn link_target(&self) -> Option<Vec<u8>> {
        let target = readlinkat(&self.parent, &self.name, Vec::new()).ok()?;
        Some(target.into_bytes())
    }

    /// The directory's own path.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Directory part, last name, and whether slashes follow it. None if there is no last name to judge: the
/// path is empty, `/`, or ends in `.` or `..`.
fn split(path: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
    let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let name = &path[start..end];
    (name != b"." && name != b"..").then_some((&path[..start], name, end < path.len()))
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_last_name_is_what_comes_after_the_last_slash() {
        assert_eq!(split(b"a"), Some((&b""[..], &b"a"[..], false)));
        assert_eq!(split(b"a/b"), Some((&b"a/"[..], &b"b"[..], false)));
        assert_eq!(split(b"/a"), Some((&b"/"[..], &b"a"[..], false)));
        assert_eq!(split(b"//a//b//"), Some((&b"//a//"[..], &b"b"[..], true)));
        assert_eq!(split(b"../.x"), Some((&b"../"[..], &b".x"[..], false)));
    }

    #[test]
    fn a_path_without_a_last_name_has_none() {
        for path in [&b""[..], b"/", b"//", b".", b"..", b"a/..", b"a/.", b"../"] {
            assert_eq!(split(path), None, "{path:?}");
        }
    }
}
