//! Decides egress and published ports from policy and facts.

use super::SLIRP_RESOLVER;
use crate::error::{PlanError, Result};
use crate::facts::HostFacts;
use crate::host::Host;
use crate::model::{
    Checks, CredentialPlan, CredentialSource, Egress, NatHelper, NatPlan, Note, OnUnknown,
    ProxyPlan, Publish, Weight,
};
use crate::paths::Scope;
use ipnet::Ipv6Net;
use palisade_hosts::registry::Tool;
use palisade_hosts::{
    Host as Place, HostEntry, INSIDE_V4, IpNet, Rules, always_blocked, blocked_ranges,
};
use palisade_policy::model::{AllowedPorts, Mode, Network, NetworkMode, OnAsk, Policy};
use palisade_policy::network::{Credential, SecretSource};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// Simultaneous connections, if the policy sets no number.
const CONNECTIONS: usize = 512;
/// DNS queries per second: a package manager looks up a few dozen names at once.
const QUERIES: u32 = 100;
/// The proxy variables that programs read.
pub(crate) const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The file in which systemd-resolved lists its upstream servers.
const RESOLVED_SERVERS: &str = "/run/systemd/resolve/resolv.conf";
/// IPv4-mapped IPv6 addresses (RFC 4291). The address check treats them as IPv4; packet rules do not.
const MAPPED: IpNet =
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96));

#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) egress: Option<Egress>,
    pub(crate) publish: Vec<Publish>,
    pub(crate) notes: Vec<Note>,
}

pub(crate) fn choose(policy: &Policy, facts: &HostFacts, host: &Host<'_>) -> Result<Chosen> {
    let network = &policy.network;
    let mut notes = Vec::new();
    let egress = match network.mode {
        NetworkMode::None | NetworkMode::Host => None,
        NetworkMode::Proxy => {
            let proxy = proxy(policy, facts, &mut notes)?;
            Some(Egress::Proxy(Box::new(proxy)))
        }
        NetworkMode::Nat => Some(Egress::Nat(nat(network, facts, host)?)),
    };
    let publish = network.publish.iter().map(|port| Publish {
        address: port.address,
        port: port.port,
        inner: port.inner,
    });
    Ok(Chosen { egress, publish: publish.collect(), notes })
}

/// The same for a standalone proxy, with notes for the user.
pub fn proxy_alone(policy: &Policy, facts: &HostFacts) -> Result<(ProxyPlan, Vec<Note>)> {
    let mut notes = Vec::new();
    let plan = proxy(policy, facts, &mut notes)?;
    Ok((plan, notes))
}

fn proxy(policy: &Policy, facts: &HostFacts, notes: &mut Vec<Note>) -> Result<ProxyPlan> {
    let network = &policy.network;
    let mut note = |text: String| notes.push(Note::new(Weight::Important, text));
    let mut allowed = network.allowed_hosts.clone();
    for tool in &network.allowed_for {
        let hosts = registry(tool, facts);
        if hosts.is_empty() {
            note(format!(
                "no host is allowed for {tool}: it is not installed here and no setting names one; \
                 --allow-host names it"
            ));
        }
        allowed.extend(hosts.iter().filter(|host| !network.allowed_hosts.contains(host)).cloned());
    }
    facts.registry_notes.iter().cloned().for_each(&mut note);
    let on_unknown = match (policy.mode, policy.on_ask) {
        (Mode::Static, _) | (_, OnAsk::Deny) => OnUnknown::Deny,
        (Mode::Dynamic, OnAsk::Ask | OnAsk::Wait | OnAsk::Allow) => OnUnknown::Ask,
    };
    if allowed.is_empty() && on_unknown == OnUnknown::Deny {
        note("no host is allowed, so none can be reached; allow one with --allow-host".to_owned());
    }
    let ports = match &network.allowed_ports {
        AllowedPorts::Usual => Vec::new(),
        AllowedPorts::Only(ports) => {
            allowed.retain(|host| !ports.is_empty() || host.ports.is_some());
            ports.clone()
        }
    };
    let credentials = credentials(&network.credentials, facts)?;
    let rules =
        Rules::new(allowed, network.denied_hosts.clone(), ports, network.allowed_private.clone());
    rules.allowed().iter().filter_map(|entry| unreachable(entry, &rules)).for_each(&mut note);
    about_credentials(&network.credentials, network, note);
    if network.upstream_proxy.is_none()
        && let Some(name) = PROXY_VARIABLES.into_iter().find(|name| is_set(name, facts))
    {
        let text = format!(
            "the proxy in {name} is not used; use --upstream-proxy URL to connect through one"
        );
        notes.push(Note::new(Weight::Important, text));
    }
    Ok(ProxyPlan {
        rules,
        on_unknown,
        ask_timeout_ms: policy.ask_timeout,
        connections: most(network.max_connections, CONNECTIONS),
        bytes: network.max_bytes,
        queries_a_second: most(network.max_queries, QUERIES),
        follow_redirects: network.follow_redirects,
        upstream: network.upstream_proxy.clone(),
        credentials,
        intercept: network.intercept,
        checks: Checks::ALL,
        packet_rules: true,
    })
}

