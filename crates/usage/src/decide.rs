//! Decides when to look next, and whether a limit is exceeded. Pure, so that every case is a unit test. A look costs
//! time; the pause follows from how fast the rest of a limit could be used up. Must never treat "could not be counted"
//! as "within the limit".

use std::time::Duration;

/// The minimum interval between two looks.
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// The maximum interval for CPU time.
const MAX_CPU_INTERVAL: Duration = Duration::from_millis(250);

/// The maximum interval for memory.
const MAX_MEMORY_INTERVAL: Duration = Duration::from_millis(100);

/// If nothing changes, the interval for memory grows up to this: hundreds of waiting runs must not keep the machine
/// busy.
const MAX_IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// How fast processes can fill memory at most: the kernel has to clear every page first.
const FILL_BYTES_PER_SECOND: u64 = 5_000_000_000;

/// Looks may take at most one part in this of a core ...
const COST_FACTOR: u32 = 50;

/// ... unless a look is so expensive that the pause would exceed this.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The limits that are enforced by polling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Memory and swap together.
    pub memory: Option<u64>,
    /// CPU time of all processes, user and system.
    pub cpu_time: Option<Duration>,
    /// CPUs the tree may run on; 0 counts as 1.
    pub cpus: u32,
}

/// The result of one look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Memory in use.
    pub memory_bytes: u64,
    /// Memory that may turn out to be in use: a reason to look again soon, not to stop anything.
    pub doubtful_bytes: u64,
    /// CPU time so far.
    pub cpu_time: Duration,
    /// The look did not reach all processes.
    pub was_cut: bool,
    /// The number of consecutive looks, up to this one, without a change.
    pub idle_looks: u32,
}

/// The conclusion from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageVerdict {
    /// Look again after this time; `None` if no limit is enforced by polling.
    Within(Option<Duration>),
    /// A limit is exceeded, or can no longer be enforced.
    Over(Exceeded),
}

/// The exceeded limit and the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// Memory and swap.
    Memory {
        /// In use at that time.
        used: u64,
        limit: u64,
    },
    /// CPU time.
    CpuTime {
        /// Used up to that time.
        used: Duration,
        limit: Duration,
    },
    /// More processes than can be counted: no limit could be enforced any longer.
    Uncountable,
}

/// Judges one look that took `cost` of CPU time ([`crate::Effort`]). Usage equal to a limit is within it.
pub fn decide(bounds: &Bounds, seen: &Observation, cost: Duration) -> UsageVerdict {
    if bounds.memory.is_none() && bounds.cpu_time.is_none() {
        return UsageVerdict::Within(None);
    }
    if let Some(limit) = bounds.memory
        && seen.memory_bytes > limit
    {
        return UsageVerdict::Over(Exceeded::Memory { used: seen.memory_bytes, limit });
    }
    if let Some(limit) = bounds.cpu_time
        && seen.cpu_time > limit
    {
        return UsageVerdict::Over(Exceeded::CpuTime { used: seen.cpu_time, limit });
    }
    if seen.was_cut {
        return UsageVerdict::Over(Exceeded::Uncountable);
    }
    let for_memory = bounds.memory.map(|limit| {
        let rest = limit.saturating_sub(seen.memory_bytes).saturating_sub(seen.doubtful_bytes);
        let busy = time_to_fill(rest).clamp(MIN_INTERVAL, MAX_MEMORY_INTERVAL);
        let factor = 2_u32.saturating_pow(seen.idle_looks);
        busy.saturating_mul(factor).min(MAX_IDLE_INTERVAL).max(busy)
    });
    let for_cpu = bounds.cpu_time.map(|limit| {
        let rest = limit.saturating_sub(seen.cpu_time);
        (rest / bounds.cpus.max(1)).clamp(MIN_INTERVAL, MAX_CPU_INTERVAL)
    });
    let wanted = for_memory.into_iter().chain(for_cpu).min();
    let affordable = cost.saturating_mul(COST_FACTOR).min(MAX_PAUSE);
    UsageVerdict::Within(wanted.map(|wanted| wanted.max(affordable)))
}

fn time_to_fill(bytes: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(FILL_BYTES_PER_SECOND);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
