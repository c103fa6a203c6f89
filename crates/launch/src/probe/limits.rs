//! Facts about the host that limits depend on, read only if a limit is set.

use palisade_plan::facts::LimitFacts;

pub fn limit_facts() -> LimitFacts {
    LimitFacts {
        cgroups: palisade_cgroup::find(),
        // An empty set enforces no limit, and the plan says so.
        cpus: palisade_sys::proc::usable_cpus().unwrap_or_default(),
        spread: std::process::id() as usize,
    }
}