/// Reports an allowed address that stays blocked whatever the lists contain.
fn unreachable(entry: &HostEntry, rules: &Rules) -> Option<String> {
    let range = entry.pattern.range()?;
    let blocked = rules.check_address(range.addr()).err()?;
    blocked
        .range
        .contains(&range)
        .then(|| format!("{entry} is an allowed host but cannot be reached: it is {blocked}"))
}

/// The hosts that a tool is configured to use.
fn registry<'facts>(tool: &str, facts: &'facts HostFacts) -> &'facts [HostEntry] {
    let tool = Tool::from_word(tool);
    tool.and_then(|tool| facts.registries.get(&tool)).map_or(&[], Vec::as_slice)
}

fn most<T: TryFrom<u64>>(asked: Option<u64>, usual: T) -> T {
    asked.and_then(|most| T::try_from(most).ok()).unwrap_or(usual)
}

fn is_set(name: &str, facts: &HostFacts) -> bool {
    facts.env.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())
}

pub(crate) fn credentials(asked: &[Credential], facts: &HostFacts) -> Result<Vec<CredentialPlan>> {
    let scope = Scope::new(facts);
    let credential = |credential: &Credential| {
        let source = match &credential.from {
            SecretSource::Env(name) => CredentialSource::Env(name.clone()),
            SecretSource::File(path) => CredentialSource::File(scope.typed(path)?),
        };
        Ok(CredentialPlan {
            name: credential.name.clone(),
            source,
            hosts: credential.hosts.clone(),
            header: credential.header.clone(),
            format: credential.format.clone(),
            placeholder: format!("placeholder-for-{}", credential.name),
        })
    };
    asked.iter().map(credential).collect()
}

/// Notes about credentials that will not work as the user may expect.
fn about_credentials(asked: &[Credential], network: &Network, mut note: impl FnMut(String)) {
    for credential in asked {
        let hosts: Vec<String> = credential.hosts.iter().map(ToString::to_string).collect();
        if !network.intercept {
            note(format!(
                "the credential {} is added to plain HTTP only; TLS to {} needs --intercept",
                credential.name,
                hosts.join(", ")
            ));
        }
        for host in
            credential.hosts.iter().filter(|host| !is_allowed(&host.pattern.to_string(), network))
        {
            note(format!(
                "the credential {} is for {host}, which is not among the allowed hosts; --allow-host {host}",
                credential.name
            ));
        }
    }
}

fn is_allowed(host: &str, network: &Network) -> bool {
    let place = Place::parse(host).ok();
    network.allowed_hosts.iter().any(|entry| {
        entry.pattern.to_string() == host
            || place.as_ref().is_some_and(|place| entry.pattern.matches(place))
    })
}

fn nat(network: &Network, facts: &HostFacts, host: &Host<'_>) -> Result<NatPlan> {
    let found = &facts.nat;
    let is_root = facts.uid == 0;
    let helper = match (&found.pasta, &found.slirp4netns) {
        _ if is_root && found.ip_forward => NatHelper::Veth,
        (Some(pasta), _) => NatHelper::Pasta(pasta.clone()),
        (None, Some(slirp)) => NatHelper::Slirp4netns(slirp.clone()),
        (None, None) => return Err(PlanError::NoNatHelper),
    };
    let resolvers = match helper {
        NatHelper::Pasta(_) => vec![INSIDE_V4.into()],
        NatHelper::Slirp4netns(_) => vec![SLIRP_RESOLVER.into()],
        NatHelper::Veth => servers(host),
    };
    let denied = network.denied_hosts.iter().filter_map(|entry| entry.pattern.range());
    let own = found.own_addresses.iter().filter(|address| always_blocked(**address).is_none());
    let own = own.map(|address| IpNet::from(*address));
    let blocked = blocked_ranges().chain([MAPPED]).chain(denied).chain(own).collect();
    Ok(NatPlan { helper, blocked, resolvers, packet_rules: true })
}

/// The host's name servers that another network namespace can reach.
fn servers(host: &Host<'_>) -> Vec<IpAddr> {
    let of = |path: &str| {
        let path = host.resolve(Path::new(path)).ok()?.path;
        let text = host.read_small(&path)?;
        let servers = text.lines().filter_map(|line| {
            let (word, rest) = line.trim().split_once(char::is_whitespace)?;
            (word == "nameserver").then(|| rest.trim().parse::<IpAddr>().ok()).flatten()
        });
        let reachable: Vec<IpAddr> = servers.filter(|server| !server.is_loopback()).collect();
        (!reachable.is_empty()).then_some(reachable)
    };
    of("/etc/resolv.conf").or_else(|| of(RESOLVED_SERVERS)).unwrap_or_default()
}
