//! The input of a plan.

use crate::facts::{HostFacts, HostTree, LimitFacts};
use crate::listed_view::ListedView;
use crate::model::Located;
use palisade_policy::model::Policy;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[expect(missing_debug_implementations, reason = "the tree is a trait object")]
pub struct PlanRequest<'a> {
    pub policy: &'a Policy,
    pub facts: &'a HostFacts,
    pub tree: &'a dyn HostTree,
    pub command: Vec<OsString>,
    pub session: String,
    pub missing: IfMissing,
    /// The project, if the policy was read from it: the plan must grant the same one. Otherwise it is looked for.
    pub project: Option<&'a Located>,
    /// The files that the policy was read from, as named by the user.
    pub policy_files: &'a [PathBuf],
    /// Writable paths that a preset names, as the policy writes them. The user gave no option for those.
    pub preset_paths: &'a [String],
    /// The directory of ours that keeps the changes of a transaction, if there is one. Whoever carries the plan out makes it.
    pub layer: &'a Path,
    /// The caches of a project's sandboxes, by the project's root. Called only if the view has any.
    pub caches: &'a dyn Fn(&Path) -> CacheStore,
    /// The view, entry by entry, if the policy's is [`palisade_policy::model::View::Listed`].
    pub listed: Option<&'a ListedView>,
    /// Called only if a limit is set.
    pub limits: &'a dyn Fn() -> LimitFacts,
}

/// Where a project's sandboxes keep what they write to caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheStore {
    /// For what this run writes. Whoever carries the plan out makes it.
    pub top: PathBuf,
    /// What earlier runs left, the newest first.
    pub finished: Vec<FinishedLayer>,
}

/// What one earlier run, or several, wrote to caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedLayer {
    pub directory: PathBuf,
    /// The names in it, see [`crate::layer_name`].
    pub stacks: Vec<OsString>,
}

/// What to do if a path that should be visible does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// The user has just typed it, so it is probably a typing error.
    IsAnError,
    /// A file names it for many directories and machines.
    IsNoted,
}
