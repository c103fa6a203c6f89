//! Egress and published ports, as decided by the plan.
//!
//! Pure data. It must never contain a secret: a credential names where its secret is stored, and the process
//! that starts the egress process reads it.

use ipnet::IpNet;
use palisade_hosts::{HostEntry, Rules};
use palisade_policy::network::without_login;
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum Egress {
    /// Through the egress process, which allows what the rules allow.
    Proxy(Box<ProxyPlan>),
    /// Any host and port that is not blocked.
    Nat(NatPlan),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyPlan {
    pub rules: Rules,
    pub on_unknown: OnUnknown,
    /// After this time a question about a host is denied.
    pub ask_timeout_ms: u64,
    /// The maximum number of simultaneous connections.
    pub connections: usize,
    /// Sent and received together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    pub queries_a_second: u32,
    /// Whether the explicit proxy follows redirects of plain HTTP itself.
    pub follow_redirects: bool,
    /// `http://[USER:PASSWORD@]HOST:PORT`; serialized without user and password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "without_login")]
    pub upstream: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialPlan>,
    /// Whether TLS to hosts that have a credential is decrypted.
    pub intercept: bool,
    pub checks: Checks,
    /// Whether nf_tables is tried. Without it, only allowed ports have a listener. Always true, except in
    /// builds that test without it.
    pub packet_rules: bool,
}

/// What happens to a host that no rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    Deny,
    /// `Supervision::on_ask` determines who answers.
    Ask,
}

/// The active checks: all, except in builds that show which check stops an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// Names and ports, in connections, DNS queries and redirects.
    pub rules: bool,
    /// Addresses that names resolve to, or that are used directly.
    pub addresses: bool,
    /// The host names in TLS and HTTP must match the requested one.
    pub agreement: bool,
    pub strict_http: bool,
    /// The number of connections, and the time they may take.
    pub bounded: bool,
}

impl Checks {
    pub(crate) const ALL: Self =
        Self { rules: true, addresses: true, agreement: true, strict_http: true, bounded: true };
}

/// A secret that is added to requests to some hosts outside the sandbox, which has only a placeholder.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialPlan {
    /// The variable that contains the placeholder in the sandbox.
    pub name: String,
    pub source: CredentialSource,
    pub hosts: Vec<HostEntry>,
    /// Lower case.
    pub header: String,
    /// The header's value; `{}` stands for the secret.
    pub format: String,
    pub placeholder: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CredentialSource {
    /// A variable of the caller.
    Env(String),
    File(#[serde(serialize_with = "crate::text::path")] PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NatPlan {
    pub helper: NatHelper,
    /// Rejected in the namespace unless the destination is in it: the ranges that are always blocked, the
    /// addresses of the host's interfaces, and what the policy denies.
    pub blocked: Vec<IpNet>,
    /// Resolve names; port 53 of these can be reached even if it is in a blocked range.
    pub resolvers: Vec<IpAddr>,
    /// Whether those packets and incoming connections are rejected. Always true, except in builds that show
    /// what stops an attack.
    pub packet_rules: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NatHelper {
    Pasta(#[serde(serialize_with = "crate::text::path")] PathBuf),
    Slirp4netns(#[serde(serialize_with = "crate::text::path")] PathBuf),
    /// The kernel's own forwarding, only for root.
    Veth,
}

/// A port of the host that is forwarded to the sandbox's own loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Publish {
    pub address: IpAddr,
    pub port: u16,
    pub inner: u16,
}
