//! Contradictions in the `network` section.

use super::contradiction;
use crate::diagnostic::Diagnostic;
use crate::model::network::PublishedPort;
use crate::settings::{Settings, Value, boolean, list, word};
use palisade_hosts::HostEntry;

const MODE: &str = "network.mode";

/// What the proxy would allow. Only a contradiction within one document: a layer above may select a more open
/// mode, and then the list is for other runs.
const LISTS: [&str; 4] = [
    "network.allowedHosts",
    "network.allowedPorts",
    "network.allowedPrivate",
    "network.allowedFor",
];
/// What only the proxy can do. To ignore one of these silently would be a surprise.
const OF_PROXY: [&str; 3] = ["network.upstreamProxy", "network.credentials", "network.intercept"];

const MORE_OF_PROXY: [&str; 4] = [
    "network.allowedPrivate",
    "network.followRedirects",
    "network.maxConnections",
    "network.maxBytes",
];

/// Lists together with a mode that ignores them, within one document.
pub(super) fn lists_for_nothing(settings: &Settings, found: &mut Vec<Diagnostic>) {
    refuse(settings, &LISTS, found);
}

/// What the selected mode cannot do, and ports that are published twice.
pub(super) fn of_mode(settings: &Settings, found: &mut Vec<Diagnostic>) {
    refuse(settings, &OF_PROXY, found);
    if word(settings, MODE) == Some("host") {
        refuse(settings, &["network.deniedHosts", "network.publish"], found);
    }
    if word(settings, MODE) == Some("nat") {
        for host in list(settings, "network.deniedHosts").iter().filter(|host| is_name(host)) {
            let message = format!("`{host}` is a name, and nat blocks addresses only");
            found.push(contradiction(
                settings,
                "network.deniedHosts",
                &message,
                "use `network.mode: proxy`, or a CIDR",
            ));
        }
    }
    published_twice(settings, found);
}

fn refuse(settings: &Settings, paths: &[&str], found: &mut Vec<Diagnostic>) {
    let why = match word(settings, MODE) {
        Some("host") => "has no meaning on the host's own network",
        Some("nat") => "has no meaning with nat, which reaches any host",
        _ => return,
    };
    for path in paths.iter().filter(|path| is_asked(settings, path)) {
        let message = format!("`{path}` {why}");
        let fix = "use `network.mode: proxy`, or remove it";
        found.push(contradiction(settings, path, &message, fix));
    }
}

/// Keys that lack another key in the merged policy.
pub(super) fn in_the_end(settings: &Settings, found: &mut Vec<Diagnostic>) {
    if boolean(settings, "network.intercept") == Some(true)
        && !is_asked(settings, "network.credentials")
    {
        found.push(contradiction(
            settings,
            "network.intercept",
            "`network.intercept` opens TLS to add credentials, and there is none",
            "add one (`--credential`), or remove it",
        ));
    }
    typed_for_nothing(settings, found);
    let level = word(settings, "isolationLevel");
    let without =
        level == Some("LEVEL_0") || boolean(settings, "process.userNamespace") == Some(false);
    let mode = word(settings, MODE).unwrap_or_default();
    if without && matches!(mode, "proxy" | "nat") {
        let message = format!(
            "`network.mode: {mode}` needs a network namespace, which this level does not have"
        );
        let fix = "use `none` or `host`, or a level with namespaces (`--level 2`)";
        found.push(contradiction(settings, MODE, &message, fix));
    }
    if without && is_asked(settings, "network.publish") {
        found.push(contradiction(
            settings,
            "network.publish",
            "`network.publish` leads into a network namespace, which this level does not have",
            "remove it, or use a level with namespaces (`--level 2`)",
        ));
    }
}

/// In a file such a key may be for other runs, but an option is for this one.
fn typed_for_nothing(settings: &Settings, found: &mut Vec<Diagnostic>) {
    if word(settings, MODE) != Some("none") {
        return;
    }
    let of_proxy = OF_PROXY.iter().chain(&MORE_OF_PROXY);
    for path in of_proxy.filter(|path| is_asked(settings, path)) {
        let option = settings.get(*path).map(|setting| &setting.origin.file);
        if option.is_some_and(|option| option.starts_with("--")) {
            let message = format!("`{path}` is for the proxy, and the network mode is none");
            let fix = "allow hosts with `--allow-host`, or remove it";
            found.push(contradiction(settings, path, &message, fix));
        }
    }
}

fn is_asked(settings: &Settings, path: &str) -> bool {
    settings.get(path).is_some_and(|setting| match &setting.value {
        Value::Bool(asked) => *asked,
        value => !value.is_empty(),
    })
}

fn is_name(host: &str) -> bool {
    HostEntry::parse(host).is_ok_and(|entry| entry.pattern.range().is_none())
}

fn published_twice(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let ports: Vec<PublishedPort> =
        list(settings, "network.publish").iter().filter_map(|text| text.parse().ok()).collect();
    for (index, second) in ports.iter().enumerate() {
        let collides = |first: &&PublishedPort| {
            let same_place = first.address == second.address
                || first.address.is_unspecified()
                || second.address.is_unspecified();
            first.port == second.port && same_place
        };
        if let Some(first) = ports[..index].iter().find(collides) {
            let message =
                format!("port {} is published twice: `{first}` and `{second}`", second.port);
            found.push(contradiction(settings, "network.publish", &message, "keep one of the two"));
        }
    }
}
