//! Removing names. Only where something was granted while the run goes on is it done here: in the trees that the plan has
//! made writable, and in our own scaffolding, Landlock lets the command remove whatever it may, so the kernel answers.

use crate::call::PathArg;
use crate::caller::Caller;
use crate::perform::{CallExecutor, Outcome, Stop, done, ours};
use crate::place::{ResolvedParent, Start};
use crate::replacing::stands_on_a_mount_of_its_own;
use palisade_sys::Errno;
use rustix::fs::{AtFlags, unlinkat};
use std::os::fd::AsFd as _;

impl CallExecutor {
    pub(crate) fn remove(&mut self, caller: &Caller, path: PathArg, flags: u32) -> Outcome {
        let flags = AtFlags::from_bits_retain(flags);
        if !AtFlags::REMOVEDIR.contains(flags) {
            // The kernel says so before it looks at the path.
            return Err(Errno::INVAL.into());
        }
        let bytes = caller.path(path.address)?;
        // As do_rmdir() and do_unlinkat() have it.
        match (bytes.rsplit(|byte| *byte == b'/').find(|name| !name.is_empty()), flags) {
            (Some(b"."), AtFlags::REMOVEDIR) => return Err(Errno::INVAL.into()),
            (Some(b".."), AtFlags::REMOVEDIR) => return Err(Errno::NOTEMPTY.into()),
            (Some(b"." | b".."), _) => return Err(Errno::ISDIR.into()),
            (_, flags) if bytes.ends_with(b"/") && flags.is_empty() => {
                return Err(Errno::NOTDIR.into());
            }
            _ => {}
        }
        let place = ours(self.map.locate(Start::Caller(caller, path.dir), &bytes)?)?;
        match place.tree {
            Some(_) if !place.is_granted() => return Err(Stop::Continue),
            Some(_) => {}
            None if !crate::exists::exists(place.parent.as_fd(), &place.name) => {
                return Err(match self.asks_first {
                    true => Stop::Unseen(Box::new(place)),
                    false => Errno::NOENT.into(),
                });
            }
            None if stands_on_a_mount_of_its_own(&place) => {
                // To be asked about; a grant is for reading unless it says otherwise.
                return Err(if self.asks_first { Errno::BUSY } else { Errno::ROFS }.into());
            }
            None => return Err(Stop::Continue),
        }
        self.remove_at(caller, &place, flags)
    }

    /// Removes what stands in a place, as the caller itself would.
    pub(crate) fn remove_at(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        flags: AtFlags,
    ) -> Outcome {
        if self.operations.is_some() {
            self.judged_paths.push(place.path.clone());
        }
        caller.confirm()?;
        unlinkat(&place.parent, &*place.name_as_written(), flags)?;
        Ok(done())
    }
}
