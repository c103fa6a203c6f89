//! The filters of the sandbox's own processes once the command runs: what `resources/seccomp/init.txt`,
//! `broker.txt` and `keeper.txt` name, and death for anything else.

use crate::groups::{BROKER, Group, INIT, KEEPER, rules_of};
use crate::{Answer, Arch, BaselineOptions, FilterSpec};

/// For pid 1 of the sandbox.
pub fn init_spec(arch: Arch) -> FilterSpec {
    own_spec(INIT, arch)
}

/// For the process that answers the command's notified calls.
pub fn broker_spec(arch: Arch) -> FilterSpec {
    own_spec(BROKER, arch)
}

/// For the process that shows granted parts of the host's tree.
pub fn keeper_spec(arch: Arch) -> FilterSpec {
    own_spec(KEEPER, arch)
}

fn own_spec(groups: &[Group], arch: Arch) -> FilterSpec {
    let rules = rules_of(groups, &BaselineOptions::new(arch));
    FilterSpec::new(arch, Answer::KillProcess, rules)
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
