//! The rules of one run: allowed hosts, denied hosts, and the answers that people have given since.
//!
//! A denial overrides everything else. An address that is always blocked stays blocked, whatever list contains
//! it. Answers apply only where the lists decide nothing.

use crate::pattern::Shape;
use crate::range::{self, Opening};
use crate::table::Table;
use crate::{BlockedAddress, Host, HostEntry, Name, Reason, Verdict};
use ipnet::IpNet;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::collections::BTreeMap;
use std::net::IpAddr;

const USUAL_PORTS: [u16; 2] = [80, 443];

/// Names of this machine, of its link (RFC 6762) or of its organisation's network, and all names below them.
const LOCAL_NAMES: [&str; 3] = ["localhost", "local", "internal"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    allowed: Table,
    denied: Table,
    /// The ports of allowed entries that have none of their own.
    ports: Vec<u16>,
    /// Parts of private ranges that an approval has opened.
    private: Vec<IpNet>,
    answers: BTreeMap<(Host, u16), Answer>,
}

/// A person's answer for one host and port, with the text that the log shows for it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Allow(String),
    Deny(String),
}

impl Rules {
    /// If `ports` is empty, the defaults 80 and 443 apply. `private` opens parts of the private ranges;
    /// loopback, link-local and metadata addresses cannot be opened.
    pub fn new(
        allowed: Vec<HostEntry>,
        denied: Vec<HostEntry>,
        ports: Vec<u16>,
        private: Vec<IpNet>,
    ) -> Self {
        let mut ports = if ports.is_empty() { USUAL_PORTS.to_vec() } else { ports };
        ports.sort_unstable();
        ports.dedup();
        Self {
            allowed: Table::new(allowed),
            denied: Table::new(denied),
            ports,
            private,
            answers: BTreeMap::new(),
        }
    }

    pub fn allowed(&self) -> &[HostEntry] {
        self.allowed.entries()
    }

    pub fn denied(&self) -> &[HostEntry] {
        self.denied.entries()
    }

    pub fn judge(&self, host: &Host, port: u16) -> Verdict {
        if let Some(rule) = self.denial(host, port) {
            return Verdict::Denied { rule: Some(rule.to_owned()), reason: Reason::Listed };
        }
        if let Host::Address(address) = host
            && let Err(blocked) = self.check_range(*address)
        {
            return Verdict::Denied { rule: None, reason: Reason::Address(blocked) };
        }
        let entries = self.allowing(host);
        if let Some(entry) = entries.iter().find(|entry| self.ports_of(entry).contains(&port)) {
            return Verdict::Allowed { rule: entry.written.clone() };
        }
        if let Some(Answer::Allow(rule)) = self.answers.get(&(host.clone(), port)) {
            return Verdict::Allowed { rule: rule.clone() };
        }
        match entries.first() {
            Some(entry) => {
                Verdict::Denied { rule: Some(entry.written.clone()), reason: Reason::Port }
            }
            None => unnamed(host),
        }
    }

    /// Whether the name may be resolved: it may if it is allowed on at least one port.
    pub fn judge_name(&self, name: &Name) -> Verdict {
        let host = Host::Name(name.clone());
        let denials = self.denied.matching(&host);
        if let Some(entry) = denials.iter().find(|entry| entry.ports.is_none()) {
            return Verdict::Denied { rule: Some(entry.written.clone()), reason: Reason::Listed };
        }
        let entries = self.allowing(&host);
        let open = |entry: &&&HostEntry| {
            self.ports_of(entry).iter().any(|port| self.denial(&host, *port).is_none())
        };
        if let Some(entry) = entries.iter().find(open) {
            return Verdict::Allowed { rule: entry.written.clone() };
        }
        let answered = self.answers.range((host.clone(), 0)..=(host.clone(), u16::MAX));
        let mut allowed = answered.filter_map(|((_, port), answer)| match answer {
            Answer::Allow(rule) if self.denial(&host, *port).is_none() => Some(rule),
            _ => None,
        });
        match (allowed.next(), denials.first(), entries.is_empty()) {
            (Some(rule), _, _) => Verdict::Allowed { rule: rule.clone() },
            // All allowed ports are denied. The other ports can still be asked about, as for any allowed host.
            (None, Some(denial), false) => {
                Verdict::Denied { rule: Some(denial.written.clone()), reason: Reason::Port }
            }
            _ => unnamed(&host),
        }
    }

    /// Whether an allowed name may resolve to this address.
    ///
    /// A denied range applies here on every port, even if the entry lists some: a name is resolved before the
    /// port is known.
    pub fn check_address(&self, address: IpAddr) -> Result<(), BlockedAddress> {
        let address = address.to_canonical();
        match self.denied.range_of(address) {
            Some(range) => Err(BlockedAddress { range, what: "denied by a rule" }),
            None => self.check_range(address),
        }
    }

