//! `/etc/resolv.conf`, `/etc/hosts` and `/etc/nsswitch.conf`: name resolution in the sandbox.
//!
//! Programs look up their own host name when they start. It must resolve in every network mode, and names that
//! cannot be resolved must fail at once.

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
/// Debian's address for a machine's own name. A reverse lookup returns that name, while 127.0.0.1 would return
/// `localhost`.
const OWN_ADDRESS: &str = "127.0.1.1";
/// Longer files are lists of blocked names. The plan is printed, so it must not contain them.
const MAX_HOSTS_BYTES: usize = 128 * 1024;
/// Nothing can reply here. The C library of Debian learns that from the kernel. musl waits for the timeout
/// regardless, and takes 0 as "do not wait"; other libraries use their minimum for 0.
const NO_RESOLVER: &str = "# No network: only the names in /etc/hosts are found.\nnameserver 127.0.0.1\noptions timeout:0 attempts:1\n";

pub(crate) struct Naming<'a> {
    pub(crate) network: NetworkMode,
    pub(crate) egress: Option<&'a Egress>,
    /// The result of `gethostname(2)` in the sandbox.
    pub(crate) hostname: &'a str,
    /// Whether the host name is the run's own.
    pub(crate) is_own_hostname: bool,
    pub(crate) denied: &'a Denied,
}

/// Adds the files if the host's own are not suitable.
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

/// Without a network only `/etc/hosts` contains names. If a server does not reply, the C library reports a
/// temporary failure, and package managers would retry for a minute. So `/etc/hosts` is queried again last and
/// gives the final result (nsswitch.conf(5)). The server is queried in between because the kernel counts the
/// query: the report of the run can then say that a network was wanted.
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

/// A path that the policy denies stays hidden: no file of ours may replace it.
fn is_denied(name: &str, naming: &Naming<'_>, host: &Host<'_>) -> bool {
    let asked = |path: PathBuf| naming.denied.above(&path).map(|(_, class)| class == Class::Asked);
    place_of(name, host).and_then(asked).unwrap_or(false)
}

fn resolv_conf(naming: &Naming<'_>) -> Option<String> {
    match (naming.network, naming.egress) {
        (NetworkMode::Host, _) => None,
        (_, Some(Egress::Proxy(_))) => Some(servers(&[INSIDE_V4.into()])),
        // Without a reachable server, the host's file is as good as any.
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
        // The host's list contains real addresses, which programs would try to reach.
        return Some(format!(
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{OWN_ADDRESS} {hostname}\n"
        ));
    }
    // On its own network, the host can resolve its own name already.
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
    // Before the host's lines: the first line of an address determines its name.
    content.push_str(&format!("{OWN_ADDRESS} {hostname}\n"));
    for line in known.lines().filter(|line| !names_in(line).any(|name| name == hostname)) {
        content.push_str(line);
        content.push('\n');
    }
    Some(content)
}

/// hosts(5): an address, then names; `#` starts a comment.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split_whitespace().skip(1)
}

/// What the command can see of a file.
enum Shown {
    Nothing,
    Text(String),
    /// The command may change the file, so it must not be replaced.
    ForWriting,
}

/// Reads only what the view shows: a denied file must not be copied into one of ours.
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
