//! The answers of the resolver inside (NET-6): synthetic addresses for names that may be reached, nothing for
//! the rest.
//!
//! Only a name that a rule allows is looked up outside, and only its addresses. No other name and no other
//! record type may ever be queried there: a DNS query carries data out as well as a connection does (N03).

use super::Counted;
use super::message::{Answer, Query, Subject};
use crate::config::OnUnknown;
use crate::engine::Engine;
use crate::lookup::{LookupError, Pinned};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{Name as WireName, RData, RecordType};
use palisade_hosts::{Name, Verdict};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The answer, and what the log says about it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) answer: Answer,
    pub(super) rule: Option<String>,
    pub(super) reason: Option<String>,
}

/// The result of the steps that need no waiting.
#[derive(Debug)]
pub(super) enum Step {
    Answered(Outcome),
    /// Allowed by the rule; its addresses have to be looked up.
    LookUp {
        name: Name,
        rule: String,
    },
}

impl Outcome {
    fn good(answer: Answer) -> Self {
        Self { answer, rule: None, reason: None }
    }

    fn plain(code: ResponseCode) -> Self {
        Self::good(Answer::empty(code))
    }

    /// Without a rule, the reason means that nothing allows the name.
    pub(super) fn bad(code: ResponseCode, reason: impl Into<String>) -> Self {
        Self { answer: Answer::empty(code), rule: None, reason: Some(reason.into()) }
    }

    pub(super) fn by(self, rule: Option<String>) -> Self {
        Self { rule, ..self }
    }
}

/// Answers everything that needs no lookup outside.
pub(super) fn first(engine: &Engine, query: &Query) -> Step {
    if !query.is_internet() {
        return Step::Answered(Outcome::plain(ResponseCode::Refused));
    }
    Step::Answered(match query.subject() {
        Subject::Root => Outcome::plain(ResponseCode::NoError),
        Subject::NoHostName => Outcome::plain(ResponseCode::NXDomain),
        Subject::Reverse(address) => reverse(engine, query, address),
        // `localhost` is never forwarded (RFC 6761), and the sandbox has its own loopback.
        Subject::Name(name) if is_localhost(&name) => {
            address(query, Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
        }
        Subject::Name(name) => match engine.judge_name(&name) {
            Verdict::Allowed { rule } if !is_address(query) => nothing_here().by(Some(rule)),
            // The upstream proxy resolves names.
            Verdict::Allowed { rule } if engine.config.upstream.is_some() => {
                stand_in(engine, query, &name).by(Some(rule))
            }
            Verdict::Allowed { rule } => return Step::LookUp { name, rule },
            // The connection asks. Until a person allows it, nobody outside learns the name.
            open if open.is_open() && engine.config.on_unknown == OnUnknown::Ask => {
                stand_in(engine, query, &name)
            }
            Verdict::Denied { rule, reason } => {
                Outcome::bad(ResponseCode::NXDomain, reason.to_string()).by(rule)
            }
            Verdict::Unknown => Outcome::bad(ResponseCode::NXDomain, "no rule allows it"),
        },
    })
}

/// Looks up an allowed name. A name that does not exist must not appear to exist, and one that resolves to a
/// blocked address is refused before anything connects.
pub(super) async fn look_up(
    engine: &Engine,
    query: &Query,
    name: &Name,
    counted: Counted,
    rule: String,
) -> Outcome {
    let outcome = match engine.look_up(name, counted).await {
        Ok(Pinned { resolved, .. }) => {
            if let Err(reason) = engine.check_aliases(&resolved.aliases, None) {
                return Outcome::bad(ResponseCode::NXDomain, reason).by(Some(rule));
            }
            let blocked = resolved.addresses.iter().find_map(|address| {
                engine.check_address(*address).err().map(|blocked| (address, blocked))
            });
            match blocked {
                Some((address, blocked)) => Outcome::bad(
                    ResponseCode::Refused,
                    format!("stands for {address}, blocked: {blocked}"),
                ),
                None => stand_in(engine, query, name),
            }
        }
        Err(LookupError::NoAddress) => nothing_here(),
        Err(error @ LookupError::NotFound) => {
            Outcome::bad(ResponseCode::NXDomain, error.to_string())
        }
        Err(error) => Outcome::bad(ResponseCode::ServFail, error.to_string()),
    };
    outcome.by(Some(rule))
}

fn is_address(query: &Query) -> bool {
    matches!(query.record_type(), RecordType::A | RecordType::AAAA)
}

fn is_localhost(name: &Name) -> bool {
    name.labels().last() == Some("localhost")
}

/// The name exists, but has no record of this type.
fn nothing_here() -> Outcome {
    Outcome::plain(ResponseCode::NoError)
}

fn address(query: &Query, v4: Ipv4Addr, v6: Ipv6Addr) -> Outcome {
    match query.record_type() {
        RecordType::A => Outcome::good(Answer::with(RData::A(A(v4)))),
        RecordType::AAAA => Outcome::good(Answer::with(RData::AAAA(AAAA(v6)))),
        _ => nothing_here(),
    }
}

/// Answers both families, whatever addresses the name has outside: the egress process chooses the address to
/// connect to.
fn stand_in(engine: &Engine, query: &Query, name: &Name) -> Outcome {
    if !is_address(query) {
        return nothing_here();
    }
    match engine.dns.synthetic.stand_in(name) {
        Some(stand_in) => address(query, stand_in.v4, stand_in.v6),
        None => Outcome::bad(ResponseCode::ServFail, "no address is free to stand for it"),
    }
}

fn reverse(engine: &Engine, query: &Query, address: IpAddr) -> Outcome {
    let name = if address.is_loopback() {
        WireName::from_ascii("localhost.").ok()
    } else {
        let name = engine.dns.name_of(address);
        name.and_then(|name| WireName::from_ascii(format!("{name}.")).ok())
    };
    match (name, query.record_type()) {
        (Some(name), RecordType::PTR) => Outcome::good(Answer::with(RData::PTR(PTR(name)))),
        (Some(_), _) => nothing_here(),
        (None, _) => Outcome::plain(ResponseCode::NXDomain),
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
