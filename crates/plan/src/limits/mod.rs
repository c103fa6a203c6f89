//! Decides what enforces each limit of a policy (RES-1, RES-2, PROC-2, FS-6).
//!
//! Every limit has one mechanism that enforces it, or there is no plan: no limit goes unenforced unless the
//! user waived it.

mod assign;
mod overshoot;
mod space;

pub(crate) use assign::{Assigned, Enforcers, assign};
pub(crate) use space::{Room, room, scratch};

use crate::limit::LimitKind;
use crate::model::Grace;
use palisade_policy::model::Policy;

/// After a signal the command may finish what it is doing.
const AFTER_SIGNAL_MS: u64 = 10_000;
/// The time limit is already exceeded.
const AFTER_TIMEOUT_MS: u64 = 2_000;

pub(crate) fn grace(policy: &Policy) -> Grace {
    let asked = policy.resources.grace;
    Grace {
        after_signal_ms: asked.unwrap_or(AFTER_SIGNAL_MS),
        after_timeout_ms: asked.unwrap_or(AFTER_TIMEOUT_MS),
    }
}

/// Whether the user waived this limit.
fn is_waived(policy: &Policy, what: LimitKind) -> bool {
    policy.resources.waived.iter().any(|name| name == what.name())
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
