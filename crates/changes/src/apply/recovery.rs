//! After a crash: finishes an apply that was decided, and removes one that was not.

use super::faults::{Faults, NoFaults};
use super::journal::{self, ABORT, DONE};
use super::perform::{Ending, Transaction};
use super::workspace::Workspace;
use crate::error::Result;
use crate::layers::Layers;
use std::os::fd::BorrowedFd;

/// What became of an interrupted apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// There was none.
    Nothing,
    /// All of its changes are on the host.
    Finished,
    /// None of them is.
    Undone,
}

/// Recovers the apply whose journal is in `state`. `layers` are those that it worked with. Can be repeated, also if it was
/// interrupted itself.
pub fn recover(layers: &Layers, state: BorrowedFd<'_>) -> Result<Recovery> {
    recover_with(layers, state, &mut NoFaults)
}

pub(super) fn recover_with(
    layers: &Layers,
    state: BorrowedFd<'_>,
    faults: &mut dyn Faults,
) -> Result<Recovery> {
    let mut workspace = Workspace::lock(layers, state)?;
    let has_begun = workspace.resume()?;
    let (is_done, is_aborted) = (workspace.is_marked(DONE)?, workspace.is_marked(ABORT)?);
    let operations = journal::read_operations(workspace.state())?;
    let has_stage = workspace.has_stage();
    let Some(operations) = operations else {
        workspace.clean(faults)?;
        return Ok(match (has_begun, is_done, is_aborted) {
            (_, true, _) => Recovery::Finished,
            (true, ..) | (_, _, true) => Recovery::Undone,
            (false, false, false) => Recovery::Nothing,
        });
    };
    let transaction = Transaction::new(layers, &workspace, operations);
    if is_done {
        transaction.clean(faults)?;
        return Ok(Recovery::Finished);
    }
    if is_aborted {
        // The stage goes after everything was undone.
        if has_stage {
            transaction.undo(faults)?;
        } else {
            workspace.clean(faults)?;
        }
        return Ok(Recovery::Undone);
    }
    Ok(match transaction.finish(faults)? {
        Ending::Committed => Recovery::Finished,
        Ending::Undone(_) => Recovery::Undone,
    })
}
