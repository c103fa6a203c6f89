//! Options about the network: what they mean together, and which of them open something.

use super::{Written, count};
use crate::args::{EgressArgs, PolicyArgs};
use crate::environment::variable_of;
use anyhow::bail;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const CREDENTIAL_FORM: &str = "NAME=env:VARIABLE,host=HOST or NAME=file:PATH,host=HOST, such as \
                               TOKEN=env:API_TOKEN,host=api.example";

/// Option, key and value of everything that was given.
pub(super) fn values(
    args: &PolicyArgs,
    written: Written,
    environment: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<Vec<(&'static str, &'static str, Value)>> {
    let egress = &args.egress;
    let mut given = Vec::new();
    if let Some((option, _)) = opens_proxy(args, written, environment) {
        given.push((option, "network.mode", json!("proxy")));
    }
    let lists = [
        (
            "allow-host",
            "network.allowedHosts",
            hosts(&egress.allow_host, &written.name("allow-host"))?,
        ),
        ("deny-host", "network.deniedHosts", hosts(&egress.deny_host, &written.name("deny-host"))?),
        ("allow-for", "network.allowedFor", by_commas(&egress.allow_for)),
        ("allow-private", "network.allowedPrivate", by_commas(&egress.allow_private)),
        ("publish", "network.publish", by_commas(&egress.publish)),
    ];
    for (option, key, list) in lists.into_iter().filter(|(.., list)| !list.is_empty()) {
        given.push((option, key, json!(list)));
    }
    for text in &egress.credential {
        let option = written.name("credential");
        let Some(credential) = credential(text) else {
            bail!("{option}: not in the form {CREDENTIAL_FORM}");
        };
        if credential["hosts"] == json!([]) {
            let name = &credential["name"];
            bail!("{option}: {name} has no host; write it as {CREDENTIAL_FORM}");
        }
        given.push(("credential", "network.credentials", json!([credential])));
    }
    let switches = [
        ("intercept", "network.intercept", egress.intercept),
        ("follow-redirects", "network.followRedirects", egress.follow_redirects),
    ];
    for (option, key, _) in switches.into_iter().filter(|(.., is_given)| *is_given) {
        given.push((option, key, json!(true)));
    }
    let upstream = egress.upstream_proxy.as_ref().map(|url| json!(url));
    let connections = egress.max_connections.as_deref().map(count);
    if connections == Some(json!(0)) {
        bail!(
            "{} 0 would deny every connection; use a number above zero, or turn the network \
             off with --network none",
            written.name("max-connections")
        );
    }
    let bytes = egress.max_bytes.as_ref().map(|size| json!(size));
    let single = [
        ("upstream-proxy", "network.upstreamProxy", upstream),
        ("max-connections", "network.maxConnections", connections),
        ("max-bytes", "network.maxBytes", bytes),
    ];
    given.extend(single.into_iter().filter_map(|(option, key, value)| Some((option, key, value?))));
    Ok(given)
}

/// What somebody who typed these options thereby approved, with the option that says so.
pub(super) fn approvals(
    args: &PolicyArgs,
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<(String, String, &'static str)> {
    let mut approvals = Vec::new();
    let stated = args.network.as_deref().map(|mode| (mode, "network", format!("--network {mode}")));
    let implied = opens_proxy(args, Written::CommandLine, environment)
        .map(|(option, reason)| ("proxy", option, reason));
    if let Some((mode @ ("proxy" | "nat" | "host"), option, reason)) = stated.or(implied) {
        let tool = match &args.tool {
            Some(tool) => Some(tool.clone()),
            None => variable(&variable_of("tool"), environment).map(str::to_owned),
        };
        if let Some(tool) = tool.filter(|_| mode != "host") {
            approvals.push((format!("{tool}:network"), reason, option));
        } else if mode != "host" || args.approve_network_host.is_none() {
            approvals.push((format!("network:{mode}"), reason, option));
        }
    }
    let private = by_commas(&args.egress.allow_private).join(",");
    if !private.is_empty() {
        let reason = format!("--allow-private {private}");
        approvals.push(("network:private".to_owned(), reason, "allow-private"));
    }
    approvals
}

/// The option that opens the network without naming a mode, and as it was typed.
fn opens_proxy(
    args: &PolicyArgs,
    written: Written,
    environment: &BTreeMap<OsString, OsString>,
) -> Option<(&'static str, String)> {
    // That variable is read elsewhere, for the words of other products.
    let is_stated =
        written == Written::Environment && variable(&variable_of("network"), environment).is_some();
    if args.network.is_some() || is_stated {
        return None;
    }
    let EgressArgs { allow_network, allow_host, allow_for, .. } = &args.egress;
    if *allow_network {
        return Some(("allow-network", "--allow-network".to_owned()));
    }
    let lists = [("allow-host", allow_host), ("allow-for", allow_for)];
    let (option, list) = lists.into_iter().find(|(_, list)| !list.is_empty())?;
    Some((option, format!("--{option} {}", list.join(","))))
}

/// Options that another one leaves nothing to do.
pub(super) fn refuse_contradictions(args: &PolicyArgs, written: Written) -> anyhow::Result<()> {
    let egress = &args.egress;
    let Some(mode) = args.network.as_deref() else { return Ok(()) };
    let of_proxy = [
        ("allow-network", egress.allow_network),
        ("allow-host", !egress.allow_host.is_empty()),
        ("allow-for", !egress.allow_for.is_empty()),
        ("allow-private", !egress.allow_private.is_empty()),
        ("credential", !egress.credential.is_empty()),
        ("intercept", egress.intercept),
        ("upstream-proxy", egress.upstream_proxy.is_some()),
        ("follow-redirects", egress.follow_redirects),
        ("max-connections", egress.max_connections.is_some()),
        ("max-bytes", egress.max_bytes.is_some()),
    ];
    let given = of_proxy.into_iter().find(|(_, is_given)| *is_given);
    match (mode, given) {
        ("none" | "nat" | "host", Some((option, _))) => bail!(
            "{} needs --network proxy, but {} is {mode}; remove one of them",
            written.name(option),
            written.name("network"),
        ),
        _ => Ok(()),
    }
}

fn variable<'env>(
    name: &str,
    environment: &'env BTreeMap<OsString, OsString>,
) -> Option<&'env str> {
    environment.get(OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
}

fn by_commas(values: &[String]) -> Vec<String> {
    values.iter().flat_map(|value| value.split(',')).map(str::to_owned).collect()
}

/// `a.example:80,443,b.example`: what is a number behind a comma is one more port of the host before. A number
/// alone would be an address, which nobody means.
fn hosts(values: &[String], option: &str) -> anyhow::Result<Vec<String>> {
    let mut hosts: Vec<String> = Vec::new();
    for value in values {
        let mut previous: Option<String> = None;
        for part in value.split(',') {
            let is_port = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            previous = Some(match previous {
                Some(host) if is_port && host.contains(':') => format!("{host},{part}"),
                Some(host) if is_port => bail!("{option} {value}: write ports as {host}:{part}"),
                before => {
                    hosts.extend(before);
                    part.to_owned()
                }
            });
        }
        hosts.extend(previous);
    }
    Ok(hosts)
}

/// `NAME=SOURCE,host=HOST[,header=NAME][,format=TEXT]`. A comma in a path or a format needs nothing before it:
/// only what begins with one of these names is a part of its own.
fn credential(text: &str) -> Option<Value> {
    let (name, rest) = text.split_once('=')?;
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (index, part) in rest.split(',').enumerate() {
        let field = part
            .split_once('=')
            .filter(|(field, _)| matches!(*field, "host" | "header" | "format"));
        match (index, field, parts.last_mut()) {
            (0, _, _) => parts.push(("from", part.to_owned())),
            (_, Some((field, value)), _) => parts.push((field, value.to_owned())),
            (_, None, Some((_, value))) => {
                value.push(',');
                value.push_str(part);
            }
            (_, None, None) => return None,
        }
    }
    let all = |wanted: &str| -> Vec<&String> {
        parts.iter().filter(|(field, _)| *field == wanted).map(|(_, value)| value).collect()
    };
    if ["header", "format"].into_iter().any(|field| all(field).len() > 1) {
        return None;
    }
    let mut credential =
        json!({ "name": name, "from": all("from").first()?, "hosts": all("host") });
    for field in ["header", "format"] {
        if let Some(value) = all(field).first() {
            credential[field] = json!(value);
        }
    }
    Some(credential)
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
