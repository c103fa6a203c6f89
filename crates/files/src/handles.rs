//! What a client has open. Bounded: a client that closes nothing gets `EMFILE`, and nobody else notices.

use crate::listing::Walk;
use crate::names::At as _;
use crate::protocol::{FileError, Handle};
use crate::watching::Watch;
use crate::writing::Writing;
use palisade_sys::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// At once.
const MAX_OPEN: usize = 64;

#[derive(Debug)]
pub(crate) enum Open {
    Reading(File),
    Writing(Writing),
    Walking(Walk),
    Watching(Watch),
}

#[derive(Debug, Default)]
pub(crate) struct Handles {
    open: BTreeMap<Handle, Open>,
    last: u32,
}

impl Handles {
    pub(crate) fn add(&mut self, open: Open, path: &Path) -> Result<Handle, FileError> {
        if self.open.len() >= MAX_OPEN {
            return Err(Errno::MFILE).at("open", path);
        }
        self.last = self.last.wrapping_add(1);
        let handle = Handle(self.last);
        self.open.insert(handle, open);
        Ok(handle)
    }

    pub(crate) fn get(&mut self, handle: Handle) -> Result<&mut Open, FileError> {
        self.open.get_mut(&handle).ok_or(Errno::BADF).at("use a handle", Path::new(""))
    }

    pub(crate) fn take(&mut self, handle: Handle) -> Result<Open, FileError> {
        self.open.remove(&handle).ok_or(Errno::BADF).at("use a handle", Path::new(""))
    }

    /// Each watch, with its handle.
    pub(crate) fn watches(&mut self) -> impl Iterator<Item = (Handle, &mut Watch)> {
        self.open.iter_mut().filter_map(|(handle, open)| match open {
            Open::Watching(watch) => Some((*handle, watch)),
            Open::Reading(_) | Open::Writing(_) | Open::Walking(_) => None,
        })
    }
}