    /// The rule, as written, that denies the target of a CNAME of an allowed name. A denied host must not be
    /// reachable by another name. Without a port, only rules for every port apply.
    pub fn denies_alias(&self, alias: &Name, port: Option<u16>) -> Option<&str> {
        let host = Host::Name(alias.clone());
        match port {
            Some(port) => self.denial(&host, port),
            None => {
                let denials = self.denied.matching(&host).into_iter();
                let mut whole = denials.filter(|entry| entry.ports.is_none());
                whole.next().map(|entry| entry.written.as_str())
            }
        }
    }

    /// Whether a rule allows exactly this address. A range or a name does not count.
    pub fn names_alone(&self, address: IpAddr) -> bool {
        let only = IpNet::from(address.to_canonical());
        let allowed = self.allowed.entries().iter().filter_map(|entry| entry.pattern.range());
        allowed.chain(self.private.iter().copied()).any(|range| range == only)
    }

    /// Records that a person allowed it for the session. A denial still overrides this.
    pub fn allow(&mut self, host: Host, port: u16, written: &str) {
        self.answers.insert((host, port), Answer::Allow(written.to_owned()));
    }

    /// Records that a person denied it for the session.
    pub fn deny(&mut self, host: Host, port: u16, written: &str) {
        self.answers.insert((host, port), Answer::Deny(written.to_owned()));
    }

    /// Every port that is allowed for some host, sorted.
    pub fn all_ports(&self) -> Vec<u16> {
        let listed = self.allowed.entries().iter().flat_map(|entry| self.ports_of(entry));
        let mut ports: Vec<u16> = listed.chain(&self.ports).copied().collect();
        ports.extend(self.answers.iter().filter_map(|((_, port), answer)| match answer {
            Answer::Allow(_) => Some(*port),
            Answer::Deny(_) => None,
        }));
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The option that would allow it, quoted for a shell.
    pub fn flag_for(&self, host: &Host, port: u16) -> String {
        match host {
            _ if self.ports.contains(&port) => format!("--allow-host {host}"),
            // A shell would expand brackets as a glob.
            Host::Address(IpAddr::V6(address)) => format!("--allow-host '[{address}]:{port}'"),
            _ => format!("--allow-host {host}:{port}"),
        }
    }

    fn ports_of<'a>(&'a self, entry: &'a HostEntry) -> &'a [u16] {
        entry.ports.as_deref().unwrap_or(&self.ports)
    }

    /// The rule that denies it, as written. An entry without ports denies all of them.
    fn denial(&self, host: &Host, port: u16) -> Option<&str> {
        if let Some(Answer::Deny(rule)) = self.answers.get(&(host.clone(), port)) {
            return Some(rule);
        }
        let denies = |entry: &&HostEntry| match &entry.ports {
            Some(ports) => ports.contains(&port),
            None => true,
        };
        self.denied.matching(host).into_iter().find(denies).map(|entry| entry.written.as_str())
    }

    /// Local names and addresses need a rule that names them. `*` does not allow them, or a denied name could
    /// be reached by its address.
    fn allowing(&self, host: &Host) -> Vec<&HostEntry> {
        let mut entries = self.allowed.matching(host);
        if is_local_name(host) || matches!(host, Host::Address(_)) {
            entries.retain(|entry| *entry.pattern.shape() != Shape::Everything);
        }
        entries
    }

    fn check_range(&self, address: IpAddr) -> Result<(), BlockedAddress> {
        let address = address.to_canonical();
        match range::find(address) {
            None => Ok(()),
            Some((_, Opening::ByApproval))
                if self.private.iter().any(|open| open.contains(&address)) =>
            {
                Ok(())
            }
            Some((blocked, _)) => Err(blocked),
        }
    }
}

fn unnamed(host: &Host) -> Verdict {
    match is_local_name(host) {
        true => Verdict::Denied { rule: None, reason: Reason::LocalName },
        false => Verdict::Unknown,
    }
}

fn is_local_name(host: &Host) -> bool {
    match host {
        Host::Name(name) => name.labels().last().is_some_and(|last| LOCAL_NAMES.contains(&last)),
        Host::Address(_) => false,
    }
}

/// For display: the lists as they were written.
impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Rules", 4)?;
        fields.serialize_field("allowed", self.allowed.entries())?;
        fields.serialize_field("denied", self.denied.entries())?;
        fields.serialize_field("ports", &self.ports)?;
        fields.serialize_field("private", &self.private)?;
        fields.end()
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
