//! Brings changes to the host, all of them or none.
//!
//! ```text
//! review    selection, conflicts, refusals                            nothing is written
//! stage     copies in a private directory, syncfs                     a crash leaves garbage, which `recover` removes
//! journal   the operations, fsync                                     from here on, `recover` finishes
//! perform   rename each into place, deletions, permissions, syncfs    any error undoes everything
//! commit    a record, fsync; then the staged leftovers are removed
//! ```
//!
//! The journal is in a directory of ours that no session can write: a journal says which files of the host are moved. The
//! staged copies are beside it if that is on the project's mount, and otherwise in the project's root.

mod baseline;
mod conflicts;
mod faults;
mod journal;
mod operations;
mod outcome;
mod perform;
mod plan;
mod recovery;
mod request;
mod review;
mod staging;
mod workspace;

pub use baseline::{Baseline, Installed};
pub use outcome::{Applied, Conflict, ConflictReason, Held, Outcome, Refused, RefusedReason};
pub use recovery::{Recovery, recover};
pub use request::{ApplyRequest, BaseContents, OnConflict, OnRefused, Source};

use crate::error::Result;
use crate::merged_tree::MergedTree;
use crate::scan::scan;
use faults::{Faults, NoFaults};
use perform::Transaction;
use plan::Planned;
use review::{Reviewed, review};
use workspace::Workspace;

/// What stands in the way of an apply, without applying anything.
pub fn preview(request: &ApplyRequest<'_>) -> Result<Held> {
    let set = scan(request.layers)?;
    let reviewed = review(request, &set, &MergedTree::new(request.layers))?;
    Ok(Held { refused: reviewed.refused, conflicts: reviewed.conflicts })
}

/// Applies the selected changes, or says what stands in the way.
pub fn apply(request: &ApplyRequest<'_>) -> Result<Outcome> {
    apply_with(request, &mut NoFaults)
}

fn apply_with(request: &ApplyRequest<'_>, faults: &mut dyn Faults) -> Result<Outcome> {
    let mut workspace = Workspace::lock(request.layers, request.state)?;
    workspace.require_none_interrupted()?;
    let reviewed_at = workspace.now()?;
    let set = scan(request.layers)?;
    let reviewed = review(request, &set, &MergedTree::new(request.layers))?;
    let is_held = !reviewed.conflicts.is_empty()
        || (request.on_refused == OnRefused::ApplyNothing && !reviewed.refused.is_empty());
    if is_held {
        let (refused, conflicts) = (reviewed.refused, reviewed.conflicts);
        return Ok(Outcome::Held(Held { refused, conflicts }));
    }
    if !reviewed.accepted.is_empty() {
        workspace.begin(faults)?;
        let planned = Planned::stage(request, &workspace, &set, &reviewed, reviewed_at, faults);
        let operations = match planned {
            Ok(planned) => planned.operations,
            Err(error) => return Err(workspace.give_up(error)),
        };
        Transaction::new(request.layers, &workspace, operations).run(faults)?;
    }
    let paths: Vec<_> = reviewed
        .accepted
        .keys()
        .map(|number| (set.changes[*number].path.clone(), set.changes[*number].kind))
        .collect();
    // A session whose layers were moved has ended and applies nothing more.
    let baseline = match request.source {
        Source::Copy => request.baseline.after(request.layers, &paths),
        Source::Move => request.baseline.clone(),
    };
    let Reviewed { refused, kept, merged, .. } = reviewed;
    Ok(Outcome::Applied(Applied { paths, refused, kept, merged, baseline }))
}

#[cfg(test)]
#[path = "apply/crash_tests.rs"]
mod crash_tests;
#[cfg(test)]
#[path = "apply/hostile_tests.rs"]
mod hostile_tests;
#[cfg(test)]
#[path = "apply/property_tests.rs"]
mod property_tests;
#[cfg(test)]
#[path = "apply_tests.rs"]
pub(crate) mod tests;
