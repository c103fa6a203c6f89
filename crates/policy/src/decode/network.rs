//! Decodes the `network` section: hosts, ranges, published ports and credentials, each with its position in the
//! file.

use super::mistake::{Mistake, Mistakes, items, mistake};
use crate::model::escape::{WebhookUrl, shown_webhook};
use crate::model::network::{
    Credential, PUBLISH_FORM, PublishedPort, SOURCE_FORM, SecretSource, is_variable, port_of,
    shown_upstream,
};
use crate::nearest::nearest;
use crate::settings::Value;
use crate::syntax::tree::{Node, Tree};
use palisade_hosts::{Host, HostEntry, IpNet, private_ranges};

const HOSTS_FORM: &str = "a host name, a glob such as *.example.org, or a CIDR";
const WEBHOOK_FORM: &str = "a URL without a login: https://, or http:// and a loopback address";
const UPSTREAM_FORM: &str = "a proxy such as http://proxy.example:3128";
const CREDENTIAL_FORM: &str = "a mapping with `name`, `from` and `hosts`";
const CREDENTIAL_FIELDS: [&str; 6] = ["name", "from", "host", "hosts", "header", "format"];
const DEFAULT_HEADER: &str = "authorization";
const DEFAULT_FORMAT: &str = "Bearer {}";
/// Headers that determine the destination and the length of a request. Setting one could send the secret
/// elsewhere.
const FRAMING_HEADERS: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "proxy-authorization"];

pub(crate) fn decode_hosts(node: &Node) -> Result<Value, Mistakes> {
    let host = |item: &Node| {
        let Tree::Text(text) = &item.tree else { return mistake(item, HOSTS_FORM) };
        match HostEntry::parse(text) {
            Ok(_) => Ok(text.clone()),
            Err(why) => Err(vec![Mistake {
                found: item.clone(),
                expected: format!("{HOSTS_FORM} ({why})"),
            }]),
        }
    };
    items(node, HOSTS_FORM, host).map(Value::List)
}

/// Only private ranges: nothing can open loopback, link-local and metadata addresses.
pub(crate) fn decode_private(node: &Node) -> Result<Value, Mistakes> {
    let ranges: Vec<String> = private_ranges().map(|range| range.to_string()).collect();
    let form = format!("a CIDR within one of {}", ranges.join(", "));
    let range = |item: &Node| match &item.tree {
        Tree::Text(text) if is_private(text) => Ok(text.clone()),
        _ => mistake(item, &form),
    };
    items(node, &form, range).map(Value::List)
}

fn is_private(text: &str) -> bool {
    let within = |range: &IpNet| private_ranges().any(|of| of.contains(range));
    text.parse::<IpNet>().is_ok_and(|range| range == range.trunc() && within(&range))
}

pub(crate) fn decode_publish(node: &Node) -> Result<Value, Mistakes> {
    let port = |item: &Node| match &item.tree {
        // In canonical form, so that two spellings of one port are one entry.
        Tree::Text(text) => match text.parse::<PublishedPort>() {
            Ok(port) => Ok(port.to_string()),
            Err(_) => mistake(item, PUBLISH_FORM),
        },
        _ => mistake(item, PUBLISH_FORM),
    };
    items(node, PUBLISH_FORM, port).map(Value::List)
}

pub(crate) fn decode_upstream(node: &Node) -> Result<Value, Mistakes> {
    match &node.tree {
        Tree::Text(text) if is_upstream(text) => Ok(Value::Text(text.clone())),
        Tree::Text(text) => mistake(&instead(node, shown_upstream(text)), UPSTREAM_FORM),
        _ => mistake(node, UPSTREAM_FORM),
    }
}

pub(crate) fn decode_webhook(node: &Node) -> Result<Value, Mistakes> {
    match &node.tree {
        Tree::Text(text) if WebhookUrl::parse(text).is_some() => Ok(Value::Text(text.clone())),
        Tree::Text(text) => mistake(&instead(node, shown_webhook(text)), WEBHOOK_FORM),
        _ => mistake(node, WEBHOOK_FORM),
    }
}

/// For an error that must not repeat the value.
fn instead(node: &Node, text: String) -> Node {
    Node { tree: Tree::Text(text), at: node.at }
}

