//! Shows changes: as git prints them, so that people and programs read them without learning anything.
//!
//! Names are quoted as git does it. Contents are a session's, too: with [`RenderOptions::to_terminal`], nothing in them
//! reaches the terminal as a control character.

mod names;
mod stat;
mod unified;
mod visible;

pub use crate::paths::quoted;
pub use names::{write_name_status, write_names};
pub use stat::write_stat;
pub use unified::{write_hunk, write_unified};

/// How changes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    pub colour: bool,
    /// Makes control characters of contents visible.
    pub to_terminal: bool,
}

#[cfg(test)]
#[path = "render/render_tests.rs"]
mod tests;
