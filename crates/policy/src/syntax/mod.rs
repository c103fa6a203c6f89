//! Text into trees with positions, and back: YAML and JSON. What a key means is not known here.

pub(crate) mod outline;
pub(crate) mod tree;
