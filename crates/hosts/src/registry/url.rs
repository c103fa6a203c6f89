//! The host and port of a URL in settings, and the URL without secrets.

use super::Tool;
use crate::{Host, HostEntry, HostPattern};

/// `None` if it names no host on the network: a path, a `file:` URL, a mistake.
pub(super) fn entry(url: &str, tool: Tool) -> Option<HostEntry> {
    let (scheme, rest) = url.trim().split_once("://")?;
    // A prefix before `+` names the protocol of a Cargo index or the version control system of a pip URL.
    let scheme = scheme.rsplit('+').next().unwrap_or(scheme).to_ascii_lowercase();
    let usual_port = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        "ssh" => 22,
        "git" => 9418,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit('@').next()?;
    let (host, port) = split_port(place);
    let port = match port {
        None | Some("") => usual_port,
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    at(host, port, tool)
}

/// The URL without user and password, or `None` if another part of it may be a secret. A path is returned
/// unchanged.
pub(super) fn without_secrets(url: &str) -> Option<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some(url.to_owned());
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let place = authority.rsplit('@').next()?;
    let is_open = !path.contains(['?', '#', '@']) && !path.split('/').any(may_be_token);
    is_open.then(|| format!("{scheme}://{place}{path}"))
}

/// Some registries accept a token as a path segment: long, with letters and digits.
fn may_be_token(part: &str) -> bool {
    let has_letters = part.bytes().any(|byte| byte.is_ascii_alphabetic());
    part.len() >= 16 && has_letters && part.bytes().any(|byte| byte.is_ascii_digit())
}

/// A rule for one host and port. Its text names the tool that it is for.
pub(super) fn at(host: &str, port: u16, tool: Tool) -> Option<HostEntry> {
    let host = Host::parse(host).ok()?;
    let pattern = HostPattern::parse(&host.to_string()).ok()?;
    let place = match &host {
        Host::Address(address) if address.is_ipv6() => format!("[{address}]"),
        _ => host.to_string(),
    };
    Some(HostEntry {
        pattern,
        ports: Some(vec![port]),
        written: format!("{place}:{port} ({tool})"),
    })
}

fn split_port(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (place, None),
    }
}
