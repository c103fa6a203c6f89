//! The slow path: how far does a path exist, and does it end in our scaffolding?
//!
//! Our own scaffolding (the root, a private home directory, frames) is where ungranted paths end. In every
//! other mount, what is missing inside is missing on the host as well, and there is nothing to ask.

use crate::numbered::name_of_own;
use crate::{DIRECTORY, NO_MODE};
use palisade_plan::model::Gate;
use palisade_sys::{Errno, OFlags, mounts, proc};
use rustix::fs::{
    FileType, ResolveFlags, StatVfsMountFlags, fstat, fstatvfs, openat, openat2, readlinkat,
};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a walk is restarted because a directory was removed during it, as the mount points of an expired
/// grant are.
const MAX_WALKS: usize = 12;
/// Twice as long each time, 80 ms in all.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
/// As many as the kernel follows.
const MAX_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC`: its links are not names.
const PROCFS: i64 = 0x9fa0;

/// The mounts of our own scaffolding.
#[derive(Debug)]
pub(crate) struct ScaffoldMounts {
    mounts: Vec<u64>,
    /// Every mount of the view, and whether it is one of these.
    tops: Vec<(PathBuf, bool)>,
    /// Never asked about, each with everything below.
    never: Vec<PathBuf>,
    /// Of these, Palisade's own: that somebody looks there is told, though nobody is asked.
    own: Vec<PathBuf>,
    /// The host's `/proc`, which resolves our own descriptors to paths.
    proc: &'static OwnedFd,
}

/// A path that does not exist: without links as far as it does, then as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) path: Vec<u8>,
    /// How many bytes of it lead to an existing directory.
    pub(crate) existing: usize,
    /// Whether that directory is covered by a mount that the caller, who was there before, does not see.
    pub(crate) is_covered: bool,
}

/// The current position, and what remains.
struct Walk {
    at: OwnedFd,
    rest: Vec<u8>,
    links: usize,
}

enum Step {
    /// One name further, or to another place through a link.
    On(Walk),
    /// The directory, with what is not in it.
    Missing(OwnedFd, Vec<u8>),
    /// It exists, or is in a place that is never asked about.
    Over,
}

impl ScaffoldMounts {
    /// Of a process that sees what the command sees.
    pub(crate) fn look_up(gate: &Gate, proc: &'static OwnedFd) -> Self {
        let opened = gate.grounds.iter().filter_map(|top| directory(top));
        let mounts = opened.filter_map(|top| mounts::mount_id(top).ok());
        let is_ground = |top: &PathBuf| gate.grounds.contains(top);
        let tops = gate.grounds.iter().chain(&gate.mounted);
        Self {
            mounts: mounts.collect(),
            tops: tops.map(|top| (top.clone(), is_ground(top))).collect(),
            never: gate.never.clone(),
            own: gate.own.clone(),
            proc,
        }
    }

    /// The path of something that was granted, but not for executing. What the plan itself shows without that
    /// right stays without it.
    pub(crate) fn unexecutable(&self, file: &OwnedFd) -> Option<Vec<u8>> {
        if !fstatvfs(file).ok()?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return None;
        }
        let path = self.path_of(file)?;
        let above = self.tops.iter().filter(|(top, _)| path.starts_with(top));
        let (_, is_granted) = above.max_by_key(|(top, _)| top.as_os_str().len())?;
        let path = path.into_os_string().into_vec();
        (*is_granted && !self.is_never(&path)).then_some(path)
    }

    /// What is missing, if it may be asked about. `base` is where a relative path starts.
    pub(crate) fn missing(
        &self,
        base: impl Fn() -> Result<OwnedFd, Errno>,
        path: &[u8],
        follow: bool,
    ) -> Option<Missing> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MAX_WALKS {
            let (directory, rest) = self.last_directory(&base, path, follow)?;
            let told = self.told(directory.as_fd(), &rest)?;
            // `/proc` shows no usable path for a removed directory.
            if fstat(&directory).ok()?.st_nlink > 0 {
                return Some(told);
            }
            // It has no links any more, and its name is removed a moment later: the remover must get to run.
            let _ = proc::poll(&mut [], Some(pause));
            pause *= 2;
        }
        None
    }

    /// How far the path exists, and what is missing.
    fn last_directory(
        &self,
        base: impl Fn() -> Result<OwnedFd, Errno>,
        path: &[u8],
        follow: bool,
    ) -> Option<(OwnedFd, Vec<u8>)> {
        let mut walk = self.start(base, path)?;
        loop {
            match walk.step(follow)? {
                Step::On(next) => walk = next,
                Step::Missing(directory, rest) => return Some((directory, rest)),
                Step::Over => return None,
            }
        }
    }

    /// Usually only the last name is missing: the kernel resolves the rest in one call.
    fn start(&self, base: impl Fn() -> Result<OwnedFd, Errno>, path: &[u8]) -> Option<Walk> {
        let base = if path.starts_with(b"/") { None } else { Some(base().ok()?) };
        let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
        let name = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (parent, rest) = path.split_at(name);
        let walk = |at, rest: &[u8]| Some(Walk { at, rest: rest.to_vec(), links: 0 });
        let at = base.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let found = openat2(at, OsStr::from_bytes(parent), DIRECTORY, NO_MODE, resolve)
            .and_then(|found| fstat(&found).map(|_| found));
        match (base.as_ref(), found) {
            (_, Ok(at)) => walk(at, rest),
            (Some(_), Err(Errno::NOENT | Errno::STALE)) => walk(base?, path),
            (None, Err(Errno::NOENT | Errno::STALE)) => walk(directory(Path::new("/"))?, path),
            (_, Err(_)) => None,
        }
    }

    /// What is missing in a directory, if that is our scaffolding.
    pub(crate) fn told(&self, directory: BorrowedFd<'_>, rest: &[u8]) -> Option<Missing> {
        let mount = mounts::mount_id(directory).ok()?;
        if !self.mounts.contains(&mount) {
            return None;
        }
        let mut path = self.path_of(directory)?;
        let existing = path.as_os_str().len();
        let is_covered = self.is_covered(directory, &path);
        path.push(OsStr::from_bytes(rest));
        let path = path.into_os_string().into_vec();
        let is_told = path.len() < palisade_gate::MAX_PATH_BYTES
            && (!self.is_never(&path) || self.is_own(&path));
        is_told.then_some(Missing { path, existing, is_covered })
    }

    /// Whether a directory of ours, which has this path, is below another mount.
    pub(crate) fn is_covered(&self, own: impl AsFd, path: &Path) -> bool {
        let on_top = directory(path).and_then(|on_top| mounts::mount_id(on_top).ok());
        on_top.is_some_and(|on_top| mounts::mount_id(own).is_ok_and(|own| own != on_top))
    }

    /// The path of a directory of ours.
    pub(crate) fn path_of_own(&self, directory: &OwnedFd) -> Option<PathBuf> {
        let mount = mounts::mount_id(directory).ok()?;
        self.mounts.contains(&mount).then(|| self.path_of(directory))?
    }

    fn is_never(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        self.never.iter().any(|never| path.starts_with(never))
    }

    fn is_own(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        self.own.iter().any(|own| path.starts_with(own))
    }

    pub(crate) fn path_of(&self, fd: impl AsFd) -> Option<PathBuf> {
        let own = name_of_own(&fd.as_fd());
        let path = readlinkat(self.proc, own, Vec::new()).ok()?;
        Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
    }
}

impl Walk {
    fn step(mut self, follow: bool) -> Option<Step> {
        let start = self.rest.iter().position(|byte| *byte != b'/');
        let Some(start) = start else { return Some(Step::Over) };
        self.rest.drain(..start);
        let end = self.rest.iter().position(|byte| *byte == b'/').unwrap_or(self.rest.len());
        let name = OsStr::from_bytes(&self.rest[..end]);
        let found = match openat(
            &self.at,
            name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            NO_MODE,
        ) {
            Ok(found) => found,
            // Stale: its name was found, and it was removed before it was read (ext4).
            Err(Errno::NOENT | Errno::STALE) => {
                return Some(Step::Missing(self.at, self.rest));
            }
            Err(_) => return None,
        };
        let is_last = end == self.rest.len();
        // The gate's file system may have shown it for a grant that has ended.
        let Ok(found_stat) = fstat(&found) else { return Some(Step::Missing(self.at, self.rest)) };
        match FileType::from_raw_mode(found_stat.st_mode) {
            FileType::Directory => {
                self.rest.drain(..end);
                Some(Step::On(Self { at: found, ..self }))
            }
            FileType::Symlink if follow || !is_last => self.through(&found, end),
            _ => Some(Step::Over),
        }
    }

    fn through(mut self, link: &OwnedFd, end: usize) -> Option<Step> {
        let is_name = mounts::fstatfs_magic(&self.at).ok()? != PROCFS;
        if self.links == MAX_LINKS || !is_name {
            return None;
        }
        let mut rest = readlinkat(link, "", Vec::new()).ok()?.into_bytes();
        rest.extend_from_slice(&self.rest[end..]);
        if rest.starts_with(b"/") {
            self.at = directory(Path::new("/"))?;
        }
        Some(Step::On(Self { at: self.at, rest, links: self.links + 1 }))
    }
}

fn directory(path: &Path) -> Option<OwnedFd> {
    openat(rustix::fs::CWD, path, DIRECTORY, NO_MODE).ok()
}

#[cfg(test)]
#[path = "missing_tests.rs"]
mod tests;
