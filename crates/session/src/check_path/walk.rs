//! Resolves a path to its file: by the kernel, and step by step where the kernel only refuses.
//!
//! Must never open anything but entries of directories that were reached from the root.

use super::refusal::Refusal;
use super::steps::{self, Step};
use palisade_sys::beneath::{open_entry, resolve_beneath};
use palisade_sys::mounts::fstatfs_magic;
use palisade_sys::{At as _, Errno, SysError};
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The kernel's own limit; see path_resolution(7).
const MAX_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC`; see statfs(2).
const PROC_MAGIC: i64 = 0x9fa0;

/// A directory to stay below, and its names, the real one first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) names: &'a [PathBuf],
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Reached {
    /// `O_PATH`: the file itself, or the last existing directory on the way.
    pub(super) descriptor: OwnedFd,
    /// The part of the path that does not exist; empty if all of it does.
    pub(super) missing: PathBuf,
}

/// Uses openat2(2) where it succeeds. It refuses absolute links even if they lead back in, does not report how much of
/// a path exists, and a container's filter may refuse it (ENOSYS, EPERM). Then the path is walked step by step, which
/// also finds the reason for a refusal.
pub(super) fn resolve(root: Root<'_>, steps: &[Step]) -> Result<Reached, Refusal> {
    match resolve_beneath(root.directory, &steps::to_path(steps)) {
        Ok(descriptor) => Ok(Reached { descriptor, missing: PathBuf::new() }),
        Err(_) => by_hand(root, steps),
    }
}

/// Resolves step by step and reads links as text. A `..` goes back to a directory that is already open and never asks
/// the kernel for a parent, so moving a directory meanwhile leads nowhere else.
pub(super) fn by_hand(root: Root<'_>, steps: &[Step]) -> Result<Reached, Refusal> {
    let mut taken: Vec<(OsString, OwnedFd)> = Vec::new();
    let mut ahead: Vec<Step> = steps.iter().rev().cloned().collect();
    let mut links = 0;
    let mut last_link = None;
    while let Some(step) = ahead.pop() {
        let name = match step {
            Step::Into(name) => name,
            Step::Up if taken.pop().is_some() => continue,
            Step::Up => {
                return Err(last_link.unwrap_or(Refusal::Traversal { root: root.name() }));
            }
        };
        let here = taken.last().map_or(root.directory, |(_, directory)| directory.as_fd());
        let shown = || taken.iter().map(|(name, _)| name).chain([&name]).collect::<PathBuf>();
        let entry = match open_entry(here, &name) {
            Ok(entry) => entry,
            Err(error) if error.errno == Errno::NOENT => {
                let missing = missing(name, ahead)?;
                return Ok(Reached { descriptor: copy(here)?, missing });
            }
            Err(error) => {
                return Err(SysError { subject: shown().display().to_string(), ..error })?;
            }
        };
        match FileType::from_raw_mode(stat(&entry)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Refusal::TooManyLinks { most: MAX_LINKS });
                }
                let link = shown();
                if fstatfs_magic(&entry)? == PROC_MAGIC {
                    return Err(Refusal::MagicLink { link });
                }
                let target = link_text(&entry)?;
                let outside = Refusal::LinkOutside { link, target: target.clone() };
                let Some(more) = steps::relative(&target, root.names) else {
                    return Err(outside);
                };
                if target.is_absolute() {
                    taken.clear();
                }
                last_link = Some(outside);
                ahead.extend(more.into_iter().rev());
            }
            FileType::Directory => taken.push((name, entry)),
            _ if ahead.is_empty() => taken.push((name, entry)),
            _ => return Err(Refusal::NotADirectory { path: shown() }),
        }
    }
    let descriptor = match taken.pop() {
        Some((_, descriptor)) => descriptor,
        None => copy(root.directory)?,
    };
    Ok(Reached { descriptor, missing: PathBuf::new() })
}

impl Root<'_> {
    fn name(&self) -> PathBuf {
        self.names.first().cloned().unwrap_or_default()
    }
}

/// The names that do not exist yet. A `..` among them is an error: it has no meaning before they exist.
fn missing(first: OsString, ahead: Vec<Step>) -> Result<PathBuf, Refusal> {
    let mut missing = PathBuf::from(first);
    for step in ahead.into_iter().rev() {
        match step {
            Step::Into(name) => missing.push(name),
            Step::Up => return Err(Refusal::BehindMissing { missing }),
        }
    }
    Ok(missing)
}

pub(super) fn stat(file: impl AsFd) -> Result<Stat, SysError> {
    rustix::fs::fstat(file).call("fstat")
}

/// The current path of the descriptor's file, as the kernel reports it.
pub(super) fn real_path(file: impl AsFd) -> Result<PathBuf, SysError> {
    let entry = PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()));
    rustix::fs::readlink(&entry, Vec::new())
        .at("readlink", &entry)
        .map(|text| PathBuf::from(OsString::from_vec(text.into_bytes())))
}

fn link_text(link: &OwnedFd) -> Result<PathBuf, SysError> {
    // An empty path means the descriptor itself; see readlinkat(2).
    let text = rustix::fs::readlinkat(link, Path::new(OsStr::new("")), Vec::new());
    text.call("readlinkat").map(|text| PathBuf::from(OsString::from_vec(text.into_bytes())))
}

fn copy(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, SysError> {
    descriptor.try_clone_to_owned().call("fcntl")
}
