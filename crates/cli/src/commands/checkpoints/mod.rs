//! Kept states of a session's project: a file a command.

pub(crate) mod checkpoint;
pub(crate) mod fork;
pub(crate) mod list;
pub(crate) mod rollback;
