//! Directories of ours that stand for directories of the host, and processes that list them. Where only the name was
//! granted to a process that entered one, the list is a question of its own, because an empty list would be wrong. Where a
//! grant covers one meanwhile, the list is that of the grant.

use crate::caller::Caller;
use crate::missing::{Missing, ScaffoldMounts};
use crate::path_call::PathCall;
use crate::{DIRECTORY, NO_MODE};
use palisade_gate::Wants;
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
pub(crate) struct StandIns {
    /// Entered by name.
    entered: HashSet<PathBuf>,
    /// Whether something was granted that may cover one.
    has_grants: bool,
}

impl StandIns {
    /// Something was put into the view.
    pub(crate) fn granted(&mut self) {
        self.has_grants = true;
    }

    /// A call may enter this directory now.
    pub(crate) fn entered(&mut self, path: &[u8], grounds: &ScaffoldMounts) {
        let path = Path::new(OsStr::from_bytes(path));
        let Ok(directory) = openat(CWD, path, DIRECTORY, NO_MODE) else { return };
        let own = grounds.path_of_own(&directory);
        if self.entered.len() < MAX_STAND_INS {
            self.entered.extend(own);
        }
    }

    /// The directory that a call would list, if it was entered by name or is covered.
    pub(crate) fn listed(
        &self,
        caller: &Caller,
        call: &PathCall,
        text: &[u8],
        grounds: &ScaffoldMounts,
    ) -> Option<Missing> {
        let is_any = self.has_grants || !self.entered.is_empty();
        if call.wants != LISTING || !is_any {
            return None;
        }
        let base = match text.starts_with(b"/") {
            true => None,
            false => Some(caller.directory(call.path.dir).ok()?),
        };
        let at = base.as_ref().map_or(CWD, |base| base.as_fd());
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(at, OsStr::from_bytes(text), DIRECTORY, NO_MODE, resolve).ok()?;
        let path = grounds.path_of_own(&directory)?;
        let is_covered = grounds.is_covered(&directory, &path);
        if !is_covered && !self.entered.contains(&path) {
            return None;
        }
        let path = path.into_os_string().into_vec();
        Some(Missing { existing: path.len(), path, is_covered })
    }

    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.entered.contains(Path::new(OsStr::from_bytes(path)))
    }
}
