//! Overlays: trees that can be written but keep nothing (FS-5), large read-only trees without a few names, and
//! transactions, whose changes are kept in a directory of ours (LIFE-2).
//!
//! But for that directory, the upper layer is a tmpfs that exists only in the mount namespace, so it disappears with
//! it even if we are killed. Layers are given by descriptor, so the kernel never parses their names.

use super::scratch::Shared;
use super::stage::shelve;
use crate::error::{During, LaunchError, Result};
use crate::sources::Source;
use palisade_plan::kept_layer::{UPPER, WORK};
use palisade_plan::model::{CacheStack, MountAccess};
use palisade_sys::beneath::{mkdir_p_beneath, mknod_whiteout, open_beneath};
use palisade_sys::mounts::{self, FsOption, MountAttrs};
use palisade_sys::{At as _, Errno, Mode, OFlags, SysError};
use rustix::fs::{AtFlags, Dir, FileType};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const STEP: &str = "mounting an overlay";
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);
/// Enough for `/usr/local` or a language's library directory; mirroring all of `/usr` would be a mistake.
const MAX_MIRRORED: usize = 20_000;

/// Description of an overlay.
pub(crate) struct OverlayParts<'a> {
    /// Used in messages only.
    pub(crate) target: &'a Path,
    /// Names to hide, as relative paths.
    pub(crate) hidden: &'a [PathBuf],
    /// Read-only ones are made so at the end: what is mounted in them may need a name there.
    pub(crate) access: MountAccess,
    pub(crate) exec: bool,
}

/// An overlay of `lower` that keeps nothing.
pub(super) fn scratch_overlay(
    lower: &OwnedFd,
    parts: &OverlayParts<'_>,
    shared: Option<&Shared>,
) -> Result<OwnedFd> {
    let is_writable = parts.access == MountAccess::ReadWrite;
    let scratch = match shared.filter(|_| is_writable) {
        Some(shared) => shared.part(0o755, true)?,
        None => new_layer()?,
    };
    let upper = make_layer(&scratch)?;
    let is_mirrored = is_writable && owned_by_another(lower)?;
    if is_mirrored {
        let mut left = MAX_MIRRORED;
        mirror(lower, &upper, parts.target, &mut left)?;
    }
    hide(parts.hidden, lower, &upper, |directory, name| {
        if is_mirrored {
            remove_mirrored(directory, name);
        }
    })?;
    mount_layers(&[lower], &scratch, parts.exec)
}

/// An overlay of `lower` whose changes are kept in `layer`.
pub(super) fn transaction(
    lower: &OwnedFd,
    layer: &OwnedFd,
    parts: &OverlayParts<'_>,
) -> Result<OwnedFd> {
    kept(lower, &[], layer, parts.hidden, parts.exec).map_err(|error| match error.fix {
        Some(_) => error,
        None => error.with_fix(
            "--transaction=copy (or auto,copy) works in a copy of the project, without an overlay",
        ),
    })
}

/// The overlay behind caches: above the host's files there is what earlier runs wrote, and above that what this one
/// writes.
pub(super) fn cache_stack(planned: &CacheStack, source: &Source) -> Result<OwnedFd> {
    let Some(layer) = &source.layer else {
        return Err(LaunchError::new(STEP, "a cache has no layer"));
    };
    // Each part says whether programs may be executed in it.
    kept(&source.mount, &source.below, layer, &planned.hidden, true)
}

/// Names are hidden by a layer of their own: in the kept one they would look as if they had been removed.
fn kept(
    lower: &OwnedFd,
    between: &[OwnedFd],
    layer: &OwnedFd,
    hidden: &[PathBuf],
    exec: bool,
) -> Result<OwnedFd> {
    make_layer(layer)?;
    // An overlay's own directory is that of its upper layer.
    let shown = rustix::fs::fstat(lower).call("fstat").during(STEP)?;
    let mode = Mode::from_raw_mode(shown.st_mode & 0o777);
    rustix::fs::chmodat(layer, UPPER, mode, AtFlags::empty()).call("chmod").during(STEP)?;
    let mut lowers: Vec<&OwnedFd> = between.iter().chain([lower]).collect();
    if hidden.is_empty() {
        return mount_layers(&lowers, layer, exec);
    }
    let mask = new_layer()?;
    hide(hidden, lower, &mask, |_, _| {})?;
    lowers.insert(0, &mask);
    mount_layers(&lowers, layer, exec)
}

/// The first of the lower layers is the uppermost. `top` holds the upper layer and the kernel's working directory.
fn mount_layers(lowers: &[&OwnedFd], top: &OwnedFd, exec: bool) -> Result<OwnedFd> {
    lowers.iter().copied().chain([top]).try_for_each(shelve)?;
    mount(lowers, top, exec).during(STEP)
}

