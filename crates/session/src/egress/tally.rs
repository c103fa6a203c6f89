//! What went out in a run and what did not, for its report: counted in full, listed in part.

use palisade_hosts::Host;
use palisade_record::network::{Action, ConnectionClosed, NameQueried, NetworkAttempt, Via};
use palisade_record::{DeniedHost, NetworkReport, ReachedHost, SuspectedName};

/// So many different hosts are told apart, of each kind.
const MOST_HOSTS: usize = 500;
const MOST_SUSPECTED: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    report: NetworkReport,
}

impl Tally {
    pub(super) fn new(mode: &str) -> Self {
        Self { report: NetworkReport { mode: mode.to_owned(), ..NetworkReport::default() } }
    }

    /// What stands at the way out.
    pub(super) fn front(&mut self, front: &str) {
        front.clone_into(&mut self.report.front);
    }

    pub(super) fn attempt(&mut self, attempt: &NetworkAttempt) {
        if attempt.via == Via::Datagram {
            self.report.datagrams_rejected += attempt.count;
            return;
        }
        if attempt.action.is_allowed() {
            if let Some(reached) = self.reached(&attempt.host, attempt.port) {
                reached.connections += attempt.count;
                reached.rule.clone_from(&attempt.rule);
            } else {
                self.report.beyond += attempt.count;
            }
            return;
        }
        self.denied(DeniedHost {
            host: attempt.host.clone(),
            port: Some(attempt.port),
            action: attempt.action,
            reason: attempt.reason.clone(),
            rule: attempt.rule.clone(),
            count: attempt.count,
            allow: attempt.allow.clone(),
        });
    }

    pub(super) fn closed(&mut self, closed: &ConnectionClosed) {
        if let Some(reached) = self.reached(&closed.host, closed.port) {
            reached.sent = reached.sent.saturating_add(closed.sent);
            reached.received = reached.received.saturating_add(closed.received);
        }
    }

    pub(super) fn queried(&mut self, queried: &NameQueried) {
        let queries = &mut self.report.queries;
        match queried.answer.as_str() {
            "NOERROR" => queries.answered += queried.count,
            _ => queries.refused += queried.count,
        }
        if let Some(suspicion) = &queried.suspicion {
            queries.suspicious += queried.count;
            if queries.suspected.len() < MOST_SUSPECTED {
                let (name, suspicion) = (queried.name.clone(), suspicion.clone());
                queries.suspected.push(SuspectedName { name, suspicion });
            }
        }
        // A program that gets no address makes no connection: this is all that is seen of it.
        let is_unknown = queried.reason.is_some() && queried.rule.is_none();
        if let Some(host) = Host::parse(&queried.name).ok().filter(|_| is_unknown) {
            self.denied(DeniedHost {
                host: queried.name.clone(),
                port: None,
                action: Action::ProxyBlockedDns,
                reason: queried.reason.clone(),
                rule: None,
                count: queried.count,
                // For whatever port it was looked up.
                allow: queried.suspicion.is_none().then(|| format!("--allow-host {host}")),
            });
        }
    }

    pub(super) fn into_report(self) -> NetworkReport {
        self.report
    }

    fn reached(&mut self, host: &str, port: u16) -> Option<&mut ReachedHost> {
        let hosts = &mut self.report.hosts;
        let known = hosts.iter().position(|known| known.host == host && known.port == port);
        let index = match known {
            Some(index) => index,
            None if hosts.len() >= MOST_HOSTS => return None,
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
        let list = &mut self.report.denied;
        let is_full = list.len() >= MOST_HOSTS;
        let mut known = list.iter_mut();
        match known.find(|known| known.host == denied.host && known.port == denied.port) {
            Some(known) => {
                let count = known.count.saturating_add(denied.count);
                // Once somebody has said no, the next refusal is for that; what allows it stays the same.
                let allow = denied.allow.clone().or_else(|| known.allow.take());
                *known = DeniedHost { count, allow, ..denied };
            }
            None if is_full => self.report.beyond += denied.count,
            None => list.push(denied),
        }
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
