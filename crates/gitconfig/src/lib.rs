//! Parses git configuration files as git does, and splits keys into their parts.
//!
//! No I/O: callers pass the contents. This crate does not follow includes and does not judge settings; that is
//! up to the callers.
#![forbid(unsafe_code)]

mod key;
mod parse;

pub use key::Parts;
pub use parse::{Bad, Entry, beginning_of, parse};
