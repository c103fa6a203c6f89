//! Filters of our own processes once the command runs: `resources/seccomp/init.txt`, `broker.txt`,
//! `keeper.txt`, `egress.txt` and `maker.txt` list what they may call, and anything else kills the process. The
//! standalone proxy (`proxy.txt`) gets an error instead.

use crate::groups::{BROKER, EGRESS, Group, INIT, KEEPER, MAKER, PROXY, rules_of};
use crate::{Arch, BaselineOptions, CallAnswer, FilterSpec, Notice, Refusal};

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

/// For the process that carries the command's connections out.
pub fn egress_spec(arch: Arch) -> FilterSpec {
    own_spec(EGRESS, arch)
}

/// For the process that makes sockets inside, for connections from outside.
pub fn maker_spec(arch: Arch) -> FilterSpec {
    own_spec(MAKER, arch)
}

/// For a proxy that runs alone. Nobody starts it again, so it is not ended for a call that it can do without.
pub fn proxy_spec(arch: Arch) -> FilterSpec {
    const EPERM: u16 = 1;
    let rules = rules_of(&[EGRESS, PROXY].concat(), &BaselineOptions::new(arch));
    let refused = CallAnswer::Refuse(Refusal { errno: EPERM, notice: Notice::Quiet });
    FilterSpec::new(arch, refused, rules)
}

fn own_spec(groups: &[Group], arch: Arch) -> FilterSpec {
    let rules = rules_of(groups, &BaselineOptions::new(arch));
    FilterSpec::new(arch, CallAnswer::KillProcess, rules)
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
