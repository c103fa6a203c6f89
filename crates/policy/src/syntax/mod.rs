//! Parses YAML and JSON into trees with positions. Knows nothing about policy keys.

pub(crate) mod outline;
pub(crate) mod tree;
