//! Addresses, routes and links (rtnetlink(7)).

use crate::attributes::{attribute, native32};
use crate::message::{Message, flags};
use crate::socket::Socket;
use palisade_sys::{Result, SysError};
use rustix::io::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// `lo` is the first link in every namespace.
pub(crate) const LOOPBACK: u32 = 1;

// linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_HOST: u8 = 254;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;
const RTN_ANYCAST: u8 = 4;
// linux/if_link.h, linux/if.h, linux/veth.h
const IFLA_IFNAME: u16 = 3;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFF_UP: u32 = 1;
/// Skips duplicate address detection: there is no other host on the link.
const IFA_F_NODAD: u8 = 0x02;
// linux/socket.h
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// The address families that the kernel supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    V4,
    Both,
}

/// Brings `lo` up, assigns these two addresses to it, and makes every address of both families local, so that
/// every connection ends in this namespace. The addresses are needed because programs query IPv6 only if the
/// host has an address that is not loopback (`AI_ADDRCONFIG`, getaddrinfo(3)). On a kernel without IPv6, only
/// IPv4 is set up.
pub fn loopback_for_everything(v4: Ipv4Addr, v6: Ipv6Addr) -> Result<Families> {
    let messages = vec![
        up(LOOPBACK),
        address(LOOPBACK, v4.into(), 32),
        everything_local(AF_INET),
        address(LOOPBACK, v6.into(), 128),
        everything_local(AF_INET6),
    ];
    const FIRST_OF_V6: usize = 3;
    let names: Vec<_> = messages.iter().map(|message| message.what).collect();
    let refused = Socket::route()?.try_each(messages)?;
    match refused.first() {
        None => Ok(Families::Both),
        // The namespace has no other link, so addresses that are not local are unreachable.
        Some(first) if first.index >= FIRST_OF_V6 => Ok(Families::V4),
        Some(first) => {
            let what = names.get(first.index).copied().unwrap_or("a request");
            Err(SysError::new("netlink", what, first.errno))
        }
    }
}

/// The addresses of this namespace's links, except those of `lo`.
pub fn link_addresses() -> Result<Vec<IpAddr>> {
    /// `struct ifaddrmsg`
    const HEADER: usize = 8;
    let mut found = Vec::new();
    let message = Message::new("list addresses", RTM_GETADDR, flags::DUMP, &[0; HEADER]);
    Socket::route()?.list(message, |body| {
        if native32(body, 4) == Some(LOOPBACK) {
            return;
        }
        let attributes = body.get(HEADER..).unwrap_or_default();
        // On a point-to-point link, IFA_ADDRESS is the address of the peer.
        let own = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS));
        let own = own.unwrap_or_default();
        found.extend(<[u8; 4]>::try_from(own).map(IpAddr::from));
        found.extend(<[u8; 16]>::try_from(own).map(IpAddr::from));
    })?;
    Ok(found)
}

/// Whether packets to the address stay in the socket's namespace: it is an address of one of its links, or in a
/// range that is local as a whole (ip-route(8), `local`). An address without a route is an error.
pub fn is_local(socket: &Socket, address: IpAddr) -> Result<bool> {
    /// In `struct rtmsg`.
    const TYPE: usize = 7;
    let (family, bytes) = family_and_bytes(address.to_canonical());
    let mut fixed = route_header(family, 0, RT_SCOPE_UNIVERSE, 0);
    fixed[1] = if family == AF_INET { 32 } else { 128 };
    let message = Message::new("find the route to an address", RTM_GETROUTE, flags::ACK, &fixed)
        .attribute(RTA_DST, &bytes);
    let mut kind = None;
    socket.list(message, |body| kind = body.get(TYPE).copied())?;
    Ok(matches!(kind, Some(RTN_LOCAL | RTN_ANYCAST)))
}

pub(crate) fn up(link: u32) -> Message {
    Message::new("bring a link up", RTM_NEWLINK, 0, &link_header(link, IFF_UP))
}

