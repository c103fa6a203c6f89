//! What a run did on the network, from its records: sums for each host, and what happened last.

use jiff::Timestamp;
use palisade_record::network::{HostDecided, NameQueried, NetworkAttempt, OTHERS, Via, one_port};
use palisade_record::{Decision, Event, EventKind};
use serde::Serialize;
use std::collections::{BTreeSet, VecDeque};

/// How many events are remembered.
const MAX_REMEMBERED: usize = 100;
/// How many hosts are counted separately.
const MAX_HOSTS: usize = 2000;
/// And of those that are only refused, fewer: they must not take the place of what was reached.
const MAX_REFUSED: usize = 1500;

/// The document of `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    pub(super) session: String,
    /// With its secrets masked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) command: String,
    /// The policy's word: `none`, `proxy`, `nat`, `host`.
    pub(super) network: String,
    pub(super) is_over: bool,
    pub(super) hosts: Vec<HostSums>,
    /// Attempts at hosts that have no name in the list.
    pub(super) beyond: u64,
    pub(super) names: NameSums,
    /// The oldest first.
    pub(super) last: VecDeque<Happened>,
    #[serde(skip)]
    pub(super) last_record: Option<Timestamp>,
    /// Denied for good by an answer, which no option wins over.
    #[serde(skip)]
    forbidden: BTreeSet<(String, u16)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HostSums {
    pub(super) host: String,
    /// None if it was only looked up, or for a sum of several ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<u16>,
    /// At this moment.
    pub(super) open: u64,
    pub(super) connections: u64,
    /// By connections that are over, as is the next.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) denied: u64,
    /// The option that would allow it, if one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allow: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct NameSums {
    pub(super) answered: u64,
    pub(super) refused: u64,
    pub(super) suspicious: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    Good,
    Bad,
    Plain,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Happened {
    pub(super) at: Timestamp,
    #[serde(skip)]
    pub(super) mark: Mark,
    /// `allowed`, `denied`, `closed`, `name`, `answered`.
    pub(super) what: &'static str,
    /// In words; not escaped.
    pub(super) text: String,
}

impl View {
    pub(super) fn of(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            command: String::new(),
            network: String::new(),
            is_over: false,
            hosts: Vec::new(),
            beyond: 0,
            names: NameSums::default(),
            last: VecDeque::new(),
            last_record: None,
            forbidden: BTreeSet::new(),
        }
    }

    /// Takes the next record of the run. Gives what there is to say of it, if it is about the network.
    pub(super) fn hear(&mut self, event: &Event) -> Option<Happened> {
        self.last_record = Some(event.timestamp);
        let (mark, what, text) = match &event.kind {
            EventKind::SandboxCreated(created) => {
                self.network.clone_from(&created.run.network_mode);
                return None;
            }
            EventKind::SandboxDestroyed(_) => {
                self.is_over = true;
                self.hosts.iter_mut().for_each(|host| host.open = 0);
                return None;
            }
            EventKind::NetworkAttempt(attempt) => self.attempt(attempt),
            EventKind::ConnectionClosed(closed) => {
                let port = one_port(closed.port);
                let host = self.host(&closed.host, port, MAX_HOSTS);
                host.open = host.open.saturating_sub(closed.count);
                host.sent = host.sent.saturating_add(closed.sent);
                host.received = host.received.saturating_add(closed.received);
                let text = format!(
                    "{}{}, {} sent, {} received in {}",
                    place(&closed.host, port),
                    times(closed.count),
                    bytes(closed.sent),
                    bytes(closed.received),
                    duration(closed.duration_ms)
                );
                (Mark::Plain, "closed", text)
            }
            EventKind::NameQueried(queried) => self.queried(queried),
            EventKind::HostDecided(decided) => {
                if decided.decision == Decision::Denied && decided.lifetime.starts_with("always") {
                    self.forbidden.insert((decided.host.clone(), decided.port));
                }
                answered(decided)
            }
            _ => return None,
        };
        let happened = Happened { at: event.timestamp, mark, what, text };
        if self.last.len() >= MAX_REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(happened.clone());
        Some(happened)
    }

    fn attempt(&mut self, attempt: &NetworkAttempt) -> (Mark, &'static str, String) {
        let is_allowed = attempt.action.is_allowed();
        let is_forbidden = self.forbidden.contains(&(attempt.host.clone(), attempt.port));
        let allow = attempt.allow.as_ref().filter(|_| !is_forbidden);
        let port = one_port(attempt.port);
        let host = self.host(&attempt.host, port, if is_allowed { MAX_HOSTS } else { MAX_REFUSED });
        if is_allowed {
            host.connections += attempt.count;
            host.open += attempt.count;
        } else {
            host.denied += attempt.count;
        }
        if host.host == OTHERS {
            self.beyond += attempt.count;
        } else if let Some(flag) = allow {
            host.allow = Some(flag.clone());
        }
        let mut text = place(&attempt.host, port);
        if let Some(address) = attempt.address.filter(|address| attempt.host != address.to_string())
        {
            text += &format!(" ({address})");
        }
        text += &times(attempt.count);
        match attempt.via {
            Via::Transparent => {}
            Via::Connect => text += " by CONNECT",
            Via::Http => text += " by HTTP",
            Via::Socks => text += " by SOCKS",
            Via::Datagram => text += ", datagrams",
            Via::Published => text += ", from outside",
        }
        let why = if is_allowed { &attempt.rule } else { &attempt.reason };
        if let Some(why) = why {
            text += &format!(": {why}");
        }
        if let Some(flag) = allow {
            text += &format!("; allow with {flag}");
        }
        if is_allowed { (Mark::Good, "allowed", text) } else { (Mark::Bad, "denied", text) }
    }

    fn queried(&mut self, queried: &NameQueried) -> (Mark, &'static str, String) {
        let NameQueried { name, record, answer, count, .. } = queried;
        if answer == "NOERROR" {
            self.names.answered += count;
        } else {
            self.names.refused += count;
        }
        let mut text = format!("{name} {record}: {answer}");
        if let Some(reason) = &queried.reason {
            text += &format!(", {reason}");
        }
        if let Some(suspicion) = &queried.suspicion {
            self.names.suspicious += count;
            text += &format!(" (looks like tunnelling: {suspicion})");
        }
        text += &times(*count);
        // Nobody allowed it: without an address no connection follows that would be counted.
        if queried.reason.is_some() && queried.rule.is_none() {
            let host = self.host(name, None, MAX_REFUSED);
            host.denied += count;
            if host.host == OTHERS {
                self.beyond += count;
            } else {
                let is_plain = queried.suspicion.is_none();
                host.allow = is_plain.then(|| format!("--allow-host {name}"));
            }
        }
        (if queried.is_ordinary() { Mark::Plain } else { Mark::Bad }, "name", text)
    }

    /// Its sums, or those of the others if it is new and the limit is reached.
    fn host(&mut self, host: &str, port: Option<u16>, most: usize) -> &mut HostSums {
        let hosts = &mut self.hosts;
        let has_room = hosts.len() < most || position(hosts, host, port).is_some();
        let (host, port) = if has_room { (host, port) } else { (OTHERS, None) };
        let index = position(hosts, host, port).unwrap_or_else(|| {
            hosts.push(HostSums { host: host.to_owned(), port, ..HostSums::default() });
            hosts.len() - 1
        });
        &mut hosts[index]
    }
}

fn position(hosts: &[HostSums], host: &str, port: Option<u16>) -> Option<usize> {
    hosts.iter().position(|known| known.host == host && known.port == port)
}

fn answered(decided: &HostDecided) -> (Mark, &'static str, String) {
    let HostDecided { host, port, lifetime, source, .. } = decided;
    let (mark, word) = match decided.decision {
        Decision::Allowed => (Mark::Good, "allowed"),
        Decision::Denied => (Mark::Bad, "denied"),
    };
    (mark, "answered", format!("{} {word} ({lifetime}) by {source}", place(host, Some(*port))))
}

fn times(count: u64) -> String {
    if count > 1 { format!(", {count} times") } else { String::new() }
}

pub(super) fn place(host: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

fn duration(millis: u64) -> String {
    if millis < 1000 { format!("{millis} ms") } else { format!("{:.1} s", millis as f64 / 1000.0) }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
