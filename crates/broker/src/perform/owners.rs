//! Giving files to root, for a command that root started. Such a command has another id inside, and root's means nobody
//! there; but what it makes is root's on the host, where its files are root's. So `install -o root` and `chown root` of its
//! own files ask for what is so already, and are performed with the id that the command has.
//!
//! Nothing is gained by it: the broker has the command's id and no capability, and may give a file to nobody but its owner.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::duties::{CommandIdentity, Duties};
use crate::perform::object::open_object;
use crate::perform::{CallExecutor, Outcome, done};
use palisade_sys::Errno;
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROOT: u32 = 0;
/// `(uid_t) -1`: as it is.
const UNCHANGED: u32 = u32::MAX;

/// Who root is inside.
#[derive(Debug)]
pub(crate) struct RootOwner {
    uid: u32,
    gid: u32,
    trees_of_others: Vec<PathBuf>,
}

impl RootOwner {
    /// None where root did not start the run.
    pub(crate) fn of(duties: &Duties<'_>) -> Option<Arc<Self>> {
        let CommandIdentity::Given { uid, gid } = duties.identity else { return None };
        Some(Arc::new(Self { uid, gid, trees_of_others: duties.trees_of_others.clone() }))
    }
}

impl CallExecutor {
    pub(crate) fn change_owner(
        &self,
        caller: &Caller,
        path: PathArg,
        owner: [u32; 2],
        flags: u32,
    ) -> Outcome {
        if self.root_owner.is_none() || !owner.contains(&ROOT) {
            let call = Call::ChangeOwner { path, owner, flags };
            return self.changed_by_kernel(caller, call);
        }
        let file = self.named_object(caller, path, flags)?;
        let path = self.map.path_of(file.as_fd())?;
        self.give(caller, &file, &path, owner)
    }

    pub(crate) fn change_owner_of(&self, caller: &Caller, number: i32, owner: [u32; 2]) -> Outcome {
        let file = open_object(caller, number)?;
        let path = self.map.path_of(file.as_fd())?;
        self.give(caller, &file, &path, owner)
    }

    /// `path` is where the file stands, as the sandbox sees it.
    pub(crate) fn give(
        &self,
        caller: &Caller,
        file: &OwnedFd,
        path: &Path,
        [uid, gid]: [u32; 2],
    ) -> Outcome {
        let root = self.root_owner.as_deref();
        let is_of_others =
            |root: &RootOwner| root.trees_of_others.iter().any(|tree| path.starts_with(tree));
        if [uid, gid].contains(&ROOT) && root.is_some_and(is_of_others) {
            // Root is another one than its owner there.
            return Err(Errno::PERM.into());
        }
        let meant = |id, own: Option<u32>| match id {
            ROOT => Some(own.unwrap_or(ROOT)),
            UNCHANGED => None,
            id => Some(id),
        };
        let uid = meant(uid, root.map(|root| root.uid)).map(Uid::from_raw);
        let gid = meant(gid, root.map(|root| root.gid)).map(Gid::from_raw);
        caller.confirm()?;
        chownat(file, "", uid, gid, AtFlags::EMPTY_PATH)?;
        Ok(done())
    }
}
