//! What limits depend on: looked at only where one is asked for.

use palisade_plan::facts::LimitFacts;

pub fn limit_facts() -> LimitFacts {
    LimitFacts {
        cgroups: palisade_cgroup::find(),
        // None to choose from holds no limit, and says so.
        cpus: palisade_sys::proc::usable_cpus().unwrap_or_default(),
        spread: std::process::id() as usize,
    }
}
