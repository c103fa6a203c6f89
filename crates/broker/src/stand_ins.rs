//! Directories of the host that a process entered while only their names were granted. An empty directory of ours
//! stands for each; to list it is a question of its own, because an empty list would be wrong.

use crate::caller::Caller;
use crate::missing::{Missing, ScaffoldMounts};
use crate::path_access::Wants;
use crate::path_call::PathCall;
use crate::{DIRECTORY, NO_MODE};
use rustix::fs::{CWD, ResolveFlags, openat, openat2};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// opendir(3).
pub(crate) const LISTING: Wants = Wants::Open { directory: true, path_only: false };
/// A program that enters more is not asked about listings.
const MAX_STAND_INS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct StandIns(HashSet<PathBuf>);

impl StandIns {
    /// A call may enter this directory now.
    pub(crate) fn entered(&mut self, path: &[u8], grounds: &ScaffoldMounts) {
        let path = Path::new(OsStr::from_bytes(path));
        let Ok(directory) = openat(CWD, path, DIRECTORY, NO_MODE) else { return };
        let own = grounds.path_of_own(&directory);
        if self.0.len() < MAX_STAND_INS {
            self.0.extend(own);
        }
    }

    /// The directory that a call would list, if it is one of these.
    pub(crate) fn listed(
        &self,
        caller: &Caller,
        call: &PathCall,
        text: &[u8],
        grounds: &ScaffoldMounts,
    ) -> Option<Missing> {
        if self.0.is_empty() || call.wants != LISTING {
            return None;
        }
        let base = match text.starts_with(b"/") {
            true => None,
            false => Some(caller.directory(call.path.dir).ok()?),
        };
        let at = base.as_ref().map_or(CWD, |base| base.as_fd());
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(at, OsStr::from_bytes(text), DIRECTORY, NO_MODE, resolve).ok()?;
        let path = grounds.path_of_own(&directory).filter(|path| self.0.contains(path))?;
        let path = path.into_os_string().into_vec();
        Some(Missing { existing: path.len(), path, is_covered: false })
    }

    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.0.contains(Path::new(OsStr::from_bytes(path)))
    }
}
