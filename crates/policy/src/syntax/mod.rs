//! Parses text into trees with positions, and back: YAML and JSON. Knows no keys.

pub(crate) mod outline;
pub(crate) mod tree;
