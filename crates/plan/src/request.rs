//! The input of a plan.

use crate::facts::{HostFacts, HostTree, LimitFacts};
use palisade_policy::model::Policy;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a plan is asked for.
#[expect(missing_debug_implementations, reason = "the tree is a trait object")]
pub struct PlanRequest<'a> {
    pub policy: &'a Policy,
    pub facts: &'a HostFacts,
    pub tree: &'a dyn HostTree,
    pub command: Vec<OsString>,
    pub session: String,
    pub missing: IfMissing,
    /// The files that the policy was read from, as they were named.
    pub policy_files: &'a [PathBuf],
    /// Writable paths that a preset names, as the policy writes them: nobody typed an option for those.
    pub preset_paths: &'a [String],
    /// Asked where a limit is.
    pub limits: &'a dyn Fn() -> LimitFacts,
}

/// What a path to be shown means if it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// Somebody typed it just now, and mistyped it.
    IsAnError,
    /// A file names it for many directories and machines.
    IsNoted,
}
