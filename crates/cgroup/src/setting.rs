//! The common part of setting a limit in both versions. The kernel rounds values and has bounds, so every limit is read
//! back. Must never accept a limit that is looser than requested.

use crate::directory::Directory;
use crate::error::{CgroupError, Doing as _, Result};
use crate::find::host_swaps;
use crate::text::{cpu_list, cpus, number};

/// The kernel refills CPU quotas at this interval.
const PERIOD_US: u64 = 100_000;
/// The longest period that the kernel accepts, for shares that would be too small in a shorter one.
const LONG_PERIOD_US: u64 = 1_000_000;
/// The smallest quota that the kernel accepts.
const MIN_QUOTA_US: u64 = 1_000;
/// The largest value that the kernel accepts: there are no more process ids.
const MAX_TASKS: u64 = 4_194_304;
/// The kernel stores operations per second in 32 bits; all bits set means no limit.
const MAX_OPERATIONS: u64 = u32::MAX as u64 - 1;

pub(crate) const SETTING: &str = "setting a limit of a control group";
pub(crate) const WAIVE: &str = "ask for another value, or waive the limit";

/// Sets a limit that is one number.
pub(crate) fn set_number(directory: &Directory, name: &str, asked: u64) -> Result<()> {
    directory.write(name, &asked.to_string()).doing(SETTING, WAIVE)?;
    let stands = directory.read(name).doing(SETTING, WAIVE)?;
    match number(&stands) {
        Some(number) if number <= asked => Ok(()),
        _ => Err(looser(directory, name, &asked.to_string(), &stands)),
    }
}

pub(crate) fn looser(directory: &Directory, name: &str, asked: &str, stands: &str) -> CgroupError {
    let path = directory.path().join(name);
    CgroupError::Looser { path, asked: asked.to_owned(), stands: stands.trim().to_owned() }
}

/// A kernel that does not count swap is acceptable if the host has none.
pub(crate) fn no_swap_to_count(file: &str) -> Result<()> {
    if !host_swaps() {
        return Ok(());
    }
    Err(CgroupError::NoSuchLimit {
        limit: "swap",
        why: format!("this kernel has no {file}"),
        fix: "boot with swapaccount=1, or waive the limit (--waive-limit swap)",
    })
}

/// Quota and period, in microseconds.
pub(crate) fn quota(milli_cpus: u64) -> (u64, u64) {
    let of = |period: u64| milli_cpus.saturating_mul(period / 1000);
    match of(PERIOD_US) {
        quota if quota < MIN_QUOTA_US => (of(LONG_PERIOD_US), LONG_PERIOD_US),
        quota => (quota, PERIOD_US),
    }
}

pub(crate) fn most_tasks(asked: u64) -> u64 {
    asked.min(MAX_TASKS)
}

pub(crate) fn most_operations(asked: u64) -> u64 {
    asked.min(MAX_OPERATIONS)
}

/// v1 takes 0 for no limit, and v2 refuses it.
pub(crate) fn refuse_no_io(bandwidth: Option<u64>, iops: Option<u64>) -> Result<()> {
    if bandwidth == Some(0) || iops == Some(0) {
        return Err(CgroupError::NoSuchLimit {
            limit: "reading and writing",
            why: "0 a second is less than the kernel takes".to_owned(),
            fix: "ask for 1 or more",
        });
    }
    Ok(())
}

pub(crate) fn check_cpus(directory: &Directory, name: &str, asked: &[u32]) -> Result<()> {
    let stands = directory.read(name).doing(SETTING, WAIVE)?;
    match cpus(&stands) {
        Some(cpus) if !cpus.is_empty() && cpus.iter().all(|cpu| asked.contains(cpu)) => Ok(()),
        _ => Err(looser(directory, name, &cpu_list(asked), &stands)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_below_the_least_quota_get_a_longer_period() {
        assert_eq!(quota(1500), (150_000, 100_000));
        assert_eq!(quota(10), (1_000, 100_000));
        assert_eq!(quota(9), (9_000, 1_000_000));
        assert_eq!(quota(1), (1_000, 1_000_000));
    }
}
