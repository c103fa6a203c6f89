//! Directories of ours for what a command writes above files of the host: in a transaction, and to caches.

use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
pub(crate) use palisade_plan::kept_layer::{UPPER, WORK};
use palisade_plan::model::Owner;
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use std::path::Path;

/// All belong to who owns what lies below: through the sandbox's id map nobody else could make a file there.
pub(crate) fn make_layer(layer: &Path, owner: Option<Owner>) -> Result<()> {
    let upper = layer.join(UPPER);
    make_private_dir(&upper)?;
    let Some(Owner { uid, gid }) = owner else { return Ok(()) };
    for directory in [layer, &upper, &layer.join(WORK)] {
        match rustix::fs::chown(directory, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
            // The kernel's is there only where an earlier run left it.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(SessionError::io("chown", directory, errno.into())),
        }
    }
    Ok(())
}
