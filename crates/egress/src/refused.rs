//! A refused destination and the reason, in words for the client and for the log.

use palisade_hosts::{Host, Reason, Rules};
use palisade_record::network::{NetworkAction, NetworkAttempt, Via};

/// Somebody wants to go there.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub via: Via,
    pub host: Host,
    pub port: u16,
}

/// What kind of no it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By rule, or nobody said yes.
    Denied,
    /// The address is one that is never allowed.
    Address,
    /// What TLS or HTTP named is not what was asked for.
    Disagrees,
    /// Too many, or too much.
    Limit,
    /// The name could not be looked up.
    Lookup,
    /// Nobody answered there.
    Unreachable,
    TimedOut,
}

/// May not, or could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub cause: Cause,
    pub action: NetworkAction,
    pub host: String,
    pub port: u16,
    /// In a few words.
    pub reason: String,
    pub rule: Option<String>,
    /// The flag that would allow it, if one would.
    pub flag: Option<String>,
}

impl Refused {
    /// As it is told.
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

/// Who denied a question, in words for the client.
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

/// Nobody said yes, and a flag could.
pub(crate) fn not_allowed(wanted: &Wanted, reason: String, rules: &Rules) -> Refused {
    let flag = Some(rules.flag_for(&wanted.host, wanted.port));
    Refused { flag, ..refusal(wanted, Cause::Denied, reason) }
}

/// A rule said no.
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

/// The words and the action that go with a cause.
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
