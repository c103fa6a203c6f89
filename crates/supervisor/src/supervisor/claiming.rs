//! A sandbox that was prepared before anybody asked for it, and becomes a session when its owner claims it.
//!
//! Until then it must not be found by others, start a command, or come to the end of a time that is counted for who uses it.

use crate::control::endpoint::ClientId;
use crate::control::handshake::refused;
use crate::control::interface::{ClaimSandbox, Grace, RefusalKind, Request, Response};
use crate::error::Result;
use crate::supervisor::{Phase, Supervisor};
use palisade_record::{EventKind, SessionClaimed, SpanContext};
use rustix::process::Signal;
use std::fmt::Debug;
use std::time::Instant;

/// Makes what is written down about a sandbox that of a session. An error says why it cannot be.
pub trait ClaimRecord: Debug {
    fn claim(&self, claim: &ClaimSandbox) -> std::result::Result<(), String>;
}

impl Supervisor<'_> {
    /// Whether nobody has claimed it.
    pub(crate) fn is_prepared(&self) -> bool {
        self.control.outbox.is_prepared()
    }

    pub(super) fn claim(&mut self, client: Option<ClientId>, claim: &ClaimSandbox) -> Response {
        let is_owner = client.is_some_and(|client| self.control.outbox.is_owner(client));
        if !self.is_prepared() || !is_owner || self.phase != Phase::Running {
            let why = "the sandbox is none that waits for this client".to_owned();
            return refused(RefusalKind::OutOfOrder, why);
        }
        // The answer would reach nobody, and a session that nobody knows of would stay.
        if client.is_some_and(|client| self.control.outbox.is_hung_up(client)) {
            return refused(RefusalKind::OutOfOrder, "the client is gone".to_owned());
        }
        // First: what fails here is still to be claimed.
        if let Some(record) = &self.claim_record
            && let Err(why) = record.claim(claim)
        {
            return refused(RefusalKind::Failed, why);
        }
        let now = Instant::now();
        let waited = self.control.expiry.age(now);
        self.control.expiry.begin(now);
        self.clock.deadlines.begin(now);
        self.control.outbox.claimed(claim.is_temporary);
        let traceparent = claim.traceparent;
        let tracestate = claim.tracestate.clone();
        let tracestate = tracestate.filter(|it| traceparent.is_some() && SpanContext::is_state(it));
        if let Some(caller) = traceparent {
            self.control.spans.claimed(caller, tracestate.clone());
        }
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let name = claim.name.clone();
        let claimed = SessionClaimed { name, waited_ms, traceparent, tracestate };
        self.unlogged.push(EventKind::SessionClaimed(claimed));
        Response::Done
    }

    /// Ends it if the answer to its claim could not be sent: nobody knows that it is a session now.
    pub(crate) fn end_if_undelivered(&mut self, client: ClientId) -> Result<()> {
        if self.control.outbox.is_connected(client) {
            return Ok(());
        }
        let grace = Grace::Milliseconds(0);
        self.request(Request::End { signal: Signal::TERM.as_raw(), grace })
    }
}
