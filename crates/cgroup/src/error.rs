//! Errors of control groups, in terms a person can act on.

use palisade_sys::SysError;
use std::path::PathBuf;

pub(crate) type Result<T, E = CgroupError> = std::result::Result<T, E>;

/// A group could not be created, configured, read or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupError {
    /// The kernel refused.
    #[error("{doing}: {source}; {fix}")]
    Refused { doing: &'static str, source: SysError, fix: &'static str },
    /// The kernel did not set the value that was written.
    #[error("{} says {stands} after {asked} was written: the limit would not hold; waive it, or \
             ask for a value this kernel takes", path.display())]
    Looser { path: PathBuf, asked: String, stands: String },
    /// There is no file for this limit.
    #[error("{limit} cannot be limited: {why}; {fix}")]
    NoSuchLimit { limit: &'static str, why: String, fix: &'static str },
    #[error("cannot create a control group: {why}")]
    Nowhere { why: String },
    /// The name would become that of a directory and of a unit.
    #[error("{name:?} cannot name a control group; use letters, digits and hyphens")]
    Name { name: String },
    #[error("{}: not understood: {text:?}", path.display())]
    Unreadable { path: PathBuf, text: String },
    /// The user's service manager failed to create a scope.
    #[error(
        "asking the user's systemd for a scope: {step}: {why}; systemctl --user status shows \
             whether it runs"
    )]
    Systemd { step: &'static str, why: String },
}

/// Adds the action that the kernel refused, and how to fix it.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, fix: &'static str) -> Result<T>;
}

impl<T> Doing<T> for Result<T, SysError> {
    fn doing(self, doing: &'static str, fix: &'static str) -> Result<T> {
        self.map_err(|source| CgroupError::Refused { doing, source, fix })
    }
}
