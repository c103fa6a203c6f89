//! Reads what a [`crate::fence`] rejected, from outside, through a socket that was created inside the
//! namespace.
//!
//! The kernel requires `CAP_NET_ADMIN` over the namespace: a process inside has it, and so does the owner of
//! its user namespace.

use crate::attributes::{attribute, attributes};
use crate::fence::{REFUSED, REFUSED_V4, REFUSED_V6, TABLE};
use crate::nft::{DATA_VALUE, Family, LIST_ELEM, get_counter, list_set};
use crate::socket::Socket;
use palisade_sys::{Errno, Result};
use std::net::IpAddr;

/// `struct nfgenmsg`
const HEADER: usize = 4;

/// Rejected packets to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub address: IpAddr,
    /// 0 if the protocol has no ports.
    pub port: u16,
    /// As in an IP header; 17 is UDP.
    pub protocol: u8,
    pub packets: u64,
}

/// All rejected packets so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Sorted by address. After some thousands, further destinations are not recorded.
    pub destinations: Vec<Refusal>,
    /// All packets, including those to destinations that are not recorded.
    pub packets: u64,
}

/// Reads the counters.
pub fn refusals(socket: &Socket) -> Result<Refusals> {
    match refusals_of(socket, Family::Inet) {
        // The table is for IPv4 only.
        Err(error) if matches!(error.errno, Errno::NOENT | Errno::AFNOSUPPORT) => {
            refusals_of(socket, Family::Ip)
        }
        read => read,
    }
}

fn refusals_of(socket: &Socket, family: Family) -> Result<Refusals> {
    let mut packets = 0;
    socket.list(get_counter(family, TABLE, REFUSED), |body| {
        const OBJECT_DATA: u16 = 4;
        let data = body.get(HEADER..).and_then(|body| attribute(body, OBJECT_DATA));
        packets = data.and_then(counted).unwrap_or(packets);
    })?;
    let mut destinations = Vec::new();
    // Most runs have no rejections, and listing a set takes longer than reading a counter.
    if packets > 0 {
        for set in [REFUSED_V4, REFUSED_V6] {
            match socket.list(list_set(family, TABLE, set), |body| members(body, &mut destinations))
            {
                Err(error) if error.errno == Errno::NOENT => {}
                listed => listed?,
            }
        }
    }
    destinations.sort_unstable();
    Ok(Refusals { destinations, packets })
}

fn members(body: &[u8], found: &mut Vec<Refusal>) {
    const ELEMENTS: u16 = 3;
    let Some(list) = body.get(HEADER..).and_then(|body| attribute(body, ELEMENTS)) else { return };
    let items = attributes(list).filter(|(kind, _)| *kind == LIST_ELEM);
    found.extend(items.filter_map(|(_, item)| member(item)));
}

fn member(item: &[u8]) -> Option<Refusal> {
    const KEY: u16 = 1;
    const EXPRESSION: u16 = 7;
    const EXPRESSION_DATA: u16 = 2;
    let key = attribute(attribute(item, KEY)?, DATA_VALUE)?;
    let packets = counted(attribute(attribute(item, EXPRESSION)?, EXPRESSION_DATA)?)?;
    let (protocol, rest) = key.split_at_checked(4)?;
    let (address, port) = rest.split_at_checked(rest.len().checked_sub(4)?)?;
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    let port = u16::from_be_bytes([port[0], port[1]]);
    Some(Refusal { address, port, protocol: protocol[0], packets })
}

fn counted(counter: &[u8]) -> Option<u64> {
    const PACKETS: u16 = 2;
    attribute(counter, PACKETS)?.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_does_not_parse_is_left_out() {
        assert_eq!(member(&[]), None);
        assert_eq!(member(&[8, 0, 1, 0x80, 4, 0, 1, 0]), None);
        assert_eq!(counted(&[8, 0, 2, 0, 1, 2, 3, 4]), None);
    }
}
