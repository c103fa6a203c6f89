//! What was tried on the network, and what became of it (NET-6, NET-7).
//!
//! The words of [`NetworkAction`] are those that readers of an egress proxy's log know. Names come from inside: they
//! are kept as they were and escaped when a person sees them.

use crate::decision::Decision;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Stands for hosts that were too many to be kept apart. No name begins so.
pub const OTHERS: &str = "(others)";

/// The port of an event; none in a sum of several, which has 0.
pub fn one_port(port: u16) -> Option<u16> {
    Some(port).filter(|port| *port != 0)
}

/// How an attempt ended, before a byte of it went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAction {
    ProxyAllowed,
    /// The host is not allowed, or the attempt contradicts itself.
    ProxyDenied,
    /// The host is allowed, the port is not.
    ProxyDeniedPort,
    /// The name could not be looked up, or may not be.
    ProxyBlockedDns,
    /// An allowed name stands for an address that is never allowed.
    DnsRebindBlocked,
    /// A redirect leads to an address that is never allowed.
    RedirectBlocked,
    /// A redirect leads to a host that is not allowed.
    RedirectDenied,
}

impl NetworkAction {
    pub fn is_allowed(self) -> bool {
        self == Self::ProxyAllowed
    }
}

/// The way by which it was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// A connection to an address, by a program that knows of no proxy.
    Transparent,
    /// `CONNECT` of the proxy.
    Connect,
    /// A request with a whole URL.
    Http,
    Socks,
    /// Anything but TCP and DNS: counted by the kernel.
    Datagram,
    /// Into the sandbox, by a published port.
    Published,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkAttempt {
    pub action: NetworkAction,
    pub via: Via,
    /// The name that was asked for, in its normal form, or the address as text.
    pub host: String,
    /// The address that was, or would have been, connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// 0 in a sum of several ports.
    pub port: u16,
    /// The rule that decided, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why not, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The option that would allow it, if one would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// So many like this one, if they were too many to be told one by one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// An allowed connection is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionClosed {
    pub via: Via,
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    pub port: u16,
    /// From the sandbox to the host.
    pub sent: u64,
    pub received: u64,
    pub duration_ms: u64,
    /// So many like this one, all in one sum, if they were too many to be told one by one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

/// A name was looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameQueried {
    pub name: String,
    /// `A`, `AAAA`, `HTTPS` …
    pub record: String,
    /// `NOERROR`, `NXDOMAIN`, `REFUSED` …
    pub answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why it got no address, in a few words. Without a rule beside it: nobody allowed the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What looks like data in names, if something does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<String>,
    /// So many like this one, if they were too many to be told one by one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

impl NameQueried {
    /// Answered, and like any other.
    pub fn is_ordinary(&self) -> bool {
        self.answer == "NOERROR" && self.suspicion.is_none()
    }
}

/// A host that nobody had spoken of, and who decided what about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostDecided {
    pub host: String,
    pub port: u16,
    pub decision: Decision,
    /// `once`, `session`, or `always` and where it was saved.
    pub lifetime: String,
    /// Who or what decided: `terminal`, `socket`, `timeout`, `nobody-to-ask` …
    pub source: String,
    /// More about the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The question's number, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
    /// From the first connection that waited to the decision.
    pub latency_us: u64,
}