pub(crate) fn address(link: u32, address: IpAddr, prefix: u8) -> Message {
    let (family, bytes) = family_and_bytes(address);
    let mut fixed = vec![family, prefix, IFA_F_NODAD, RT_SCOPE_UNIVERSE];
    fixed.extend(link.to_ne_bytes());
    Message::new("add an address", RTM_NEWADDR, flags::CREATE | flags::EXCL, &fixed)
        .attribute(IFA_LOCAL, &bytes)
        .attribute(IFA_ADDRESS, &bytes)
}

fn everything_local(family: u8) -> Message {
    let fixed = route_header(family, RT_TABLE_LOCAL, RT_SCOPE_HOST, RTN_LOCAL);
    Message::new("make every address local", RTM_NEWROUTE, flags::CREATE | flags::EXCL, &fixed)
        .native32(RTA_OIF, LOOPBACK)
}

pub(crate) fn default_route(gateway: IpAddr, link: u32) -> Message {
    let (family, bytes) = family_and_bytes(gateway);
    let fixed = route_header(family, RT_TABLE_MAIN, RT_SCOPE_UNIVERSE, RTN_UNICAST);
    Message::new("add the default route", RTM_NEWROUTE, flags::CREATE | flags::EXCL, &fixed)
        .attribute(RTA_GATEWAY, &bytes)
        .native32(RTA_OIF, link)
}

/// A veth pair with one end in another namespace.
pub(crate) fn veth_pair(ours: &str, theirs: &str, namespace: BorrowedFd<'_>) -> Message {
    let header = link_header(0, 0);
    // The kernel reads the descriptor as an unsigned number.
    let namespace = namespace.as_raw_fd().cast_unsigned();
    Message::new("make a pair of links", RTM_NEWLINK, flags::CREATE | flags::EXCL, &header)
        .text(IFLA_IFNAME, ours)
        .nested(IFLA_LINKINFO, |info| {
            info.text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, |data| {
                data.nested_after(VETH_INFO_PEER, &header, |peer| {
                    peer.text(IFLA_IFNAME, theirs).native32(IFLA_NET_NS_FD, namespace)
                })
            })
        })
}

/// Deleting one end of a pair deletes both.
pub(crate) fn delete(name: &str) -> Message {
    Message::new("delete a link", RTM_DELLINK, 0, &link_header(0, 0)).text(IFLA_IFNAME, name)
}

/// The interface index of a link.
pub(crate) fn index_of(socket: &Socket, name: &str) -> Result<u32> {
    find_link(socket, name).map(|link| link.index)
}

/// Whether the link passes packets, which takes some time after it is brought up.
pub(crate) fn is_operational(socket: &Socket, name: &str) -> Result<bool> {
    const IF_OPER_UP: u8 = 6;
    find_link(socket, name).map(|link| link.state == Some(IF_OPER_UP))
}

struct Link {
    index: u32,
    state: Option<u8>,
}

fn find_link(socket: &Socket, name: &str) -> Result<Link> {
    let mut link = None;
    let message = Message::new("look for a link", RTM_GETLINK, flags::ACK, &link_header(0, 0))
        .text(IFLA_IFNAME, name);
    socket.list(message, |body| {
        let attributes = body.get(link_header(0, 0).len()..).unwrap_or_default();
        let state = attribute(attributes, IFLA_OPERSTATE).and_then(|state| state.first().copied());
        link = native32(body, 4).map(|index| Link { index, state });
    })?;
    link.ok_or_else(|| SysError::new("netlink", format!("look for {name}"), Errno::NODEV))
}

/// `struct ifinfomsg`
fn link_header(index: u32, set: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&set.to_ne_bytes());
    fixed[12..].copy_from_slice(&set.to_ne_bytes());
    fixed
}

/// `struct rtmsg`, for the default destination.
fn route_header(family: u8, table: u8, scope: u8, kind: u8) -> [u8; 12] {
    [family, 0, 0, 0, table, RTPROT_BOOT, scope, kind, 0, 0, 0, 0]
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}