/// `http://[USER:PASSWORD@]HOST:PORT`, with or without a final `/`.
fn is_upstream(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://") else { return false };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let is_plain = !rest.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/');
    let parts = place.rsplit_once(':');
    is_plain
        && parts.is_some_and(|(host, port)| Host::parse(host).is_ok() && port_of(port).is_some())
}

pub(crate) fn decode_credentials(node: &Node) -> Result<Value, Mistakes> {
    items(node, CREDENTIAL_FORM, decode_credential).map(Value::Credentials)
}

fn decode_credential(node: &Node) -> Result<Credential, Mistakes> {
    let Tree::Map(entries) = &node.tree else { return mistake(node, CREDENTIAL_FORM) };
    for (index, entry) in entries.iter().enumerate() {
        let found = Node { tree: Tree::Text(entry.key.clone()), at: entry.at };
        if !CREDENTIAL_FIELDS.contains(&entry.key.as_str()) {
            let near = nearest(&entry.key, CREDENTIAL_FIELDS);
            let near = near.map(|near| format!(" (nearest: {near})")).unwrap_or_default();
            let fields = CREDENTIAL_FIELDS.join(", ");
            return mistake(&found, &format!("a credential made of {fields}{near}"));
        }
        if entries[..index].iter().any(|other| other.key == entry.key) {
            return mistake(&found, &format!("a credential that gives `{}` once", entry.key));
        }
    }
    let text = |name: &str, valid: fn(&str) -> bool, expected: &str| match node.get(name) {
        None => Ok(None),
        Some(Node { tree: Tree::Text(text), .. }) if valid(text) => Ok(Some(text.clone())),
        Some(other) => mistake(other, expected),
    };
    let needed = |found: Option<String>| found.map_or_else(|| mistake(node, CREDENTIAL_FORM), Ok);
    let name = needed(text("name", is_variable, "a credential whose `name` is a variable's")?)?;
    let is_source = |text: &str| text.parse::<SecretSource>().is_ok();
    let from = match node.get("from") {
        // The value may be the secret itself, written here by mistake. It must not appear in the error.
        Some(written @ Node { tree: Tree::Text(from), .. }) if !is_source(from) => {
            let form = format!("a credential from {SOURCE_FORM}");
            return mistake(&instead(written, "…".to_owned()), &form);
        }
        _ => text("from", is_source, &format!("a credential from {SOURCE_FORM}"))?,
    };
    let Ok(from) = needed(from)?.parse() else { return mistake(node, CREDENTIAL_FORM) };
    let header = text("header", is_header, "a credential whose `header` can carry a secret")?;
    let format =
        text("format", is_format, "a credential whose `format` has one {} for the secret")?;
    Ok(Credential {
        name,
        from,
        hosts: credential_hosts(node)?,
        header: header.map_or_else(|| DEFAULT_HEADER.to_owned(), |name| name.to_ascii_lowercase()),
        format: format.unwrap_or_else(|| DEFAULT_FORMAT.to_owned()),
    })
}

/// `host: api.example`, or `hosts: [api.example, …]`. The list must not be empty: that could mean every host.
fn credential_hosts(node: &Node) -> Result<Vec<HostEntry>, Mistakes> {
    const FORM: &str =
        "a credential for hosts such as api.example, *.api.example or api.example:8443";
    let entry = |item: &Node| match &item.tree {
        Tree::Text(text) => match HostEntry::parse(text) {
            Ok(entry) if entry.pattern.to_string() == "*" => mistake(item, FORM),
            Ok(entry) => Ok(entry),
            Err(why) => mistake(item, &format!("{FORM} ({why})")),
        },
        _ => mistake(item, FORM),
    };
    match (node.get("host"), node.get("hosts")) {
        (Some(host), None) => entry(host).map(|host| vec![host]),
        (None, Some(hosts)) => match items(hosts, FORM, entry)? {
            none if none.is_empty() => mistake(hosts, FORM),
            hosts => Ok(hosts),
        },
        (Some(_), Some(_)) => mistake(node, "a credential with one of `host` and `hosts`"),
        (None, None) => mistake(node, CREDENTIAL_FORM),
    }
}

/// A token of RFC 9110.
fn is_header(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let is_framing = FRAMING_HEADERS.iter().any(|framing| text.eq_ignore_ascii_case(framing));
    !text.is_empty() && text.chars().all(valid) && !is_framing
}

fn is_format(text: &str) -> bool {
    text.matches("{}").count() == 1 && text.chars().all(|c| c == '\t' || !c.is_control())
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
