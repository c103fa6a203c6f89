//! The filters of the sandbox's own processes once the command runs: what `resources/seccomp/init.txt`
//! and `broker.txt` name, and death for anything else.

use crate::groups::{BROKER, Group, INIT, rules_of};
use crate::{Answer, Arch, BaselineOptions, FilterSpec};

/// For pid 1 of the sandbox.
pub fn init_spec(arch: Arch) -> FilterSpec {
    own_spec(INIT, arch)
}

/// For the process that answers the command's notified calls.
pub fn broker_spec(arch: Arch) -> FilterSpec {
    own_spec(BROKER, arch)
}

fn own_spec(groups: &[Group], arch: Arch) -> FilterSpec {
    let rules = rules_of(groups, &BaselineOptions::new(arch));
    FilterSpec::new(arch, Answer::KillProcess, rules)
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
