//! What the host would run later, as far as names and settings tell: the questions a broker asks
//! before it lets something be written.
//!
//! No I/O: paths and contents are handed in. Nothing is looked up, and nothing is decided beyond the
//! answer.
#![forbid(unsafe_code)]

mod config_location;
mod fold;
pub mod gitconfig;
mod gitconfig_values;
pub mod lists;
mod matcher;
mod names;
pub mod path_file;
mod pattern;

pub use fold::comparable;
pub use matcher::{Below, GuardedPath, Hit, MatchContext, Matcher};
pub use names::{HomeName, count, home_names};
pub use pattern::NamePattern;
