//! Judges by names and settings whether the host would later run what is written. The broker asks before it
//! allows a write.
//!
//! No I/O: callers pass paths and contents. This crate only answers; it must never look anything up or act on
//! the answer.
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
