//! Takes the parts of the host's tree that the view will show, as detached mounts.
//!
//! An ordinary user's child takes them itself, in its own namespaces. Root's child is no longer root and cannot
//! traverse root's private directories, so there the parent takes them all before it forks. Either way a source
//! is opened without following any link: the plan has the real path, so a link found there now was planted
//! later (class of CVE-2026-34078).

use crate::error::{During, LaunchError, Result};
use crate::idmap::OwnerMaps;
use palisade_plan::kept_layer::UPPER;
use palisade_plan::model::{CacheStack, Hardening, MountAccess, MountOp, Namespaced, Owner};
use palisade_sys::mounts::{self, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, CWD, Errno, OFlags, SysError};
use rustix::fs::FileType;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const STEP: &str = "taking a part of the host's tree";

/// Detached mounts by the index of their step in the plan; a step that makes a name has none.
pub(crate) type Sources = Vec<Option<Source>>;

/// What one step of the plan is made from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) mount: OwnedFd,
    /// The directory that keeps the changes of a transaction or of caches.
    pub(crate) layer: Option<OwnedFd>,
    /// What earlier runs wrote to caches, the newest first.
    pub(crate) below: Vec<OwnedFd>,
}

impl From<OwnedFd> for Source {
    fn from(mount: OwnedFd) -> Self {
        Self { mount, layer: None, below: Vec::new() }
    }
}

/// Takes every source of the plan now. Caches that are parts of one overlay have their source at the first of them.
pub(crate) fn prepare(
    inside: &Namespaced,
    hardening: Hardening,
    maps: &OwnerMaps,
) -> Result<Sources> {
    let root = host_root()?;
    let mut stacks: Vec<&CacheStack> = inside.caches.iter().collect();
    let source = |op: &MountOp| match op {
        MountOp::Overlay { stack: Some(stack), .. } => {
            let position = stacks.iter().position(|planned| planned.lower == *stack);
            let first = position.map(|position| stacks.swap_remove(position));
            first.map(|stack| take_stack(&root, stack, hardening, maps)).transpose()
        }
        _ => take(&root, op, hardening, maps),
    };
    inside.mounts.iter().map(source).collect()
}

fn take_stack(
    root: &OwnedFd,
    stack: &CacheStack,
    hardening: Hardening,
    maps: &OwnerMaps,
) -> Result<Source> {
    let take = |path: &Path, access| take_layer(root, (path, access), stack.idmap, hardening, maps);
    let lower = |path: &PathBuf| take(path, MountAccess::ReadOnly);
    Ok(Source {
        mount: lower(&stack.lower)?,
        layer: Some(take(&stack.layer, MountAccess::ReadWrite)?),
        below: stack.below.iter().map(lower).collect::<Result<_>>()?,
    })
}

/// A directory that only the overlay on it will show: what lies below, or one of ours that keeps what is written.
fn take_layer(
    root: &OwnedFd,
    (path, access): (&Path, MountAccess),
    owner: Option<Owner>,
    hardening: Hardening,
    maps: &OwnerMaps,
) -> Result<OwnedFd> {
    let mount = clone_tree(root, path)?;
    take_owner(&mount, path, owner, access, maps)?;
    let mut attrs = MountAttrs::NOSUID | MountAttrs::NODEV;
    if access == MountAccess::ReadOnly {
        attrs |= MountAttrs::RDONLY;
    }
    set(&mount, path, attrs, hardening)?;
    Ok(mount)
}

