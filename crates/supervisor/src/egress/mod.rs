//! The supervisor's side of the way out (NET-3 to NET-8): starts the egress process, hears it, asks for it.
//!
//! `state` decides what follows from what the process says; this file holds the process and carries that out. The process
//! judges connections; nothing here does. A run whose way out has gone wrong is ended: it must not go on with nobody
//! logging what it tries.

mod asker;
mod state;
mod tally;

use crate::answers::{Answers, HostAnswer, SharedStore};
use crate::asking::{Asking, People};
use crate::error::SupervisorError;
use crate::terminal::HostTerminal;
use palisade_ask::{Decided, Now};
use palisade_egress::config::Config;
use palisade_egress::wire::EgressEvent;
use palisade_gate::Effect;
use palisade_launch::{EgressMessage, EgressProcess, InsideNetwork, Running};
use palisade_plan::model::{Egress, Plan};
use palisade_record::{EventKind, NetworkReport};
use rustix::event::{PollFd, PollFlags};
use state::{Action, EgressState};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tally::Tally;

/// Heard in one turn of the loop: clock and signals must not wait for the end of a flood.
const MESSAGES_A_TURN: usize = 256;
/// So long the process may take to say what is yet untold, when all is over: all that it allows itself, and a second to
/// be gone. Whoever stops listening before that loses the last connections out of log and report.
const FAREWELL: Duration =
    palisade_egress::MAX_SHUTDOWN_TIME.saturating_add(Duration::from_secs(1));

/// What went out, and what people answered.
#[derive(Debug, Default)]
pub struct EgressSummary {
    pub report: NetworkReport,
    pub answered: Vec<HostAnswer>,
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct EgressControl<'p> {
    plan: &'p Plan,
    state: EgressState,
    /// Until the process is started with it.
    config: Option<Config>,
    process: Option<EgressProcess>,
    /// Pid 1 inside, as the host numbers it, then the spawner.
    roots: Vec<u32>,
    stores: SharedStore,
    /// Answers that could not be kept.
    notes: Vec<String>,
}

impl<'p> EgressControl<'p> {
    /// None where nothing leads out or in, or no wall is around it. Without a `config` no process is started.
    pub fn of(plan: &'p Plan, config: Option<Config>, stores: SharedStore) -> Option<Self> {
        if plan.sandbox.egress.is_none() && plan.sandbox.publish.is_empty() {
            return None;
        }
        let mut tally = Tally::new(plan.sandbox.network.name());
        let patience = match &plan.sandbox.egress {
            Some(Egress::Proxy(proxy)) => Duration::from_millis(proxy.ask_timeout_ms),
            Some(Egress::Nat(_)) => {
                tally.front("nat");
                Duration::ZERO
            }
            None => Duration::ZERO,
        };
        let state = EgressState::new(plan.supervision.on_ask, patience, tally);
        Some(Self {
            plan,
            state,
            config,
            process: None,
            roots: Vec::new(),
            stores,
            notes: Vec::new(),
        })
    }

    /// The namespace is there, and its listeners came out of it.
    pub(crate) fn start(
        &mut self,
        inside: InsideNetwork,
        running: &Running,
    ) -> Result<(), SupervisorError> {
        self.roots = running.roots();
        if !matches!(self.plan.sandbox.egress, Some(Egress::Nat(_))) {
            self.state.tally.front(inside.front.name());
        }
        let Some(config) = self.config.take() else { return Ok(()) };
        self.process = Some(EgressProcess::start(running.helpers(), self.plan, config, inside)?);
        Ok(())
    }

