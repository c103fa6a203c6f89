//! What can go wrong with a control group, in words a person can act on.

use palisade_sys::SysError;
use std::path::PathBuf;

/// A group could not be made, set, read or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupError {
    /// The kernel declined.
    #[error("{doing}: {source}; {fix}")]
    Refused { doing: &'static str, source: SysError, fix: &'static str },
    /// What was written is not what stands.
    #[error("{} says {stands} after {asked} was written: the limit would not hold; waive it, or \
             ask for a value this kernel takes", path.display())]
    Looser { path: PathBuf, asked: String, stands: String },
    /// A limit without a file to write it to.
    #[error("{limit} cannot be limited: {why}; {fix}")]
    NoSuchLimit { limit: &'static str, why: String, fix: &'static str },
    #[error("cannot create a control group: {why}")]
    Nowhere { why: String },
    /// It would become the name of a directory and of a unit.
    #[error("{name:?} cannot name a control group; use letters, digits and hyphens")]
    Name { name: String },
    #[error("{}: not understood: {text:?}", path.display())]
    Unreadable { path: PathBuf, text: String },
    /// The user's service manager, on its way to making a scope.
    #[error(
        "asking the user's systemd for a scope: {step}: {why}; systemctl --user status shows \
             whether it runs"
    )]
    Systemd { step: &'static str, why: String },
}

/// What was being done when the kernel declined, and what to do about it.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, fix: &'static str) -> Result<T, CgroupError>;
}

impl<T> Doing<T> for Result<T, SysError> {
    fn doing(self, doing: &'static str, fix: &'static str) -> Result<T, CgroupError> {
        self.map_err(|source| CgroupError::Refused { doing, source, fix })
    }
}
