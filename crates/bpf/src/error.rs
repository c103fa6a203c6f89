//! All errors in a filter or in the names requested for it.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    #[error("the filter has {length} instructions, the kernel takes at most 4096; use fewer rules")]
    TooLong { length: usize },
    #[error("a filter needs at least one instruction")]
    Empty,
    #[error("instruction {index} of the filter is not one the kernel takes: {problem}")]
    BadInstruction { index: usize, problem: &'static str },
    #[error("errno {errno} does not exist, the kernel takes 0 to 4095")]
    ErrnoTooLarge { errno: u16 },
    #[error("`{name}` must be performed by the broker, but the filter has no listener")]
    NobodyListens { name: String },
    #[error("`{name}` is not a system call{}", suggestion(*.nearest))]
    UnknownSyscall { name: String, nearest: Option<&'static str> },
    #[error("`{name}` cannot be allowed: {reason} (group {group}); take it off the list")]
    AlwaysRefused { name: String, group: &'static str, reason: &'static str },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
