//! A new network namespace and packet rules in it. Must never touch the host's network namespace.

use super::{Finding, Health, Inside, Subject};
use crate::network::try_fence;
use palisade_netlink::Families;
use palisade_sys::clone::CloneFlags;
use palisade_sys::{At as _, net};

pub(super) fn namespace(inside: Inside) -> Finding {
    let subject = Subject {
        id: "network-namespaces",
        what: "create a network namespace and bring up its loopback",
        needed_for: "every run except with --network host",
        without: Health::Missing,
    };
    subject.finding(inside.trial(CloneFlags::NEWNET, || {
        net::loopback_up()?;
        let (_listener, port) = net::tcp_listener_loopback()?;
        net::tcp_connect_loopback(port).call("connect 127.0.0.1")?;
        Ok("its loopback works".to_owned())
    }))
}

pub(super) fn nf_tables(inside: Inside) -> Finding {
    let subject = Subject {
        id: "nf-tables",
        what: "redirect all connections of a network namespace with nf_tables",
        needed_for: "filtering connections on all ports (without it, on allowed ports only), and --network nat",
        without: Health::Degraded,
    };
    let outcome = inside.trial(CloneFlags::NEWNET, || {
        Ok(match try_fence()? {
            Families::Both => "for IPv4 and IPv6".to_owned(),
            Families::V4 => "for IPv4; the kernel has no IPv6".to_owned(),
        })
    });
    subject.finding(outcome.map_err(|fault| fault.or_fixed_by("sudo modprobe nf_tables")))
}
