//! The interfaces of both namespaces, and the host's files: addresses on the loopback, the link between the two, a resolver's
//! address, and a bundle of certificates that trusts the lab. Only files mounted in this mount namespace change.

use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::mount_bind;

use crate::{Result, certificates, names};

const RESOLVER_FILE: &str = "/etc/resolv.conf";
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const HOST_LINK: &str = "labhost";
const WORLD_LINK: &str = "labworld";
const TIMEOUT: Duration = Duration::from_secs(20);
/// Nothing is sent there.
const ANY_PORT: u16 = 9;
/// Who may send echo requests without being root.
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";

/// The host's end. The process is in the world's namespace.
pub(crate) fn prepare(directory: &Path, world: u32, uplink: bool) -> Result<()> {
    host_interfaces(world, uplink)?;
    // An ordinary user's lab knows no other group than his.
    let (first, last) = match rustix::process::getegid().as_raw() {
        0 => (0, i32::MAX.cast_unsigned()),
        own => (own, own),
    };
    fs::write(PING_GROUPS, format!("{first} {last}"))?;
    let resolver = directory.join("resolv.conf");
    fs::write(
        &resolver,
        format!("nameserver {}\noptions timeout:1 attempts:1\n", names::RESOLVER),
    )?;
    mount_bind(&resolver, fs::canonicalize(RESOLVER_FILE)?)?;
    let bundle = directory.join("bundle.pem");
    let mut text = fs::read(BUNDLE)?;
    text.extend(fs::read(directory.join(certificates::AUTHORITY_FILE))?);
    fs::write(&bundle, text)?;
    mount_bind(&bundle, fs::canonicalize(BUNDLE)?)?;
    Ok(())
}

fn loopback(addresses: &[&str]) -> String {
    let mut batch = String::from("link set lo up\n");
    for address in addresses {
        batch.push_str(&format!("address add {address} dev lo {}\n", at_once(address)));
    }
    batch
}

/// Nobody has to be asked first whether such an address is taken, and then it is there at once.
fn at_once(address: &str) -> &'static str {
    if address.contains(':') { "nodad" } else { "" }
}

/// One end of the link between the two, up and with its addresses.
fn link(name: &str, addresses: &[&str]) -> String {
    let mut batch = format!("link set {name} up\n");
    for address in addresses {
        let length = if address.contains(':') { 64 } else { 24 };
        batch
            .push_str(&format!("address add {address}/{length} dev {name} {}\n", at_once(address)));
    }
    batch
}

fn host_interfaces(world: u32, uplink: bool) -> Result<()> {
    let mut batch = loopback(names::HOST_ADDRESSES);
    batch.push_str(&format!(
        "link add {HOST_LINK} type veth peer name {WORLD_LINK} netns {world}\n"
    ));
    batch.push_str(&link(HOST_LINK, &names::HOST_END));
    let [v4, v6] = names::WORLD_END;
    for address in names::WORLD_ADDRESSES {
        let range = if address.ends_with("/24") { "203.0.113.0/24" } else { address };
        let gateway = if address.contains(':') { v6 } else { v4 };
        batch.push_str(&format!("route add {range} via {gateway} dev {HOST_LINK} onlink\n"));
    }
    if uplink {
        batch.push_str(
            "link add lab0 type veth peer name lab1\n\
             link set lab0 up\n\
             link set lab1 up\n\
             address add 192.0.2.2/24 dev lab0\n\
             address add 2001:db8:1::2/64 dev lab0 nodad\n\
             route add default via 192.0.2.1 dev lab0\n\
             route add ::/0 via 2001:db8:1::1 dev lab0\n",
        );
    }
    ip(&batch)
}

/// Until the host's packets have a way to all that is in the lab, and answers come back.
pub(crate) fn wait_for_world() -> Result<()> {
    let everywhere = [names::HOST_ADDRESSES, names::WORLD_ADDRESSES].concat();
    everywhere.into_iter().try_for_each(wait_for_route)?;
    names::WORLD_END.into_iter().try_for_each(wait_for_answer)
}

/// Nobody listens there, and that is the answer. The first packets of a new link may be lost while its ends look for each other
/// (arp(7)), and are sent again after a second: longer than a program of a test waits for a name.
fn wait_for_answer(address: &str) -> Result<()> {
    let place = SocketAddr::new(address.parse()?, ANY_PORT);
    match TcpStream::connect_timeout(&place, TIMEOUT) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
            Err(format!("{place}: {error}").into())
        }
        _ => Ok(()),
    }
}

/// The world's end, once the host has made the link.
pub(crate) fn prepare_world() -> Result<()> {
    let batch = loopback(names::WORLD_ADDRESSES) + &link(WORLD_LINK, &names::WORLD_END);
    ip(&batch)?;
    names::WORLD_ADDRESSES.iter().copied().chain(names::HOST_END).try_for_each(wait_for_route)
}

fn ip(batch: &str) -> Result<()> {
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all(batch.as_bytes())?;
    }
    let ended = ip.wait()?;
    if !ended.success() {
        return Err(format!("ip -batch: {ended}").into());
    }
    Ok(())
}

/// The kernel sets up the newer protocol's routes a moment after it has taken the address.
fn wait_for_route(address: &str) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    let address: IpAddr = address.split('/').next().unwrap_or(address).parse()?;
    let own: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    while let Err(error) = UdpSocket::bind((own, 0))?.connect((address, ANY_PORT)) {
        if Instant::now() > end {
            return Err(format!("{address}: {error}").into());
        }
        thread::yield_now();
    }
    Ok(())
}
