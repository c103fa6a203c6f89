//! A way out for a privileged caller's sandbox: a pair of links and a masquerade in the host's namespace.
//!
//! This is the one place that changes the host's network. The table is owned by the socket that made it and
//! goes with it, even if we are killed; the links go with the sandbox's namespace.

use crate::fence::install;
use crate::nft::{ChainPosition, Family, Lifetime, Rule, Table};
use crate::route::{address, default_route, delete, index_of, is_operational, up, veth_pair};
use crate::socket::Socket;
use palisade_sys::Result;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The two ends. They are in one network of four addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub outside_name: String,
    pub outside: Ipv4Addr,
    pub inside: Ipv4Addr,
}

const PREFIX: u8 = 30;
/// A link is there within milliseconds.
const LINK_TIMEOUT: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// As it is called inside.
pub const INSIDE_NAME: &str = "eth0";

/// In the host's namespace: makes the links, one end in `namespace`, and brings ours up.
pub fn connect_outside(pair: &Pair, namespace: BorrowedFd<'_>) -> Result<()> {
    let socket = Socket::route()?;
    socket.request(vec![veth_pair(&pair.outside_name, INSIDE_NAME, namespace)])?;
    let link = index_of(&socket, &pair.outside_name)?;
    socket.request(vec![address(link, pair.outside.into(), PREFIX), up(link)])
}

/// In the sandbox's: brings its end up and leads everything there.
pub fn connect_inside(pair: &Pair) -> Result<()> {
    let socket = Socket::route()?;
    let link = index_of(&socket, INSIDE_NAME)?;
    socket.request(vec![
        address(link, pair.inside.into(), PREFIX),
        up(link),
        default_route(pair.outside.into(), link),
    ])?;
    wait_for_link(&socket, INSIDE_NAME)
}

/// In the host's again, once both ends are up.
pub fn wait_outside(pair: &Pair) -> Result<()> {
    wait_for_link(&Socket::route()?, &pair.outside_name)
}

/// In the host's: takes the links away, without waiting for the kernel to clear up after the sandbox.
pub fn disconnect(pair: &Pair) -> Result<()> {
    Socket::route()?.request(vec![delete(&pair.outside_name)])
}

/// The kernel drops what is sent before it has noticed that a link is up, and TCP tries again only after a second.
fn wait_for_link(socket: &Socket, name: &str) -> Result<()> {
    let deadline = Instant::now() + LINK_TIMEOUT;
    while !is_operational(socket, name)? && Instant::now() < deadline {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// In the host's: what comes from inside leaves under the host's own addresses, for as long as the socket lives.
pub fn masquerade(pair: &Pair, table: &str) -> Result<Socket> {
    const CHAIN: &str = "leaving";
    let socket = Socket::netfilter()?;
    let mut made = Table::new(Family::Ip, table, Lifetime::Socket);
    made.chain(CHAIN, ChainPosition::REWRITE_LEAVING);
    made.rule(CHAIN, Rule::new().from(pair.inside, 32).masquerade());
    install(&socket, made)?;
    Ok(socket)
}

#[cfg(test)]
#[path = "veth_tests.rs"]
mod tests;
