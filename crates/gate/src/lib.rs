//! Decides about paths that were not granted in advance. The result is the rule that applies, or that the user
//! must be asked.
//!
//! No I/O: callers pass real paths of the host, with symlinks resolved. It must never answer *allowed* without
//! a rule that allows the access.
#![forbid(unsafe_code)]

mod cache;
mod decider;
mod glob;
mod group;
mod index;
mod offer;
mod path_access;
mod pattern;
mod remote_mounts;
mod rule;

pub use decider::{Decider, Decision};
pub use glob::{Glob, GlobError, GlobPart};
pub use group::group;
pub use offer::{FileKind, PathContext, offer};
pub use path_access::{AccessReply, MAX_FIELD, MAX_PATH_BYTES, PathAccess, Wants};
pub use pattern::{Pattern, PatternError};
pub use remote_mounts::{OWN_FILESYSTEM, RemoteMounts};
pub use rule::{Access, Effect, Origin, Rule, Store};
