//! Kept states of a session's project: a file a command.

pub(crate) mod checkpoint;
pub(crate) mod fork;
pub(crate) mod list;
pub(crate) mod rollback;

use palisade_session::transaction::Checkpoint;
use serde::Serialize;

/// How a checkpoint is printed as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    #[serde(flatten)]
    checkpoint: &'a Checkpoint,
    is_on_disk: bool,
}

impl<'a> Listed<'a> {
    fn new(checkpoint: &'a Checkpoint) -> Self {
        Self { checkpoint, is_on_disk: checkpoint.is_on_disk() }
    }
}
