//! Network access for a privileged caller's sandbox: a veth pair, and masquerading in the host's namespace.
//!
//! Only this module changes the host's network. The socket that creates the table owns it, so the kernel
//! removes the table with the socket even if we are killed. The links disappear with the sandbox's namespace.

use crate::fence::install;
use crate::nft::{ChainPosition, Family, Lifetime, Rule, Table};
use crate::route::{address, default_route, delete, index_of, is_operational, up, veth_pair};
use crate::socket::Socket;
use palisade_sys::Result;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The two ends of the pair, in one /30 network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub outside_name: String,
    pub outside: Ipv4Addr,
    pub inside: Ipv4Addr,
}

const PREFIX: u8 = 30;
/// A link is usually up within milliseconds.
const LINK_TIMEOUT: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// The interface name inside.
pub const INSIDE_NAME: &str = "eth0";

/// In the host's namespace: creates the pair with one end in `namespace`, and brings our end up.
pub fn connect_outside(pair: &Pair, namespace: BorrowedFd<'_>) -> Result<()> {
    let socket = Socket::route()?;
    socket.request(vec![veth_pair(&pair.outside_name, INSIDE_NAME, namespace)])?;
    let link = index_of(&socket, &pair.outside_name)?;
    socket.request(vec![address(link, pair.outside.into(), PREFIX), up(link)])
}

/// In the sandbox's namespace: brings its end up and adds the default route.
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

/// In the host's namespace, after both ends are up: waits until our end passes packets.
pub fn wait_outside(pair: &Pair) -> Result<()> {
    wait_for_link(&Socket::route()?, &pair.outside_name)
}

/// In the host's namespace: deletes the pair without waiting for the kernel to clean up the sandbox's
/// namespace.
pub fn disconnect(pair: &Pair) -> Result<()> {
    Socket::route()?.request(vec![delete(&pair.outside_name)])
}

/// The kernel drops packets until it has noticed that the link is up, and TCP retries only after a second.
fn wait_for_link(socket: &Socket, name: &str) -> Result<()> {
    let deadline = Instant::now() + LINK_TIMEOUT;
    while !is_operational(socket, name)? && Instant::now() < deadline {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// In the host's namespace: gives packets from inside one of the host's addresses, for as long as the socket is
/// open.
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
