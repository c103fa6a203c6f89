//! Limits that the kernel holds for every process by itself (RES-2, PROC-2).

use crate::model::{Grace, Resource, Rlimit};
use palisade_policy::model::Policy;

/// Somebody who asks a run to end may want it to finish what it has in hand.
const AFTER_SIGNAL_MS: u64 = 10_000;
/// The time is over already.
const AFTER_TIMEOUT_MS: u64 = 2_000;

pub(crate) fn grace(policy: &Policy) -> Grace {
    let asked = policy.resources.grace;
    Grace {
        after_signal_ms: asked.unwrap_or(AFTER_SIGNAL_MS),
        after_timeout_ms: asked.unwrap_or(AFTER_TIMEOUT_MS),
    }
}

pub(crate) fn rlimits(policy: &Policy) -> Vec<Rlimit> {
    let mut limits = Vec::new();
    let mut limit = |resource, value: Option<u64>| {
        limits.extend(value.map(|value| Rlimit { resource, value }));
    };
    // A core file would carry the memory of the command into the project.
    limit(Resource::Core, (!policy.process.debug).then_some(0));
    limit(Resource::FileSize, policy.filesystem.max_file_size);
    limit(Resource::OpenFiles, policy.resources.max_file_descriptors);
    limit(Resource::Processes, processes(policy));
    limits
}

/// The kernel counts threads as processes, and with them what is ours in the user namespace: pid 1 and the
/// broker.
const OWN_PROCESSES: u64 = 2;

fn processes(policy: &Policy) -> Option<u64> {
    let asked = [policy.process.max_processes, policy.resources.max_threads];
    asked.into_iter().flatten().min().map(|count| count.saturating_add(OWN_PROCESSES))
}
