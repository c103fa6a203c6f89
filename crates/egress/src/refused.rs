//! A refused destination, with the reason for the client and the log.

use palisade_hosts::{Host, Reason, Rules};
use palisade_record::network::{NetworkAction, NetworkAttempt, Via};

/// A requested destination.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub via: Via,
    pub host: Host,
    pub port: u16,
}

/// The kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Denied by a rule, or not allowed by anybody.
    Denied,
    /// The address is always blocked.
    Address,
    /// TLS or HTTP names another host than the requested one.
    Disagrees,
    /// A limit on connections, names or bytes is reached.
    Limit,
    /// The name could not be resolved.
    Lookup,
    /// The connection could not be established.
    Unreachable,
    TimedOut,
}

/// A connection that is denied or has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub cause: Cause,
    pub action: NetworkAction,
    pub host: String,
    pub port: u16,
    /// For the client and the log.
    pub reason: String,
    pub rule: Option<String>,
    /// The option that would allow it, if any.
    pub flag: Option<String>,
}

impl Refused {
    /// As an event.
    pub fn attempt(&self, via: Via) -> NetworkAttempt {
        NetworkAttempt {
            action: self.action,
            via,
            host: self.host.clone(),
            address: None,
            port: self.port,
            rule: self.rule.clone(),
            reason: Some(self.reason.clone()),
            allow: self.flag.clone(),
            count: 1,
        }
    }
}

/// Who denied a question, for the client.
pub(crate) fn said_no(source: &str) -> &str {
    match source {
        "terminal" | "socket" => "somebody said no",
        "timeout" => "nobody answered in time",
        "nobody-to-ask" => "nobody is there to ask",
        "too-many-questions" => "too many questions are open",
        "on-ask" => "the policy answers no",
        other => other,
    }
}

/// No rule allows it, but an option could.
pub(crate) fn not_allowed(wanted: &Wanted, reason: String, rules: &Rules) -> Refused {
    let flag = Some(rules.flag_for(&wanted.host, wanted.port));
    Refused { flag, ..refusal(wanted, Cause::Denied, reason) }
}

/// A rule denies it.
pub(crate) fn denied(
    wanted: &Wanted,
    rule: Option<String>,
    reason: &Reason,
    rules: &Rules,
) -> Refused {
    let text = reason.to_string();
    let refused = match reason {
        Reason::Port => {
            Refused { action: NetworkAction::ProxyDeniedPort, ..not_allowed(wanted, text, rules) }
        }
        Reason::Address(_) => refusal(wanted, Cause::Address, text),
        _ => refusal(wanted, Cause::Denied, text),
    };
    Refused { rule, ..refused }
}

/// Builds a refusal with the action that belongs to its cause.
pub(crate) fn refusal(wanted: &Wanted, cause: Cause, reason: String) -> Refused {
    let action = match (cause, &wanted.host) {
        (Cause::Lookup, _) => NetworkAction::ProxyBlockedDns,
        (Cause::Address, Host::Name(_)) => NetworkAction::DnsRebindBlocked,
        _ => NetworkAction::ProxyDenied,
    };
    Refused {
        cause,
        action,
        host: wanted.host.to_string(),
        port: wanted.port,
        reason,
        rule: None,
        flag: None,
    }
}
