//! Sets up the sandbox's network from inside: links, packet rules, and the listeners of the egress process.
//!
//! Nothing here leads out by itself. The listeners are handed to the supervisor, whose egress process serves
//! them from outside: a socket keeps the namespace it was created in. See docs/design.md, "Network access
//! (egress)".

use crate::error::{During, LaunchError, Result};
use palisade_egress::Published;
use palisade_hosts::{INSIDE_V4, INSIDE_V6, PROXY_PORT};
use palisade_netlink::{Families, Fence, Socket, block, fence, loopback_for_everything};
use palisade_plan::model::{Confinement, Egress, NatPlan, Plan, ProxyPlan};
use palisade_sys::fdpass::MAX_FDS;
use palisade_sys::{At as _, SysError, net};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const STEP: &str = "setting up the sandbox's network";
/// Packet rules redirect everything here. No program uses the lowest ports, and the command may not: the plan
/// leaves them out of what it may bind (`plan/src/namespaces.rs`).
const TCP_PORT: u16 = 1;
const DNS_PORT: u16 = 2;
const DNS: u16 = 53;
/// As much as the kernel usually grants (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// How connections of the command reach the listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Front {
    /// All of them, whatever their port: `SO_ORIGINAL_DST` returns the original destination.
    Transparent,
    /// Those to allowed ports, where the kernel has no nf_tables: getsockname(2) returns the destination. Other
    /// ports refuse.
    ByPort,
    /// There are no listeners: ports are published, or a NAT helper has its own link.
    Closed,
}

impl Front {
    pub fn name(self) -> &'static str {
        match self {
            Self::Transparent => "transparent",
            Self::ByPort => "by-port",
            Self::Closed => "closed",
        }
    }
}

/// What is handed out of the sandbox's network namespace.
#[derive(Debug)]
pub struct InsideNetwork {
    pub front: Front,
    pub tcp: Vec<OwnedFd>,
    pub udp: Vec<OwnedFd>,
    /// For `palisade_netlink::refusals`, where packet rules refuse something.
    pub counters: Option<OwnedFd>,
    /// Published ports of the host.
    pub published: Vec<Published>,
    pub(crate) network: OwnedFd,
    pub(crate) user: OwnedFd,
}

/// Which descriptor of an [`InsideNetwork`] is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    pub front: Front,
    pub tcp: usize,
    pub udp: usize,
}

impl InsideNetwork {
    pub(crate) fn handed(&self) -> Handed {
        Handed { front: self.front, tcp: self.tcp.len(), udp: self.udp.len() }
    }

    /// In the order that [`Self::from_descriptors`] wants.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        [&self.network, &self.user]
            .into_iter()
            .chain(&self.tcp)
            .chain(&self.udp)
            .chain(&self.counters)
            .map(AsFd::as_fd)
            .collect()
    }

    pub(crate) fn from_descriptors(
        handed: Handed,
        descriptors: Vec<OwnedFd>,
        published: Vec<Published>,
    ) -> Option<Self> {
        let mut rest = descriptors.into_iter();
        let (network, user) = (rest.next()?, rest.next()?);
        let tcp: Vec<_> = rest.by_ref().take(handed.tcp).collect();
        let udp: Vec<_> = rest.by_ref().take(handed.udp).collect();
        let is_whole = tcp.len() == handed.tcp && udp.len() == handed.udp;
        let counters = rest.next();
        let Handed { front, .. } = handed;
        is_whole.then_some(Self { front, tcp, udp, counters, published, network, user })
    }

    /// Whether an egress process has anything to do, even if only to report what was refused.
    pub(crate) fn is_to_be_served(&self) -> bool {
        self.front != Front::Closed || !self.published.is_empty() || self.counters.is_some()
    }
}

/// The kernel's counters of our network namespace: IPv4, then IPv6 where the kernel has it. None where there is no `/proc`.
pub(crate) fn open_counters() -> Vec<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let open = |path| rustix::fs::open(path, flags, Mode::empty()).ok();
    ["/proc/self/net/snmp", "/proc/self/net/snmp6"].into_iter().map_while(open).collect()
}

/// Whether the supervisor gets any of it.
pub(crate) fn is_handed_over(plan: &Plan) -> bool {
    plan.sandbox.egress.is_some() || !plan.sandbox.publish.is_empty()
}

/// In the new, empty namespace.
pub(crate) fn set_up(plan: &Plan) -> Result<Option<InsideNetwork>> {
    let inside = match &plan.sandbox.egress {
        Some(Egress::Proxy(proxy)) => listen(proxy)?,
        Some(Egress::Nat(nat)) => {
            net::loopback_up().during(STEP)?;
            let rules = nat.packet_rules.then(|| keep_private_ranges_out(nat)).transpose()?;
            closed(rules)?
        }
        None => {
            net::loopback_up().during("bringing up the loopback interface")?;
            if plan.sandbox.publish.is_empty() {
                return Ok(None);
            }
            closed(None)?
        }
    };
    if inside.descriptors().len() > MAX_FDS {
        return Err(LaunchError::new(
            STEP,
            "too many ports are allowed for a kernel without nf_tables",
        )
        .with_fix("sudo modprobe nf_tables, or allow fewer ports"));
    }
    Ok(Some(inside))
}

