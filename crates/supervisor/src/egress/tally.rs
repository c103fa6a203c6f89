//! Network statistics of a run for its report: the counts are complete, the lists are limited.

use palisade_hosts::{Host, Reason};
use palisade_record::network::{
    ConnectionClosed, NameQueried, NetworkAction, NetworkAttempt, Via, one_port,
};
use palisade_record::{DeniedHost, NetworkReport, OtherHosts, ReachedHost, SuspectedName};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Limit for the hosts listed, for each list.
const MAX_HOSTS: usize = 500;
/// Limit for the ports listed of a denied host, so that a port scan does not fill the list.
const MAX_PORTS: usize = 16;
const MAX_SUSPECTED: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    report: NetworkReport,
    /// Denied permanently during this run.
    forbidden: BTreeSet<String>,
}

impl Tally {
    pub(super) fn new(mode: &str) -> Self {
        let report = NetworkReport { mode: mode.to_owned(), ..NetworkReport::default() };
        Self { report, forbidden: BTreeSet::new() }
    }

    /// Sets the name of what serves the sandbox's egress.
    pub(super) fn front(&mut self, front: &str) {
        front.clone_into(&mut self.report.front);
    }

    pub(super) fn attempt(&mut self, attempt: &NetworkAttempt) {
        if attempt.via == Via::Datagram {
            self.report.datagrams_rejected += attempt.count;
            return;
        }
        // A client from outside is not a host that the run tried to reach.
        if attempt.via == Via::Published {
            return;
        }
        if attempt.action.is_allowed() {
            if let Some(reached) = self.reached(&attempt.host, attempt.port) {
                reached.connections += attempt.count;
                reached.rule.clone_from(&attempt.rule);
            } else {
                self.report.beyond += attempt.count;
                self.others().connections += attempt.count;
            }
            return;
        }
        if stands_for_many(&attempt.host) {
            self.report.beyond += attempt.count;
            return;
        }
        self.denied(DeniedHost {
            host: attempt.host.clone(),
            port: one_port(attempt.port),
            action: attempt.action,
            reason: attempt.reason.clone(),
            rule: attempt.rule.clone(),
            count: attempt.count,
            allow: attempt.allow.clone(),
        });
    }

    pub(super) fn closed(&mut self, closed: &ConnectionClosed) {
        if closed.via == Via::Published {
            return;
        }
        let (sent, received) = match self.reached(&closed.host, closed.port) {
            Some(reached) => (&mut reached.sent, &mut reached.received),
            None => {
                let others = self.others();
                (&mut others.sent, &mut others.received)
            }
        };
        *sent = sent.saturating_add(closed.sent);
        *received = received.saturating_add(closed.received);
    }

    pub(super) fn queried(&mut self, queried: &NameQueried) {
        let queries = &mut self.report.queries;
        match queried.answer.as_str() {
            "NOERROR" => queries.answered += queried.count,
            _ => queries.refused += queried.count,
        }
        if let Some(suspicion) = &queried.suspicion {
            queries.suspicious += queried.count;
            if queries.suspected.len() < MAX_SUSPECTED {
                let (name, suspicion) = (queried.name.clone(), suspicion.clone());
                queries.suspected.push(SuspectedName { name, suspicion });
            }
        }
        // A program that gets no address makes no connection, so the query is the only trace of it.
        let is_unknown = queried.reason.is_some() && queried.rule.is_none();
        let is_listed = is_listed(queried.reason.as_deref());
        let is_denied = is_unknown || is_listed;
        if let Some(host) = Host::parse(&queried.name).ok().filter(|_| is_denied) {
            // The query does not say for which port.
            let flag = is_unknown && queried.suspicion.is_none();
            self.denied(DeniedHost {
                host: queried.name.clone(),
                port: None,
                action: if is_listed {
                    NetworkAction::ProxyDenied
                } else {
                    NetworkAction::ProxyBlockedDns
                },
                reason: queried.reason.clone(),
                rule: queried.rule.clone(),
                count: queried.count,
                allow: flag.then(|| format!("--allow-host {host}")),
            });
        }
    }

    /// Records that a person denied `HOST:PORT` permanently, and that a policy file contains it now.
    pub(super) fn forbidden(&mut self, place: String) {
        self.forbidden.insert(place);
    }

    /// `file_of` finds the policy file that denies a host. Nothing overrides a denial, so no option is
    /// suggested for these hosts: the user has to remove the rule.
    pub(super) fn into_report(self, file_of: impl Fn(&str) -> Option<PathBuf>) -> NetworkReport {
        let Self { mut report, forbidden } = self;
        for denied in &mut report.denied {
            let place = denied.place();
            let rule = match &denied.rule {
                _ if forbidden.contains(&place) => place,
                // A host denied for the session only can be allowed by an option in the next run.
                Some(rule) if denied.allow.is_none() && is_listed(denied.reason.as_deref()) => {
                    rule.clone()
                }
                _ => continue,
            };
            denied.reason = Some(match file_of(&rule) {
                Some(file) => {
                    format!(
                        "denied by `{rule}` in {}; to allow it, remove that rule",
                        file.display()
                    )
                }
                None => format!(
                    "denied by `{rule}`; to allow it, remove that where `sandbox policy show` has \
                     network.deniedHosts from"
                ),
            });
            denied.rule = Some(rule);
            denied.allow = None;
        }
        report
    }

    fn others(&mut self) -> &mut OtherHosts {
        self.report.others.get_or_insert_default()
    }

    /// `None` if the host is not listed individually.
    fn reached(&mut self, host: &str, port: u16) -> Option<&mut ReachedHost> {
        if stands_for_many(host) {
            return None;
        }
        let hosts = &mut self.report.hosts;
        let known = hosts.iter().position(|known| known.host == host && known.port == port);
        let index = match known {
            Some(index) => index,
            None if hosts.len() >= MAX_HOSTS => return None,
            None => {
                hosts.push(ReachedHost {
                    host: host.to_owned(),
                    port,
                    connections: 0,
                    sent: 0,
                    received: 0,
                    rule: None,
                });
                hosts.len() - 1
            }
        };
        hosts.get_mut(index)
    }

    fn denied(&mut self, denied: DeniedHost) {
        let is_same =
            |known: &&mut DeniedHost| known.host == denied.host && known.port == denied.port;
        if let Some(known) = self.report.denied.iter_mut().find(is_same) {
            let count = known.count.saturating_add(denied.count);
            // After a person denied it, the last refusal gives the reason; the option that allows it stays the
            // same.
            let allow = denied.allow.clone().or_else(|| known.allow.take());
            *known = DeniedHost { count, allow, ..denied };
            return;
        }
        let list = &mut self.report.denied;
        let ports = list.iter().filter(|known| known.host == denied.host).count();
        match denied.port {
            // An option would allow only one of the ports.
            Some(_) if ports >= MAX_PORTS => {
                self.denied(DeniedHost { port: None, allow: None, ..denied });
            }
            _ if list.len() >= MAX_HOSTS => self.report.beyond += denied.count,
            _ => list.push(denied),
        }
    }
}

/// `(others)` and similar: no host name starts with a parenthesis.
fn stands_for_many(host: &str) -> bool {
    host.starts_with('(')
}

/// The egress process reports reasons as text.
fn is_listed(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason == Reason::Listed.to_string())
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
