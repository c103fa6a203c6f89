//! The names in a directory of ours that keeps what a command writes above files of the host: in a transaction, and to
//! caches.

/// Where the kernel puts what is written; without an overlay, the copy that a command works in.
pub const UPPER: &str = "upper";
/// The kernel's own directory beside it, which nobody may read.
pub const WORK: &str = "work";
