//! The namespace's own interfaces and files: addresses on the loopback, a resolver's address, and a
//! bundle of certificates that trusts the lab. Only files mounted in this mount namespace change.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::mount_bind;

use crate::{Result, certificates, names};

const RESOLVER_FILE: &str = "/etc/resolv.conf";
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const PATIENCE: Duration = Duration::from_secs(20);
/// Nothing is sent there.
const ANY_PORT: u16 = 9;
/// Who may send echo requests without being root.
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";

pub(crate) fn prepare(directory: &Path, uplink: bool) -> Result<()> {
    interfaces(uplink)?;
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

fn interfaces(uplink: bool) -> Result<()> {
    let mut batch = String::from("link set lo up\n");
    for address in names::ADDRESSES {
        // Nobody has to be asked first whether such an address is taken, and then it is there at once.
        let at_once = if address.contains(':') { "nodad" } else { "" };
        batch.push_str(&format!("address add {address} dev lo {at_once}\n"));
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
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all(batch.as_bytes())?;
    }
    let ended = ip.wait()?;
    if !ended.success() {
        return Err(format!("ip -batch: {ended}").into());
    }
    names::ADDRESSES.iter().try_for_each(|address| wait_for_route(address))
}

/// The kernel sets up the newer protocol's routes a moment after it has taken the address.
fn wait_for_route(address: &str) -> Result<()> {
    let end = Instant::now() + PATIENCE;
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
