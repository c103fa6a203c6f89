//! Network attempts and their outcomes (NET-6, NET-7).
//!
//! The words of [`NetworkAction`] are those usual in an egress proxy's log. Names come from inside: they are stored
//! unchanged and escaped for display.

use crate::decision::Decision;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Stands for hosts that were too many to be listed separately. No host name looks like this.
pub const OTHERS: &str = "(others)";

/// The port of an event; `None` for a sum over several ports, which has 0.
pub fn one_port(port: u16) -> Option<u16> {
    Some(port).filter(|port| *port != 0)
}

/// The outcome of an attempt, before any byte was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAction {
    ProxyAllowed,
    /// The host is not allowed, or the attempt is inconsistent.
    ProxyDenied,
    /// The host is allowed, but not on this port.
    ProxyDeniedPort,
    /// The name could not be resolved, or may not be.
    ProxyBlockedDns,
    /// An allowed name resolves to an address that is never allowed.
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

/// How the connection was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// A direct connection to an address, by a program that uses no proxy.
    Transparent,
    /// A `CONNECT` request to the proxy.
    Connect,
    /// A request with an absolute URL.
    Http,
    Socks,
    /// Anything but TCP and DNS, as counted by the kernel.
    Datagram,
    /// Into the sandbox, through a published port.
    Published,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkAttempt {
    pub action: NetworkAction,
    pub via: Via,
    /// The requested name, normalised, or the address as text.
    pub host: String,
    /// The address that was, or would have been, connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// 0 in a sum of several ports.
    pub port: u16,
    /// The rule that decided, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason for a refusal, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The option that would allow it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// The number of such attempts, if they were too many to be listed separately.
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

/// An allowed connection was closed.
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
    /// The number of connections in this sum, if they were too many to be listed separately.
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
    /// Why no address was returned, in a few words. If there is no rule, no rule allowed the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What looks like encoded data in the name, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<String>,
    /// The number of such queries, if they were too many to be listed separately.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

impl NameQueried {
    /// Whether it was answered and not suspicious.
    pub fn is_ordinary(&self) -> bool {
        self.answer == "NOERROR" && self.suspicion.is_none()
    }
}

/// The decision about a host that no rule names.
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
    /// Details about the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The question's number, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
    /// From the first connection that waited to the decision.
    pub latency_us: u64,
}
