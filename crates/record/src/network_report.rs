//! The network part of a run's report: reached hosts, denied hosts and how to allow them, queried names.

use crate::network::NetworkAction;
use serde::{Deserialize, Serialize};

/// All outgoing connections and attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkReport {
    /// The policy's network mode: `proxy`, `nat`.
    pub mode: String,
    /// What handled outgoing connections: `transparent` (every port), `by-port` (the ports of the rules) or `nat`.
    pub front: String,
    /// Reached hosts, by host and port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ReachedHost>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedHost>,
    /// Attempts to reach hosts that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub beyond: u64,
    /// Those of them that were reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherHosts>,
    pub queries: QueriesReport,
    /// Anything but TCP and DNS; all of it is refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub datagrams_rejected: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReachedHost {
    pub host: String,
    pub port: u16,
    pub connections: u64,
    /// From the sandbox to the host, over closed connections.
    pub sent: u64,
    pub received: u64,
    /// The rule that allowed the last connection, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// The reached hosts that are not listed, combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherHosts {
    pub connections: u64,
    /// Over closed connections, as is the next field.
    pub sent: u64,
    pub received: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeniedHost {
    pub host: String,
    /// `None` if it was only looked up, or tried on too many ports to list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub action: NetworkAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub count: u64,
    /// The option that would allow it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
}

impl DeniedHost {
    /// In the usual form: `HOST` or `HOST:PORT`.
    pub fn place(&self) -> String {
        match self.port {
            Some(port) if self.host.contains(':') => format!("[{}]:{port}", self.host),
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueriesReport {
    pub answered: u64,
    /// Not allowed, nonexistent, or too many.
    pub refused: u64,
    /// Names that look as if they contained encoded data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspicious: u64,
    /// The first of them, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspected: Vec<SuspectedName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspectedName {
    pub name: String,
    pub suspicion: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
