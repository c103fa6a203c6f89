//! The identity the keeper acts with.
//!
//! An ordinary user's keeper runs as that user, and sees what the user sees. Root's keeper reads the host as
//! root, but creates and opens everything for the command with the command's own rights, through the id map of
//! the plan's mounts: a grant never shows what a mount of the plan would not.

use palisade_plan::model::Owner;
use palisade_sys::creds::{self, act_as};
use palisade_sys::mounts::{self, MountAttr, Recursion};
use palisade_sys::proc::sig;
use palisade_sys::{Errno, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// The user who started the run.
#[derive(Debug)]
pub enum CallerIdentity {
    OrdinaryUser,
    Root(Root),
}

/// Settings of root's keeper.
pub struct Root {
    /// The command's ids, as the host knows them.
    pub command: Owner,
    /// System directories, which are shown with their own owners: a map would reveal files that only root may
    /// read.
    pub unmapped: BTreeSet<PathBuf>,
    /// A user namespace whose map shows this owner's files as the command's.
    pub map: Box<dyn Fn(Owner) -> Result<OwnedFd>>,
    /// Maps created so far.
    pub maps: BTreeMap<Owner, OwnedFd>,
}

impl fmt::Debug for Root {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, unmapped, map: _, maps } = self;
        let mut out = out.debug_struct("Root");
        out.field("command", command).field("unmapped", unmapped).field("maps", maps);
        out.finish_non_exhaustive()
    }
}

const ROOT: Owner = Owner { uid: 0, gid: 0 };

impl CallerIdentity {
    /// Runs `what` with the command's rights.
    pub(crate) fn as_command<T>(&self, does: impl FnOnce() -> Result<T>) -> Result<T> {
        let Self::Root(root) = self else { return does() };
        act_as(root.command.uid, root.command.gid)?;
        let done = does();
        act_as(ROOT.uid, ROOT.gid)?;
        // Changing ids clears the parent-death signal.
        creds::set_pdeathsig(sig::SIGKILL)?;
        done
    }

    /// The id in the keeper's own user namespace.
    pub(crate) fn command_uid(&self) -> u32 {
        match self {
            Self::OrdinaryUser => rustix::process::geteuid().as_raw(),
            Self::Root(root) => root.command.uid,
        }
    }

    /// Shows a tree with its owner mapped to the command.
    pub(crate) fn take_owner(&mut self, mount: &OwnedFd, path: &Path, owner: Owner) -> Result<()> {
        let Self::Root(root) = self else { return Ok(()) };
        if root.unmapped.iter().any(|system| system.starts_with(path) || path.starts_with(system)) {
            return Ok(());
        }
        if !root.maps.contains_key(&owner) {
            let map = (root.map)(owner)?;
            root.maps.insert(owner, map);
        }
        let userns_fd = root.maps.get(&owner).map(|map| map.as_fd());
        let attr = MountAttr { userns_fd, ..MountAttr::default() };
        match mounts::mount_setattr(mount, Recursion::Recursive, &attr) {
            // A file system that cannot map ids, or is mapped already: the command then reads as another user,
            // which is less than it was granted, never more.
            Err(error) if matches!(error.errno, Errno::INVAL | Errno::PERM) => Ok(()),
            set => set,
        }
    }
}
