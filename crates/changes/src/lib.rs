//! The upper layers of overlays, as data: what a session changed (`scan`), how it reads (`render`), how it comes to the
//! host (`apply`, with a journal that survives a crash), how it goes away (`discard`), and how earlier states of it are kept
//! (`layer_copy`), compared (`compare`) and brought back (`restore`). Where there is no overlay, a copy of the project
//! (`project_copy`) is read as if it were one (`copy_record`).
//!
//! A hostile session wrote the upper layers. So every name, link, mode and attribute in them is hostile: nothing is
//! followed, everything is opened below two roots by descriptor (openat2(2)), and nothing reaches a terminal or the host
//! as it is. This crate never mounts anything and never starts a process.
#![forbid(unsafe_code)]

mod apply;
mod attributes;
mod bytes_path;
mod changeset;
mod compare;
mod contents;
mod copy_record;
mod difference;
mod discard;
mod entry;
mod error;
mod file_copy;
mod fold;
mod git;
mod hard_links;
mod hunks;
mod judge;
mod layer_copy;
mod layers;
mod listing;
mod merge;
mod merged_tree;
mod objection;
mod paths;
mod project_copy;
mod python;
mod readable;
mod renames;
mod render;
mod restore;
mod scan;
mod selection;

pub use apply::{
    Applied, ApplyRequest, BaseContents, Baseline, Conflict, ConflictReason, Held, Installed,
    OnConflict, OnRefused, Outcome, Recovery, Refused, RefusedReason, Source, apply, preview,
    recover,
};
pub use changeset::{Change, ChangeKind, ChangeSet, Rename};
pub use compare::compare;
pub use copy_record::CopyRecord;
pub use discard::discard;
#[cfg(feature = "layers-off")]
pub use entry::UNREVIEWED;
pub use entry::{Entry, EntryKind, Timestamp};
pub use error::{ChangesError, Result};
pub use fold::{Below, fold};
pub use hunks::{ChosenHunks, FileHunks, Hunk, HunkLine, hunks};
pub use judge::{Coming, GuardJudge, Judge, NoJudge};
pub use layer_copy::{CopiedLayer, CopyThreads, copy_layer, look_like};
pub use layers::Layers;
pub use merged_tree::MergedTree;
pub use objection::{Objection, Verdict};
pub use project_copy::{CopyLimits, ProjectCopy, copy_project};
pub use render::{
    RenderOptions, quoted, write_hunk, write_name_status, write_names, write_stat, write_unified,
};
pub use restore::Restoration;
pub use scan::scan;
pub use selection::Selection;

#[cfg(test)]
mod test_edits;
#[cfg(test)]
mod test_overlay;
