//! Filters of our own processes once the command runs: `resources/seccomp/init.txt`, `broker.txt`,
//! `keeper.txt`, `gatefs.txt`, `egress.txt` and `maker.txt` list what they may call, and anything else kills the process. The
//! standalone proxy (`proxy.txt`) gets an error instead.

use crate::groups::{BROKER, EGRESS, GATEFS, Group, INIT, KEEPER, MAKER, PROXY, rules_of};
use crate::{Arch, BaselineOptions, CallAnswer, FilterSpec, Notice, Refusal};

/// For pid 1 of the sandbox.
pub fn init_spec(arch: Arch) -> FilterSpec {
    own_spec(INIT, arch)
}

/// For the process that answers the command's notified calls.
pub fn broker_spec(arch: Arch) -> FilterSpec {
    own_spec(BROKER, arch)
}

/// For the process that mounts granted parts of the host's tree into the view.
pub fn keeper_spec(arch: Arch) -> FilterSpec {
    own_spec(KEEPER, arch)
}

/// For the process that serves the gate's file system.
pub fn gatefs_spec(arch: Arch) -> FilterSpec {
    own_spec(GATEFS, arch)
}

/// For the process that makes the command's outgoing connections.
pub fn egress_spec(arch: Arch) -> FilterSpec {
    own_spec(EGRESS, arch)
}

/// For the process that creates sockets inside the sandbox for connections from outside.
pub fn maker_spec(arch: Arch) -> FilterSpec {
    own_spec(MAKER, arch)
}

/// For a standalone proxy. Nothing restarts it, so a refused call that it can do without must not kill it.
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