fn by_fd(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// A file system for a layer that goes with the run.
fn new_layer() -> Result<OwnedFd> {
    let attrs = MountAttrs::NOSUID | MountAttrs::NODEV;
    mounts::new_fs("tmpfs", &[FsOption::Text("mode", "0755")], attrs).during(STEP)
}

/// Makes the upper layer and the kernel's working directory, which have to be on one mount, and returns the first.
fn make_layer(top: &OwnedFd) -> Result<OwnedFd> {
    mkdir_p_beneath(top, Path::new(WORK), DIR_MODE).during(STEP)?;
    mkdir_p_beneath(top, Path::new(UPPER), DIR_MODE).during(STEP)
}

fn mount(lowers: &[&OwnedFd], top: &OwnedFd, exec: bool) -> palisade_sys::Result<OwnedFd> {
    let upper = open_beneath(top, Path::new(UPPER), OFlags::PATH)?;
    let work = open_beneath(top, Path::new(WORK), OFlags::PATH)?;
    let lowers: Vec<String> = lowers.iter().map(|lower| by_fd(lower)).collect();
    let (lowers, upper_path, work_path) = (lowers.join(":"), by_fd(&upper), by_fd(&work));
    let options = [
        FsOption::Text("lowerdir", &lowers),
        FsOption::Text("upperdir", &upper_path),
        FsOption::Text("workdir", &work_path),
        FsOption::Flag("userxattr"),
        // Otherwise unmounting an overlay writes the whole file system of its upper layer to disk, whatever else waits
        // there (`ovl_sync_fs`), and the end of a run waits for it. 5.10.
        FsOption::Flag("volatile"),
    ];
    let mut attrs = MountAttrs::NOSUID | MountAttrs::NODEV;
    if !exec {
        attrs |= MountAttrs::NOEXEC;
    }
    mounts::new_fs("overlay", &options, attrs)
}

/// Hides names of `lower` in the layer above it. `prepare` is told of each beforehand.
fn hide(
    names: &[PathBuf],
    lower: &OwnedFd,
    layer: &OwnedFd,
    prepare: impl Fn(&OwnedFd, &OsStr),
) -> Result<()> {
    // A home directory may hold hundreds of listed names, most of them in the same directory.
    let mut last: Option<(&Path, OwnedFd)> = None;
    for path in names {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let directory = match last.take() {
            Some((path, directory)) if path == parent => directory,
            _ => make_layer_dirs(lower, layer, parent)?,
        };
        prepare(&directory, name);
        mknod_whiteout(&directory, name).during(STEP)?;
        last = Some((parent, directory));
    }
    Ok(())
}

/// The directories above a hidden name, in the upper layer. An overlay shows a directory as its uppermost layer
/// has it, so each must admit the same users as the lower one.
fn make_layer_dirs(lower: &OwnedFd, upper: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    let mut at = PathBuf::new();
    let mut made = open_beneath(upper, Path::new("."), OFlags::PATH).during(STEP)?;
    for name in path {
        at.push(name);
        match rustix::fs::mkdirat(&made, name, layer_mode(lower, &at)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => {
                return Err(SysError::new("mkdir", at.display().to_string(), errno)).during(STEP);
            }
        }
        made =
            open_beneath(&made, Path::new(name), OFlags::PATH | OFlags::DIRECTORY).during(STEP)?;
    }
    Ok(made)
}

/// The mode of a directory that replaces one of the lower layer. We own it, so another user's directory is open
/// to us as far as it is to everybody.
fn layer_mode(lower: &OwnedFd, path: &Path) -> Mode {
    let found = open_beneath(lower, path, OFlags::PATH | OFlags::DIRECTORY)
        .ok()
        .and_then(|found| rustix::fs::fstat(found).ok());
    let Some(found) = found else { return DIR_MODE };
    let mode = found.st_mode & 0o777;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
    // We have to enter it to create a name in it.
    let for_us = if is_ours { mode & 0o700 } else { (mode & 0o7) << 6 };
    Mode::from_raw_mode(for_us | mode & 0o077)
}

fn owned_by_another(directory: &OwnedFd) -> Result<bool> {
    let found = rustix::fs::fstat(directory).call("fstat").during(STEP)?;
    Ok(found.st_uid != rustix::process::geteuid().as_raw())
}

/// Copies the directories of a tree with other owners to the upper layer as our own, so that names can be
/// created, replaced and removed: an overlay keeps the lower layer's owners and modes, which in `/usr/local`
/// refuse an ordinary user everything.
fn mirror(lower: &OwnedFd, upper: &OwnedFd, target: &Path, left: &mut usize) -> Result<()> {
    // A directory that cannot be listed stays as it is below.
    let Ok(entries) = open_beneath(lower, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(|error| error.errno)
        .and_then(Dir::read_from)
    else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry.at("readdir below", target).during(STEP)?;
        let name = entry.file_name();
        let is_dots = matches!(name.to_bytes(), b"." | b"..");
        if is_dots || !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            continue;
        }
        let below = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(lower_dir) = rustix::fs::openat(lower, name, below, Mode::empty()) else { continue };
        let mode = rustix::fs::fstat(&lower_dir).at("fstat below", target).during(STEP)?.st_mode;
        *left = left.checked_sub(1).ok_or_else(|| {
            LaunchError::new(
                STEP,
                format!("{} has more than {MAX_MIRRORED} directories", target.display()),
            )
            .with_fix("choose a smaller tree with --overlay")
        })?;
        rustix::fs::mkdirat(upper, name, Mode::from_raw_mode(mode & 0o777 | 0o700))
            .at("mkdir below", target)
            .during(STEP)?;
        let upper_dir = rustix::fs::openat(upper, name, below, Mode::empty())
            .at("open below", target)
            .during(STEP)?;
        mirror(&lower_dir, &upper_dir, target, left)?;
    }
    Ok(())
}

/// A directory that was mirrored and has to be hidden after all. A failure shows when the whiteout is created.
fn remove_mirrored(parent: &OwnedFd, name: &OsStr) {
    if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) == Err(Errno::NOTEMPTY) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::openat(parent, name, flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        for entry in entries.flatten() {
            let child = entry.file_name();
            if !matches!(child.to_bytes(), b"." | b"..") {
                use std::os::unix::ffi::OsStrExt as _;
                remove_mirrored(&directory, OsStr::from_bytes(child.to_bytes()));
            }
        }
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}
