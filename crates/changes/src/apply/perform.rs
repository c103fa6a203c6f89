//! Carries out the operations of a journal: forward, or, when one of them fails, backward.

use super::faults::Faults;
use super::journal::{ABORT, DONE};
use super::operations::{Ground, Operation};
use super::workspace::Workspace;
use crate::error::{ChangesError, Result};
use crate::layers::Layers;

#[derive(Debug)]
pub(super) struct Transaction<'t> {
    layers: &'t Layers,
    workspace: &'t Workspace<'t>,
    operations: Vec<Operation>,
}

/// How a transaction that was carried out ended.
#[derive(Debug)]
pub(super) enum Ending {
    Committed,
    /// Everything is as it was before.
    Undone(ChangesError),
}

impl<'t> Transaction<'t> {
    pub(super) fn new(
        layers: &'t Layers,
        workspace: &'t Workspace<'t>,
        operations: Vec<Operation>,
    ) -> Self {
        Self { layers, workspace, operations }
    }

    pub(super) fn run(mut self, faults: &mut dyn Faults) -> Result<()> {
        let operations = std::mem::take(&mut self.operations);
        self.operations = match self.workspace.commit_to(operations, faults) {
            Ok(operations) => operations,
            Err(error) => return Err(self.workspace.give_up(error)),
        };
        match self.finish(faults)? {
            Ending::Committed => Ok(()),
            Ending::Undone(error) => Err(error),
        }
    }

    /// From the journal to the end. Also after a crash.
    pub(super) fn finish(&self, faults: &mut dyn Faults) -> Result<Ending> {
        match self.perform(faults) {
            Ok(()) => {}
            Err(error @ ChangesError::Stopped { .. }) => return Err(error),
            Err(error) => {
                self.workspace.turn_into(ABORT, faults)?;
                self.undo(faults)?;
                return Ok(Ending::Undone(error));
            }
        }
        self.workspace.turn_into(DONE, faults)?;
        self.clean(faults)?;
        Ok(Ending::Committed)
    }

    fn perform(&self, faults: &mut dyn Faults) -> Result<()> {
        let ground = self.ground();
        for operation in &self.operations {
            faults.step()?;
            ground.perform(operation)?;
        }
        self.workspace.sync(faults)
    }

    pub(super) fn undo(&self, faults: &mut dyn Faults) -> Result<()> {
        let ground = self.ground();
        for operation in self.operations.iter().rev() {
            faults.step()?;
            ground.undo(operation)?;
        }
        self.workspace.sync(faults)?;
        self.workspace.clean(faults)
    }

    pub(super) fn clean(&self, faults: &mut dyn Faults) -> Result<()> {
        let ground = self.ground();
        for operation in &self.operations {
            ground.remove_leftover(operation)?;
        }
        self.workspace.clean(faults)
    }

    fn ground(&self) -> Ground<'_> {
        Ground { layers: self.layers, stage: self.workspace.stage() }
    }
}
