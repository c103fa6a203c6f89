//! A network namespace of our own and packet rules in it.
//! Must never speak to the host's network namespace.

use super::trial::{Fault, Outcome};
use super::{Finding, Health, Inside, Subject};
use palisade_sys::clone::CloneFlags;
use palisade_sys::{At as _, Errno, SysError, net};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink};

pub(super) fn namespace(inside: Inside) -> Finding {
    let subject = Subject {
        id: "network-namespaces",
        what: "make a network namespace and bring its loopback up",
        needed_for: "every run but --network host",
        without: Health::Missing,
    };
    subject.finding(inside.trial(CloneFlags::NEWNET, || {
        net::loopback_up()?;
        let (_listener, port) = net::tcp_listener_loopback()?;
        net::tcp_connect_loopback(port).call("connect 127.0.0.1")?;
        Ok("its own loopback answers".to_owned())
    }))
}

pub(super) fn nf_tables(inside: Inside) -> Finding {
    let subject = Subject {
        id: "nf-tables",
        what: "speak to nf_tables in a network namespace",
        needed_for: "judging connections on every port; without it, on listed ports only",
        without: Health::Degraded,
    };
    let outcome = inside.trial(CloneFlags::NEWNET, ask_generation);
    subject.finding(outcome.map_err(|fault| fault.or_mended_by("sudo modprobe nf_tables")))
}

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWGEN: u16 = 15;
const NFT_MSG_GETGEN: u16 = 16;

/// Asks for the generation of the rule set: the smallest question only nf_tables itself answers.
/// See `include/uapi/linux/netfilter/nf_tables.h`.
fn ask_generation() -> Outcome {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )
    .call("socket NETLINK_NETFILTER")?;
    // struct nlmsghdr (length, type, flags, sequence, port) and struct nfgenmsg, all zero.
    let mut request = Vec::from(20_u32.to_ne_bytes());
    request.extend((NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN).to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.resize(20, 0);
    rustix::io::write(&socket, &request).call("send NFT_MSG_GETGEN")?;
    let mut answer = [0; 4096];
    let length = rustix::io::read(&socket, &mut answer).call("receive NFT_MSG_NEWGEN")?;
    judge(&answer[..length])
}

fn judge(answer: &[u8]) -> Outcome {
    const NEW_GENERATION: u16 = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN;
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(NEW_GENERATION), _) => Ok("it answers".to_owned()),
        (Some(NLMSG_ERROR), Some(code)) => {
            let errno = Errno::from_raw_os_error(code.saturating_neg());
            Err(SysError::new("NFT_MSG_GETGEN", "", errno).into())
        }
        _ => Err(Fault::new("nfnetlink gave an answer that does not parse")),
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
