//! Combines many similar events into one: which belong together, and what the sum contains.
//!
//! A sum must never claim for all events what is true for some: fields that differ are left out.

use crate::wire::EgressEvent;
use palisade_record::network::{
    ConnectionClosed, NameQueried, NetworkAction, NetworkAttempt, OTHERS, Via,
};

/// Replaces the individual suspicions in a sum.
const SUSPICIOUS: &str = "data in names";

/// Events with the same key are added up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Reached {
        via: Via,
        host: String,
        port: u16,
    },
    /// By host only, so that a port scan is reported in one line.
    Refused {
        action: NetworkAction,
        via: Via,
        host: String,
    },
    Closed {
        via: Via,
        host: String,
        port: u16,
    },
    Queried {
        name: String,
        record: String,
        answer: String,
        suspicion: Option<String>,
    },
}

impl Key {
    /// `None` for events that are always reported singly.
    pub(super) fn of(event: &EgressEvent) -> Option<Self> {
        Some(match event {
            EgressEvent::Attempt(NetworkAttempt { action, via, host, port, .. }) => {
                let (via, host) = (*via, host.clone());
                match action.is_allowed() {
                    true => Self::Reached { via, host, port: *port },
                    false => Self::Refused { action: *action, via, host },
                }
            }
            EgressEvent::Closed(closed) => {
                Self::Closed { via: closed.via, host: closed.host.clone(), port: closed.port }
            }
            EgressEvent::Queried(queried) => Self::Queried {
                name: queried.name.clone(),
                record: queried.record.clone(),
                answer: queried.answer.clone(),
                suspicion: queried.suspicion.clone(),
            },
            EgressEvent::Ready
            | EgressEvent::Asked { .. }
            | EgressEvent::Withdrawn { .. }
            | EgressEvent::Unable { .. } => {
                return None;
            }
        })
    }

    /// Whether it concerns an outgoing connection. Connections to published ports do not count.
    pub(super) fn is_of_way_out(&self) -> bool {
        match self {
            Self::Reached { via, .. } | Self::Closed { via, .. } => *via != Via::Published,
            Self::Refused { .. } | Self::Queried { .. } => false,
        }
    }

    /// Host and port of a connection that is or was open.
    pub(super) fn place(&self) -> Option<(&str, u16)> {
        match self {
            Self::Reached { host, port, .. } | Self::Closed { host, port, .. } => {
                Some((host, *port))
            }
            Self::Refused { .. } | Self::Queried { .. } => None,
        }
    }

    pub(super) fn among_others(self) -> Self {
        let host = OTHERS.to_owned();
        match self {
            Self::Reached { via, .. } => Self::Reached { via, host, port: 0 },
            Self::Refused { action, via, .. } => Self::Refused { action, via, host },
            Self::Closed { via, .. } => Self::Closed { via, host, port: 0 },
            Self::Queried { answer, suspicion, .. } => Self::Queried {
                name: host,
                record: String::new(),
                answer,
                suspicion: suspicion.map(|_| SUSPICIOUS.to_owned()),
            },
        }
    }
}

pub(super) fn among_others(event: EgressEvent) -> EgressEvent {
    match event {
        EgressEvent::Attempt(attempt) => EgressEvent::Attempt(NetworkAttempt {
            host: OTHERS.to_owned(),
            address: None,
            port: 0,
            rule: None,
            reason: None,
            allow: None,
            ..attempt
        }),
        EgressEvent::Closed(closed) => EgressEvent::Closed(ConnectionClosed {
            host: OTHERS.to_owned(),
            address: None,
            port: 0,
            ..closed
        }),
        EgressEvent::Queried(queried) => EgressEvent::Queried(NameQueried {
            name: OTHERS.to_owned(),
            record: "any".to_owned(),
            rule: None,
            reason: None,
            suspicion: queried.suspicion.map(|_| SUSPICIOUS.to_owned()),
            ..queried
        }),
        other => other,
    }
}

/// Adds an event to the sum of its key.
pub(super) fn join(sum: &mut EgressEvent, event: EgressEvent) {
    match (sum, event) {
        (EgressEvent::Attempt(sum), EgressEvent::Attempt(more)) => {
            sum.count = sum.count.saturating_add(more.count);
            if sum.port != more.port {
                sum.port = 0;
            }
            keep_common(&mut sum.address, more.address.as_ref());
            keep_common(&mut sum.rule, more.rule.as_ref());
            keep_common(&mut sum.reason, more.reason.as_ref());
            keep_common(&mut sum.allow, more.allow.as_ref());
        }
        (EgressEvent::Closed(sum), EgressEvent::Closed(more)) => {
            sum.count = sum.count.saturating_add(more.count);
            sum.sent = sum.sent.saturating_add(more.sent);
            sum.received = sum.received.saturating_add(more.received);
            sum.duration_ms = sum.duration_ms.saturating_add(more.duration_ms);
            keep_common(&mut sum.address, more.address.as_ref());
        }
        (EgressEvent::Queried(sum), EgressEvent::Queried(more)) => {
            sum.count = sum.count.saturating_add(more.count);
            keep_common(&mut sum.rule, more.rule.as_ref());
            keep_common(&mut sum.reason, more.reason.as_ref());
        }
        // Keys of different kinds are never equal.
        _ => {}
    }
}

fn keep_common<T: PartialEq>(sum: &mut Option<T>, more: Option<&T>) {
    if sum.as_ref() != more {
        *sum = None;
    }
}
