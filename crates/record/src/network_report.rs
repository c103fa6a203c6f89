//! The network in a run's report: what was reached, what was not and how to allow it, what was looked up.

use crate::network::NetworkAction;
use serde::{Deserialize, Serialize};

/// All that went out, or tried to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkReport {
    /// The policy's word: `proxy`, `nat`.
    pub mode: String,
    /// What stood at the way out: `transparent` (every port), `by-port` (those of the rules) or `nat`.
    pub front: String,
    /// What was reached, by host and port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ReachedHost>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedHost>,
    /// Attempts at hosts beyond those in the lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub beyond: u64,
    /// What of that was reached.
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
    /// From the sandbox to the host, by the connections that are over.
    pub sent: u64,
    pub received: u64,
    /// The rule that allowed the last one, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// The hosts that were reached and are not listed, together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherHosts {
    pub connections: u64,
    /// By the connections that are over, as is the next.
    pub sent: u64,
    pub received: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeniedHost {
    pub host: String,
    /// None if it was only looked up, or on more ports than are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub action: NetworkAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub count: u64,
    /// The option that would allow it, if one would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
}

impl DeniedHost {
    /// As people write it: `HOST` or `HOST:PORT`.
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
    /// Not allowed, not there, or too many.
    pub refused: u64,
    /// Names that look as if they carried data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspicious: u64,
    /// The first of them, and why.
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
