//! Egress and published ports, as the plan has decided them.
//!
//! Pure data. No secret is ever here: a credential names where its secret is stored, and the process that
//! starts the egress process reads it.

use ipnet::IpNet;
use palisade_hosts::{HostEntry, Rules};
use palisade_policy::network::shown_upstream;
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum Egress {
    /// By the egress process, what the rules allow.
    Proxy(Box<ProxyPlan>),
    /// Any host and port that is not blocked.
    Nat(NatPlan),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyPlan {
    pub rules: Rules,
    pub on_unknown: OnUnknown,
    /// Then a question about a host is denied.
    pub ask_timeout_ms: u64,
    /// At any moment.
    pub connections: usize,
    /// Sent and received, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    pub queries_a_second: u32,
    /// Whether the explicit proxy follows redirects of plain HTTP itself.
    pub follow_redirects: bool,
    /// `http://[USER:PASSWORD@]HOST:PORT`; printed without user and password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "without_password")]
    pub upstream: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialPlan>,
    /// Whether TLS to hosts that have a credential is opened.
    pub intercept: bool,
    pub checks: Checks,
    /// Whether nf_tables is tried; without it only allowed ports are listened at. Always, but in builds that test
    /// how it goes without.
    pub packet_rules: bool,
}

/// What becomes of a host that no rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    Deny,
    /// `Plan::on_ask` says who answers.
    Ask,
}

/// What is checked: everything, but in builds that show which check holds an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// Names and ports, in connections, look-ups and redirects.
    pub rules: bool,
    /// Addresses that names stand for, or that are given themselves.
    pub addresses: bool,
    /// What TLS and HTTP call the host, against what was asked for.
    pub agreement: bool,
    pub strict_http: bool,
    /// How many at once, and how slow.
    pub bounded: bool,
}

impl Checks {
    pub(crate) const ALL: Self =
        Self { rules: true, addresses: true, agreement: true, strict_http: true, bounded: true };
}

/// A secret that requests to some hosts get outside; inside there is a placeholder.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialPlan {
    /// The variable that holds the placeholder inside.
    pub name: String,
    pub source: CredentialSource,
    pub hosts: Vec<HostEntry>,
    /// Lower case.
    pub header: String,
    /// The header's value; `{}` is where the secret goes.
    pub format: String,
    pub placeholder: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CredentialSource {
    /// A variable of the caller's.
    Env(String),
    File(#[serde(serialize_with = "crate::text::path")] PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NatPlan {
    pub helper: NatHelper,
    /// Rejected inside the namespace unless it stays there: what is always blocked, the addresses of the host's
    /// links, and what the policy denies.
    pub blocked: Vec<IpNet>,
    /// Answer for names; port 53 of these is reached all the same.
    pub resolvers: Vec<IpAddr>,
    /// Whether anything of that is rejected, and nobody comes in. Always, but in builds that test what holds an attack.
    pub packet_rules: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NatHelper {
    Pasta(#[serde(serialize_with = "crate::text::path")] PathBuf),
    Slirp4netns(#[serde(serialize_with = "crate::text::path")] PathBuf),
    /// The kernel's own forwarding, for root.
    Veth,
}

/// A port of the host that leads to one of the sandbox's own loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Publish {
    pub address: IpAddr,
    pub port: u16,
    pub inner: u16,
}

/// Who looks at a plan need not know how its proxy is logged in to.
#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn without_password<S: serde::Serializer>(
    upstream: &Option<String>,
    out: S,
) -> Result<S::Ok, S::Error> {
    out.serialize_some(&upstream.as_deref().map(shown_upstream))
}