    /// Readable when the process says something, or is gone.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(EgressProcess::socket)
    }

    /// Hears what the process said, a part of it if it says very much.
    pub(crate) fn hear(
        &mut self,
        asking: &mut Asking,
        terminal: Option<&HostTerminal>,
    ) -> Result<(), SupervisorError> {
        for _ in 0..MESSAGES_A_TURN {
            let Some(process) = &self.process else { return Ok(()) };
            let event = match process.receive() {
                EgressMessage::EgressEvent(event) => event,
                EgressMessage::Nothing => return Ok(()),
                EgressMessage::Garbled => {
                    let why = "an invalid message".to_owned();
                    return Err(SupervisorError::EgressFailed(why));
                }
                EgressMessage::Gone => {
                    self.process = None;
                    // Whether it died is known by its status.
                    self.state.process_is_gone(&mut asking.moment(People::Nobody));
                    return Ok(());
                }
            };
            let people = match &event {
                EgressEvent::Asked { .. } => asking.people(terminal, self.state.on_ask()),
                _ => People::Nobody,
            };
            let asker = |client| asker::asker(&self.roots, client);
            self.state.event(event, asker, &mut asking.moment(people));
        }
        Ok(())
    }

    /// Somebody answered, or nobody did in time.
    pub(crate) fn decided(&mut self, decided: Decided) {
        self.state.carry_out(decided, Now::read());
    }

    /// What people answered for the session.
    pub(crate) fn answered(&self) -> &[HostAnswer] {
        &self.state.answered
    }

    /// Carries out what the state asks for.
    pub(crate) fn act(
        &mut self,
        asking: &mut Asking,
        log: &mut dyn FnMut(EventKind),
    ) -> Result<(), SupervisorError> {
        while let Some(action) = self.state.actions.pop_front() {
            match action {
                Action::Send(order) => {
                    self.process.as_ref().map_or(Ok(()), |process| process.send(&order))?;
                }
                Action::Record(kind) => log(kind),
                Action::Opened(id) => asking.opened(id),
                Action::Joined(id) => asking.changed(id),
                Action::Closed(decided) => asking.closed(&decided),
                Action::Save(answer, store) => {
                    let HostAnswer { effect, host, .. } = &*answer;
                    let denied = (*effect == Effect::Deny).then(|| host.clone());
                    let answers = Answers { rules: Vec::new(), hosts: vec![*answer] };
                    match self.stores.save(&answers, store) {
                        Ok(_) => {
                            denied.into_iter().for_each(|host| self.state.tally.forbidden(host));
                        }
                        Err(error) => self.notes.push(format!("an answer was not saved: {error}")),
                    }
                }
                Action::EndRun(why) => return Err(SupervisorError::EgressFailed(why)),
            }
        }
        Ok(())
    }

    /// Nobody inside is left. What the process has yet to tell is heard, for a moment at most.
    pub(crate) fn finish(&mut self, asking: &mut Asking, log: &mut dyn FnMut(EventKind)) {
        let until = Instant::now() + FAREWELL;
        if let Some(process) = self.process.take()
            && process.end().is_ok()
        {
            self.hear_the_rest(&process, asking, until);
        }
        self.state.process_is_gone(&mut asking.moment(People::Nobody));
        // Who is gone needs no answers; what was told is still recorded.
        let _ = self.act(asking, log);
    }

    /// Until the process is gone, which is its last word.
    fn hear_the_rest(&mut self, process: &EgressProcess, asking: &mut Asking, until: Instant) {
        loop {
            match process.receive() {
                EgressMessage::EgressEvent(event) => {
                    // Nobody is left who could have asked.
                    self.state.event(event, |_| None, &mut asking.moment(People::Nobody));
                }
                EgressMessage::Nothing => {
                    let left = until.saturating_duration_since(Instant::now());
                    let mut set = [PollFd::from_borrowed_fd(process.socket(), PollFlags::IN)];
                    let heard = palisade_sys::proc::poll(&mut set, Some(left));
                    if left.is_zero() || heard.is_err() {
                        return;
                    }
                }
                EgressMessage::Gone | EgressMessage::Garbled => return,
            }
        }
    }

    /// What is left to tell at the end.
    pub(crate) fn end(self) -> EgressSummary {
        let EgressState { tally, answered, .. } = self.state;
        let report = tally.into_report(|host| self.stores.file_that_denies(host));
        EgressSummary { report, answered, notes: self.notes }
    }
}
