//! The supervisor's side of network egress (NET-3 to NET-8): starts the egress process, receives its events and
//! asks people on its behalf.
//!
//! `state` decides how to react to events; this file owns the process and carries the decisions out. The egress
//! process judges connections; nothing here does. If egress fails, the run is ended: it must not continue
//! without a log of its connection attempts.

mod asker;
mod state;
mod tally;

use crate::answers::{Answers, HostAnswer, SharedStore};
use crate::asking::{Asking, People};
use crate::error::{Result, SupervisorError};
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

/// Messages received in one turn of the main loop: timers and signals must not wait for a flood to end.
const MESSAGES_A_TURN: usize = 256;
/// How long the process may take at the end to send its remaining events: its own shutdown limit, plus a second
/// to exit. A shorter timeout would lose the last connections from log and report.
const FAREWELL: Duration =
    palisade_egress::MAX_SHUTDOWN_TIME.saturating_add(Duration::from_secs(1));

/// What the run reached on the network, and the answers that people gave.
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
    /// `None` once the process has been started.
    config: Option<Config>,
    process: Option<EgressProcess>,
    /// The sandbox's pid 1, as the host numbers it, then the spawner.
    roots: Vec<u32>,
    stores: SharedStore,
    /// Answers that could not be saved.
    notes: Vec<String>,
}

impl<'p> EgressControl<'p> {
    /// `None` if the plan has neither egress nor published ports. Without a `config` no process is started.
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

    /// Called when the namespace exists and its listeners have been received.
    pub(crate) fn start(&mut self, inside: InsideNetwork, running: &Running) -> Result<()> {
        self.roots = running.roots();
        if !matches!(self.plan.sandbox.egress, Some(Egress::Nat(_))) {
            self.state.tally.front(inside.front.name());
        }
        let Some(config) = self.config.take() else { return Ok(()) };
        self.process = Some(EgressProcess::start(running.helpers(), self.plan, config, inside)?);
        Ok(())
    }

    /// Readable when the process has sent something or has exited.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(EgressProcess::socket)
    }

    /// Receives the process's messages, at most [`MESSAGES_A_TURN`] of them.
    pub(crate) fn hear(
        &mut self,
        asking: &mut Asking,
        terminal: Option<&HostTerminal>,
    ) -> Result<()> {
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
                    // Its exit status says whether it failed.
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

    /// Gives questions that found no room their turn.
    pub(crate) fn readmit(&mut self, asking: &mut Asking, terminal: Option<&HostTerminal>) {
        if self.state.may_readmit(&asking.moment(People::Nobody)) {
            let people = asking.people(terminal, self.state.on_ask());
            self.state.readmit(&mut asking.moment(people));
        }
    }

    /// A person answered, or the question timed out.
    pub(crate) fn decided(&mut self, decided: Decided) {
        self.state.carry_out(decided, Now::read());
    }

    /// Answers that people gave for the session.
    pub(crate) fn answered(&self) -> &[HostAnswer] {
        &self.state.answered
    }

    /// Carries out the actions that the state has queued.
    pub(crate) fn act(
        &mut self,
        asking: &mut Asking,
        log: &mut dyn FnMut(EventKind),
    ) -> Result<()> {
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

    /// Called when no process is left inside. Receives the remaining events, for at most [`FAREWELL`].
    pub(crate) fn finish(&mut self, asking: &mut Asking, log: &mut dyn FnMut(EventKind)) {
        let until = Instant::now() + FAREWELL;
        if let Some(process) = self.process.take()
            && process.end().is_ok()
        {
            self.hear_the_rest(&process, asking, until);
        }
        self.state.process_is_gone(&mut asking.moment(People::Nobody));
        // The process needs no answers any more, but what it reported is still recorded.
        let _ = self.act(asking, log);
    }

    /// Receives until the process closes its socket.
    fn hear_the_rest(&mut self, process: &EgressProcess, asking: &mut Asking, until: Instant) {
        loop {
            match process.receive() {
                EgressMessage::EgressEvent(event) => {
                    // All processes inside have ended, so the asker cannot be found.
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

    /// The summary at the end of the run.
    pub(crate) fn end(self) -> EgressSummary {
        let EgressState { tally, answered, .. } = self.state;
        let report = tally.into_report(|host| self.stores.file_that_denies(host));
        EgressSummary { report, answered, notes: self.notes }
    }
}
