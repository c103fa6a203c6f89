//! `/etc/resolv.conf`, `/etc/hosts` and `/etc/nsswitch.conf`: name resolution inside.
//!
//! Programs look up their own host name when they start. It has to resolve in every network mode, and names
//! that cannot be resolved have to fail at once.

use super::files::{place_of, put};
use crate::denied::{Class, Denied};
use crate::facts::EntryKind;
use crate::host::Host;
use crate::model::{Egress, MountAccess, MountOp};
use crate::view::Composition;
use palisade_hosts::INSIDE_V4;
use palisade_policy::model::NetworkMode;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
const NSSWITCH: &str = "/etc/nsswitch.conf";
/// The address that Debian gives a machine's own name. Looked up backwards it gives that name, where 127.0.0.1
/// would give `localhost`.
const OWN_ADDRESS: &str = "127.0.1.1";
/// Longer ones are lists of names to block. The plan is printed, so it does not carry them.
const MAX_HOSTS_BYTES: usize = 128 * 1024;
/// Nothing can answer here. The C library of Debian is told so by the kernel. musl waits for the time-out whatever
/// the kernel says, and takes 0 for "do not wait"; others read 0 as their smallest.
const NO_RESOLVER: &str = "# No network: only the names in /etc/hosts are found.\nnameserver 127.0.0.1\noptions timeout:0 attempts:1\n";

/// The host's network, or one of the run's own.
pub(crate) struct Naming<'a> {
    pub(crate) network: NetworkMode,
    pub(crate) egress: Option<&'a Egress>,
    /// What `gethostname(2)` gives inside.
    pub(crate) hostname: &'a str,
    /// Whether that is a name of the run's own.
    pub(crate) is_own_hostname: bool,
    pub(crate) denied: &'a Denied,
}

/// Puts the files in their places, where the host's own would not do.
pub(crate) fn add_name_files(naming: &Naming<'_>, host: &Host<'_>, view: &mut Composition) {
    if let Some(content) = resolv_conf(naming)
        && !is_denied(RESOLV_CONF, naming, host)
        && !put(view, host, RESOLV_CONF, content)
        && naming.egress.is_some()
    {
        view.notes
            .push(format!("cannot provide {RESOLV_CONF}, so some programs cannot resolve names"));
    }
    if let Some(content) = hosts(naming, host, view)
        && !is_denied(HOSTS, naming, host)
    {
        put(view, host, HOSTS, content);
    }
    if let Some(content) = nsswitch(naming, host, view)
        && !is_denied(NSSWITCH, naming, host)
    {
        put(view, host, NSSWITCH, content);
    }
}

/// Without a network only `/etc/hosts` has names. After a server that does not answer, the C library would say that the name may be
/// found later, and package managers would try again for a minute: so `/etc/hosts` is asked once more, and has the last word (nsswitch.conf(5)). The
/// server is asked in between because the kernel counts the question: the end of a run can tell that a network was wanted.
fn nsswitch(naming: &Naming<'_>, host: &Host<'_>, view: &Composition) -> Option<String> {
    if naming.network == NetworkMode::Host || naming.egress.is_some() {
        return None;
    }
    let Shown::Text(text) = shown(NSSWITCH, host, view) else { return None };
    let is_about_hosts = |line: &&str| line.trim_start().starts_with("hosts:");
    let others = text.lines().filter(|line| !is_about_hosts(line));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    Some(format!("{others}hosts: files dns files\n"))
}

/// A path that the policy denies stays absent: nothing of ours takes its place.
fn is_denied(name: &str, naming: &Naming<'_>, host: &Host<'_>) -> bool {
    let asked = |path: PathBuf| naming.denied.above(&path).map(|(_, class)| class == Class::Asked);
    place_of(name, host).and_then(asked).unwrap_or(false)
}

fn resolv_conf(naming: &Naming<'_>) -> Option<String> {
    match (naming.network, naming.egress) {
        (NetworkMode::Host, _) => None,
        (_, Some(Egress::Proxy(_))) => Some(servers(&[INSIDE_V4.into()])),
        // Without a server that can be reached, what the host says is as good as nothing.
        (_, Some(Egress::Nat(nat))) if nat.resolvers.is_empty() => None,
        (_, Some(Egress::Nat(nat))) => Some(servers(&nat.resolvers)),
        (_, None) => Some(NO_RESOLVER.to_owned()),
    }
}

fn servers(servers: &[IpAddr]) -> String {
    servers.iter().map(|server| format!("nameserver {server}\n")).collect()
}

fn hosts(naming: &Naming<'_>, host: &Host<'_>, view: &Composition) -> Option<String> {
    let hostname = naming.hostname;
    if matches!(naming.egress, Some(Egress::Proxy(_))) {
        // The host's own list has real addresses, which programs would then try.
        return Some(format!(
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{OWN_ADDRESS} {hostname}\n"
        ));
    }
    // The host finds its own name in its own network, by whatever means.
    if naming.network == NetworkMode::Host && !naming.is_own_hostname {
        return None;
    }
    let known = match shown(HOSTS, host, view) {
        Shown::ForWriting => return None,
        Shown::Nothing => String::new(),
        Shown::Text(text) => text,
    };
    let found = |name: &str| known.lines().any(|line| names_in(line).any(|known| known == name));
    if found(hostname) && found("localhost") && !naming.is_own_hostname {
        return None;
    }
    let mut content = String::new();
    if !found("localhost") {
        content.push_str("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    }
    // Before the host's lines: the first one of an address is its name.
    content.push_str(&format!("{OWN_ADDRESS} {hostname}\n"));
    for line in known.lines().filter(|line| !names_in(line).any(|name| name == hostname)) {
        content.push_str(line);
        content.push('\n');
    }
    Some(content)
}

/// hosts(5): an address, then names; `#` begins a comment.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split_whitespace().skip(1)
}

/// What of a file the command sees.
enum Shown {
    Nothing,
    Text(String),
    /// It may change the file, which is then not ours to replace.
    ForWriting,
}

/// Reads only what the view shows: what a policy denies is not copied into a file of ours.
fn shown(name: &str, host: &Host<'_>, view: &Composition) -> Shown {
    let Some(target) = place_of(name, host) else { return Shown::Nothing };
    let source = match view.ops.get(&target).or_else(|| view.standing_above(&target)) {
        Some(MountOp::Bind { access: MountAccess::ReadWrite, .. } | MountOp::Overlay { .. }) => {
            return Shown::ForWriting;
        }
        Some(MountOp::Bind { source, target: at, .. }) => source_of(source, at, &target),
        _ => return Shown::Nothing,
    };
    let text = host.resolve(&source).ok().filter(|found| found.kind == EntryKind::File);
    let text = text.and_then(|found| host.read_part(&found.path, 0, MAX_HOSTS_BYTES + 1));
    match text {
        Some(bytes) if bytes.len() <= MAX_HOSTS_BYTES => {
            Shown::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => Shown::Nothing,
    }
}

fn source_of(source: &Path, at: &Path, target: &Path) -> PathBuf {
    match target.strip_prefix(at) {
        Ok(rest) if rest.as_os_str().is_empty() => source.to_owned(),
        Ok(rest) => source.join(rest),
        Err(_) => source.to_owned(),
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
