//! The filter of the sandbox's own pid 1 once the command runs: what `resources/seccomp/init.txt`
//! names, and death for anything else.

use crate::groups::{INIT, rules_of};
use crate::{Action, Arch, BaselineOptions, FilterSpec};

pub fn init_spec(arch: Arch) -> FilterSpec {
    let rules = rules_of(INIT, &BaselineOptions::new(arch));
    FilterSpec { arch, default: Action::KillProcess, rules }
}

#[cfg(test)]
#[path = "init_tests.rs"]
mod tests;
