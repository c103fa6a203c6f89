//! The clients at sockets: who comes, what they request, and who is gone.

use super::EventSource;
use crate::control::connection::Incoming;
use crate::control::endpoint::ClientId;
use crate::control::handshake::{greet, refused};
use crate::control::interface::{Grace, RefusalKind, Request, Response};
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Reply, Supervisor};
use rustix::event::PollFlags;
use rustix::process::Signal;
use std::time::Instant;

/// The clock and signals must not wait for the end of a flood.
const REQUESTS_A_TURN: usize = 16;
/// Keys in the poll set; a client's is its number plus this.
const LISTENER: usize = 0;
const FIRST_CLIENT: usize = 1;

pub(super) struct Control;

impl EventSource for Control {
    fn prepare(&self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        for client in supervisor.control.outbox.take_gone() {
            supervisor.client_is_gone(client)?;
        }
        Ok(())
    }

    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        let control = &supervisor.control;
        if let Some(listener) = control.outbox.listener().filter(|_| supervisor.is_started()) {
            set.add(LISTENER, listener, PollFlags::IN);
        }
        for (client, socket, interest) in control.outbox.watched() {
            // Requests wait until commands can be started, and while a command does not read what was typed for it. That
            // the client is gone is reported in any case.
            let takes_requests = supervisor.is_started() && !control.held.is_congested(client);
            let interest = if takes_requests { interest } else { interest - PollFlags::IN };
            let interest = if supervisor.is_started() { interest } else { PollFlags::empty() };
            set.add(FIRST_CLIENT + usize::from(client), socket, interest);
        }
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.control.outbox.next_retry()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.control.outbox.flush();
        let clients: Vec<_> = supervisor.control.outbox.watched().map(|(id, ..)| id).collect();
        for client in &clients {
            let events = ready.at(FIRST_CLIENT + usize::from(*client));
            if !events.is_empty() {
                let is_gone = events.intersects(PollFlags::HUP | PollFlags::ERR);
                supervisor.attend(*client, is_gone)?;
            }
        }
        if !ready.at(LISTENER).is_empty() {
            supervisor.take_in(&clients)?;
        }
        Ok(())
    }
}

impl Supervisor<'_> {
    /// Serves new clients at once: most have sent their first requests by now.
    fn take_in(&mut self, clients: &[ClientId]) -> Result<()> {
        let accepted = self.control.outbox.accept();
        // Who was gone before they came is gone for them, too: one that ended may have held what they ask for.
        for client in clients {
            let outbox = &self.control.outbox;
            if outbox.is_connected(*client) && outbox.is_hung_up(*client) {
                self.attend(*client, true)?;
            }
        }
        for client in self.control.outbox.take_gone() {
            self.client_is_gone(client)?;
        }
        for client in accepted {
            self.serve_client(client)?;
        }
        Ok(())
    }

    fn attend(&mut self, client: ClientId, is_gone: bool) -> Result<()> {
        let is_served = self.is_started() && !(is_gone && self.control.held.is_congested(client));
        match is_served {
            true => self.serve_client(client)?,
            false => self.control.outbox.drop_client(client),
        }
        Ok(())
    }

    fn serve_client(&mut self, client: ClientId) -> Result<()> {
        for _ in 0..REQUESTS_A_TURN {
            if self.control.held.is_congested(client) {
                break;
            }
            let mut is_claim = false;
            let Reply { response, descriptor } = match self.control.outbox.receive(client) {
                Incoming::Nothing | Incoming::Closed => break,
                Incoming::Malformed(why) => refused(RefusalKind::Malformed, why).into(),
                Incoming::Request(request, _) if !self.control.outbox.has_greeted(client) => {
                    let response = greet(&request);
                    if let Response::Hello { .. } = response {
                        self.control.outbox.greeted(client);
                    }
                    response.into()
                }
                Incoming::Request(request, descriptors) => {
                    is_claim = matches!(request, Request::Claim(_));
                    self.handle_from(Some(client), request, descriptors)?
                }
            };
            let is_claimed = is_claim && matches!(response, Response::Done);
            self.control.outbox.respond(client, response, descriptor);
            if is_claimed {
                self.end_if_undelivered(client)?;
            }
        }
        Ok(())
    }

    /// The sandbox ends with the client that made it. A session goes on: what the client has started with streams of its own
    /// hears of it as a job hears that its terminal is gone, and who was attached is so no longer.
    fn client_is_gone(&mut self, client: ClientId) -> Result<()> {
        if self.control.outbox.is_owner(client) {
            let grace = Grace::Milliseconds(0);
            return self.request(Request::End { signal: Signal::TERM.as_raw(), grace });
        }
        self.control.held.forget_client(client);
        for command in self.control.outbox.forget_starter(client) {
            if self.control.held.status(command).is_none() {
                for signal in [Signal::HUP, Signal::CONT] {
                    self.request(Request::Signal { command, signal: signal.as_raw() })?;
                }
            }
        }
        Ok(())
    }
}
