//! Resource limits and CPU masks of this process. See setrlimit(2), sched_setaffinity(2).
//! Must never confuse "no limit" with a large number.

use rustix::process::Rlimit;
use rustix::thread::CpuSet;

use crate::error::Result;

pub use rustix::process::Resource;

/// A soft and a hard limit; `None` is "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// The limits of this process.
pub fn get_rlimit(resource: Resource) -> ResourceLimit {
    let Rlimit { current, maximum } = rustix::process::getrlimit(resource);
    ResourceLimit { soft: current, hard: maximum }
}

/// Sets a limit of this process and its future children.
pub fn set_rlimit(resource: Resource, limit: ResourceLimit) -> Result<()> {
    rustix::process::setrlimit(resource, Rlimit { current: limit.soft, maximum: limit.hard })
        .map_err(|errno| crate::SysError::new("setrlimit", format!("{resource:?}"), errno))
}

/// Binds this process and its future children to these CPUs.
pub fn run_only_on(cpus: &[u32]) -> Result<()> {
    let failed = |errno| crate::SysError::new("sched_setaffinity", format!("{cpus:?}"), errno);
    let mut mask = CpuSet::new();
    for cpu in cpus {
        let number = *cpu as usize;
        if number >= CpuSet::MAX_CPU {
            return Err(failed(rustix::io::Errno::INVAL));
        }
        mask.set(number);
    }
    rustix::thread::sched_setaffinity(None, &mask).map_err(failed)
}

/// The CPUs that this process may run on, in order.
pub fn usable_cpus() -> Result<Vec<u32>> {
    let mask = rustix::thread::sched_getaffinity(None)
        .map_err(|errno| crate::SysError::new("sched_getaffinity", "", errno))?;
    let numbers = (0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu));
    Ok(numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}
