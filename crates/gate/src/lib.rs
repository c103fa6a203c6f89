//! The decider of the gate: rules in, and for a path that was not granted beforehand either the rule
//! that decides or the word that a person has to be asked.
//!
//! No I/O: paths are handed in as they really are on the host, links resolved. It must never answer
//! *allowed* without a rule that says so.
#![forbid(unsafe_code)]

mod cache;
mod decider;
mod glob;
mod group;
mod index;
mod offer;
mod pattern;
mod rule;

pub use decider::{Decider, Decision};
pub use glob::{Glob, GlobError, GlobPart};
pub use group::group;
pub use offer::{FileKind, PathContext, offer};
pub use pattern::{Pattern, PatternError};
pub use rule::{Access, Effect, Origin, Rule, Store};