/// The host's root directory.
fn host_root() -> Result<OwnedFd> {
    rustix::fs::open(
        "/",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .at("open", Path::new("/"))
    .during("opening the host's root")
}

/// Takes the source of one step, or nothing for a step that has none.
fn take(
    root: &OwnedFd,
    op: &MountOp,
    hardening: Hardening,
    maps: &OwnerMaps,
) -> Result<Option<Source>> {
    match op {
        MountOp::Bind { source, access, exec, idmap, may_vanish, .. } => {
            let mut attrs = MountAttrs::NONE;
            if hardening.mount_flags {
                attrs |= MountAttrs::NOSUID | MountAttrs::NODEV;
            }
            if *access == MountAccess::ReadOnly {
                attrs |= MountAttrs::RDONLY;
            }
            if !exec {
                attrs |= MountAttrs::NOEXEC;
            }
            let found = match open_source(root, source) {
                Err(error) if *may_vanish && error.errno == Errno::NOENT => return Ok(None),
                found => found.during(STEP)?,
            };
            let mount = mount_of(&found, source)?;
            take_owner(&mount, source, *idmap, *access, maps)?;
            set(&mount, source, attrs, hardening)?;
            Ok(Some(mount.into()))
        }
        // The copy is there already, and is all that the command sees.
        MountOp::Overlay { layer: Some(layer), is_copied: true, idmap, exec, .. } => {
            let copy = layer.join(UPPER);
            let mount = clone_tree(root, &copy)?;
            take_owner(&mount, &copy, *idmap, MountAccess::ReadWrite, maps)?;
            let mut attrs = MountAttrs::NOSUID | MountAttrs::NODEV;
            if !exec {
                attrs |= MountAttrs::NOEXEC;
            }
            set(&mount, &copy, attrs, hardening)?;
            Ok(Some(mount.into()))
        }
        MountOp::Overlay { lower, idmap, layer, .. } => {
            let take = |path, access| take_layer(root, (path, access), *idmap, hardening, maps);
            let mount = take(lower, MountAccess::ReadOnly)?;
            let layer = layer.as_ref().map(|layer| take(layer, MountAccess::ReadWrite));
            Ok(Some(Source { layer: layer.transpose()?, ..mount.into() }))
        }
        MountOp::Device { source, major, minor, .. } => {
            let mount = clone_tree(root, source)?;
            check_device(&mount, source, *major, *minor)?;
            set(&mount, source, MountAttrs::NOSUID | MountAttrs::NOEXEC, hardening)?;
            Ok(Some(mount.into()))
        }
        _ => Ok(None),
    }
}

fn clone_tree(root: &OwnedFd, source: &Path) -> Result<OwnedFd> {
    // Only the root itself has no name below the root.
    if source == Path::new("/") {
        return mounts::open_tree(CWD, source, Recursion::Recursive).during(STEP);
    }
    mount_of(&open_source(root, source).during(STEP)?, source)
}

fn open_source(root: &OwnedFd, source: &Path) -> palisade_sys::Result<OwnedFd> {
    let named = |error: SysError| SysError { subject: source.display().to_string(), ..error };
    palisade_sys::beneath::open_beneath(root, source, OFlags::PATH).map_err(named)
}

fn mount_of(found: &OwnedFd, source: &Path) -> Result<OwnedFd> {
    let named = |error: SysError| SysError { subject: source.display().to_string(), ..error };
    mounts::open_tree(found, Path::new(""), Recursion::Recursive).map_err(named).during(STEP)
}

fn set(mount: &OwnedFd, source: &Path, attrs: MountAttrs, hardening: Hardening) -> Result<()> {
    // A copy of a shared mount is shared, too.
    let private = hardening.private_mounts;
    let attr = MountAttr { set: attrs, private, ..MountAttr::default() };
    mounts::mount_setattr(mount, Recursion::Recursive, &attr)
        .map_err(|error| SysError { subject: source.display().to_string(), ..error })
        .during(STEP)
}

/// Shows the files of `owner` as the command's own.
fn take_owner(
    mount: &OwnedFd,
    source: &Path,
    owner: Option<Owner>,
    access: MountAccess,
    maps: &OwnerMaps,
) -> Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let userns_fd = Some(maps.get(owner)?);
    let attr = MountAttr { userns_fd, ..MountAttr::default() };
    match mounts::mount_setattr(mount, Recursion::Recursive, &attr) {
        Ok(()) => Ok(()),
        // A file system that cannot map ids: the command then reads as another user, which is less than it was
        // granted, never more. Writing as another user would leave files with the wrong owner.
        Err(error) if error.errno == Errno::INVAL && access == MountAccess::ReadOnly => Ok(()),
        Err(error) => Err(LaunchError::new(
            STEP,
            SysError { subject: source.display().to_string(), ..error }.to_string(),
        )
        .with_fix(
            "this file system cannot map ids, which a run started by root needs to write to it: \
             start as the directory's owner instead",
        )),
    }
}

/// The node is what its name says, checked through the descriptor that will be mounted.
fn check_device(mount: &OwnedFd, source: &Path, major: u32, minor: u32) -> Result<()> {
    let found = rustix::fs::fstat(mount).at("fstat", source).during(STEP)?;
    let is_character = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    let numbers = (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
    if is_character && numbers == (major, minor) {
        return Ok(());
    }
    Err(LaunchError::new(
        STEP,
        format!("{} is not character device {major}:{minor}", source.display()),
    )
    .with_fix("the host's /dev is not what it should be; nothing was started"))
}
