//! The input of a plan.

use crate::facts::{HostFacts, HostTree, LimitFacts};
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
    /// The files that the policy was read from, as named by the user.
    pub policy_files: &'a [PathBuf],
    /// Writable paths that a preset names, as the policy writes them. The user gave no option for those.
    pub preset_paths: &'a [String],
    /// The directory of ours that keeps the changes of a transaction, if there is one. Whoever carries the plan out makes it.
    pub layer: &'a Path,
    /// Called only if a limit is set.
    pub limits: &'a dyn Fn() -> LimitFacts,
}

/// What to do if a path that should be visible does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// The user has just typed it, so it is probably a typing error.
    IsAnError,
    /// A file names it for many directories and machines.
    IsNoted,
}
