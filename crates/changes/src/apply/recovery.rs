//! After a crash: finishes an apply that was decided, and removes one that was not.

use super::faults::{Faults, NoFaults};
use super::journal::{ABORT, DONE};
use super::perform::{Ending, Transaction};
use super::workspace::{Resumed, Workspace};
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
    let (record, operations) = match workspace.resume()? {
        Resumed::Nothing => {
            workspace.clean(faults)?;
            workspace.sweep()?;
            return Ok(Recovery::Nothing);
        }
        Resumed::Begun => {
            workspace.clean(faults)?;
            return Ok(Recovery::Undone);
        }
        Resumed::Decided { record, operations } => (record, operations),
    };
    let has_stage = workspace.has_stage();
    let transaction = Transaction::new(layers, &workspace, operations);
    match record {
        DONE => {
            transaction.clean(faults)?;
            Ok(Recovery::Finished)
        }
        // The stage goes after everything was undone.
        ABORT if has_stage => {
            transaction.undo(faults)?;
            Ok(Recovery::Undone)
        }
        ABORT => {
            workspace.clean(faults)?;
            Ok(Recovery::Undone)
        }
        _ => match transaction.finish(faults)? {
            Ending::Committed => Ok(Recovery::Finished),
            Ending::Undone(_) => Ok(Recovery::Undone),
        },
    }
}