/// Where network settings are written. Opened before the root changes: the sandbox's is read-only, and another
/// process decides when that happens. None where nothing has to be set, or the directory does not exist.
pub(crate) fn open_settings(plan: &Plan) -> Option<OwnedFd> {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if !inside.network_settings.is_empty() => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open("/proc/sys/net", flags, Mode::empty()).ok()
        }
        _ => None,
    }
}

/// In the new namespace: names below that directory refer to the namespace of the caller. Nothing relies on
/// these settings for isolation. Where they cannot be written, the kernel's defaults stay.
pub(crate) fn apply_settings(directory: &OwnedFd, settings: &[(&'static str, String)]) {
    for (name, value) in settings {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(directory, *name, flags, Mode::empty()) {
            let _ = rustix::io::write(file, value.as_bytes());
        }
    }
}

/// Before a link exists: the ranges that must never be reached through it. Without these rules the run fails.
fn keep_private_ranges_out(nat: &NatPlan) -> Result<Socket> {
    let ranges: Vec<(IpAddr, u8)> =
        nat.blocked.iter().map(|range| (range.network(), range.prefix_len())).collect();
    Socket::netfilter()
        .and_then(|socket| block(&socket, &ranges, &nat.resolvers).map(|()| socket))
        .during("blocking private addresses")
        .map_err(|error| {
            error.with_fix(
                "network mode nat needs nf_tables: sudo modprobe nf_tables, or use --network proxy",
            )
        })
}

fn closed(rules: Option<Socket>) -> Result<InsideNetwork> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM).during(STEP)?;
    with_namespaces(Front::Closed, Vec::new(), Vec::new(), rules, socket.as_fd())
}

fn listen(proxy: &ProxyPlan) -> Result<InsideNetwork> {
    let families = loopback_for_everything(INSIDE_V4, INSIDE_V6).during(STEP)?;
    // What packet rules miss has no route out either, so their absence opens nothing; the front reports which
    // is in use.
    let rules = proxy.packet_rules.then(|| put_up_fence(families)).and_then(Result::ok);
    let (front, tcp, udp) = match rules {
        Some(_) => (
            Front::Transparent,
            each(families, TCP_PORT, SocketType::STREAM).during(STEP)?,
            each(families, DNS_PORT, SocketType::DGRAM).during(STEP)?,
        ),
        None => {
            let ports = proxy.rules.all_ports();
            let tcp = listeners_by_port(families, &ports).during(STEP)?;
            (Front::ByPort, tcp, each(families, DNS, SocketType::DGRAM).during(STEP)?)
        }
    };
    let any = socket(AddressFamily::INET, SocketType::DGRAM).during(STEP)?;
    with_namespaces(front, tcp, udp, rules, any.as_fd())
}

/// For `doctor`, in a temporary namespace.
pub(crate) fn try_fence() -> Result<Families, SysError> {
    let families = loopback_for_everything(INSIDE_V4, INSIDE_V6)?;
    put_up_fence(families).map(|_| families)
}

fn put_up_fence(families: Families) -> Result<Socket, SysError> {
    let socket = Socket::netfilter()?;
    let wanted =
        Fence { v4: INSIDE_V4, v6: INSIDE_V6, families, tcp_port: TCP_PORT, dns_port: DNS_PORT };
    fence(&socket, &wanted)?;
    Ok(socket)
}

/// At every address, and for proxy and resolver only at our own. The command cannot use that port itself.
fn listeners_by_port(families: Families, ports: &[u16]) -> Result<Vec<OwnedFd>, SysError> {
    let mut listeners = Vec::new();
    for port in ports.iter().copied().filter(|port| ![PROXY_PORT, DNS].contains(port)) {
        listeners.push(bound((Ipv4Addr::UNSPECIFIED, port).into(), SocketType::STREAM)?);
        if families == Families::Both {
            listeners.push(bound((Ipv6Addr::UNSPECIFIED, port).into(), SocketType::STREAM)?);
        }
    }
    for own in [PROXY_PORT, DNS] {
        listeners.extend(each(families, own, SocketType::STREAM)?);
    }
    Ok(listeners)
}

/// At our own address of each family.
fn each(families: Families, port: u16, kind: SocketType) -> Result<Vec<OwnedFd>, SysError> {
    let mut made = vec![bound((INSIDE_V4, port).into(), kind)?];
    if families == Families::Both {
        made.push(bound((INSIDE_V6, port).into(), kind)?);
    }
    Ok(made)
}

fn bound(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, SysError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let made = socket(family, kind)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&made, true).call("setsockopt IPV6_V6ONLY")?;
    }
    rustix::net::bind(&made, &address).call("bind")?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&made, BACKLOG).call("listen")?;
    }
    Ok(made)
}

/// Never blocks: its reader is an async runtime.
fn socket(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, SysError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, kind, flags, None).call("socket")
}

fn with_namespaces(
    front: Front,
    tcp: Vec<OwnedFd>,
    udp: Vec<OwnedFd>,
    rules: Option<Socket>,
    any: BorrowedFd<'_>,
) -> Result<InsideNetwork> {
    let network = net::namespace_of(any).during(STEP)?;
    let user = net::owner_of(&network).during(STEP)?;
    let counters = rules.map(OwnedFd::from);
    Ok(InsideNetwork { front, tcp, udp, counters, published: Vec::new(), network, user })
}

#[cfg(test)]
#[path = "network_tests.rs"]
pub(crate) mod tests;
