use super::may_send;
use palisade_bpf::{Arch, CallAnswer, FilterSpec, Rule, table};
use palisade_sys::fdpass::socketpair;
use std::os::fd::AsFd as _;

fn filter_that_allows(names: &[&str]) -> FilterSpec {
    let arch = Arch::native();
    let allowed = |name: &&str| Rule {
        syscall: table::number(arch, name).unwrap(),
        conditions: Vec::new(),
        answer: CallAnswer::Allow,
    };
    FilterSpec::new(arch, CallAnswer::KillProcess, names.iter().map(allowed).collect())
}

/// Under a filter without it, sendmsg(2) would be the end of the command, or wait for ever for the broker.
#[test]
fn a_listener_is_sent_only_where_the_filter_allows_it() {
    let (socket, _other) = socketpair().unwrap();
    assert!(may_send(&filter_that_allows(&["write", "read", "sendmsg"]), socket.as_fd()));
    assert!(!may_send(&filter_that_allows(&["write", "read"]), socket.as_fd()));
}
