//! Resource limits. See setrlimit(2).
//! Must never confuse "no limit" with a large number.

use rustix::process::Rlimit;

use crate::error::Result;

pub use rustix::process::Resource;

/// A soft and a hard limit; `None` is "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// Sets a limit of this process and of what it will start.
pub fn set_rlimit(resource: Resource, limit: Limit) -> Result<()> {
    rustix::process::setrlimit(resource, Rlimit { current: limit.soft, maximum: limit.hard })
        .map_err(|errno| crate::SysError::new("setrlimit", format!("{resource:?}"), errno))
}
