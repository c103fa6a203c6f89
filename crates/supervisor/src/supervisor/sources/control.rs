//! The client at the socket: its requests, and that it is gone.

use super::EventSource;
use crate::control::connection::Incoming;
use crate::control::handshake::refused;
use crate::control::interface::{Grace, RefusalKind, Request};
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Reply, Supervisor};
use rustix::event::PollFlags;
use rustix::process::Signal;
use std::time::Instant;

/// The clock and signals must not wait for the end of a flood.
const REQUESTS_A_TURN: usize = 16;

pub(super) struct Control;

impl EventSource for Control {
    /// The sandbox ends with the client that made it.
    fn prepare(&self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        if !supervisor.control.outbox.has_lost_client() {
            return Ok(());
        }
        let grace = Grace::Milliseconds(0);
        supervisor.request(Request::End { signal: Signal::TERM.as_raw(), grace })
    }

    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        let Some((socket, interest)) = supervisor.control.outbox.watched() else { return };
        // Requests wait until commands can be started. That the client is gone is reported in any case.
        let interest = if supervisor.is_started() { interest } else { PollFlags::empty() };
        set.add(0, socket, interest);
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.control.outbox.next_retry()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.control.outbox.flush();
        if ready.is_empty() {
            return Ok(());
        }
        if !supervisor.is_started() {
            supervisor.control.outbox.lose_client();
            return Ok(());
        }
        for _ in 0..REQUESTS_A_TURN {
            let Reply { response, descriptor } = match supervisor.control.outbox.receive() {
                Incoming::Nothing | Incoming::Closed => break,
                Incoming::Malformed(why) => refused(RefusalKind::Malformed, why).into(),
                Incoming::Request(request, descriptors) => {
                    supervisor.handle(request, descriptors)?
                }
            };
            supervisor.control.outbox.respond(response, descriptor);
        }
        Ok(())
    }
}
