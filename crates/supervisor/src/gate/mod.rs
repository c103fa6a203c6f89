//! The gate: blocked until somebody says yes, then the same call goes on (GATE-1 to GATE-8).
//!
//! `state` decides what comes next, `grants` what is under way; this file holds the sockets and the terminal
//! and carries it out. Nothing here waits: it is part of the supervisor's one poll loop.

mod action;
mod grants;
mod inquiry;
mod made_files;
mod records;
mod state;
mod tally;
mod verdict;

use crate::answers::SharedStore;
use crate::asking::{Asking, People};
use crate::error::SupervisorError;
use crate::log_budget::Excess;
use crate::terminal::HostTerminal;
use action::Action;
pub use grants::is_library;
use palisade_ask::{Decided, Now};
use palisade_broker::PathAccess;
use palisade_gate::Rule;
use palisade_keeper::{KeeperEvent, KeeperRequest};
use palisade_launch::{Keeper, Running};
use palisade_plan::model::Plan;
use palisade_record::{EventKind, RunReport};
use palisade_sys::FileIdentity;
use state::GateState;
use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tally::Tally;

/// So many questions to the keeper are under way at once.
const MAX_AWAITED: usize = 32;
/// In this time it says something, or (a dead network mount) it counts as stuck.
const KEEPER_ANSWERS_IN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Gate<'p> {
    plan: &'p Plan,
    state: GateState<'p>,
    keeper: Option<Keeper>,
    /// What the keeper has not been asked yet: it gets no more at once than it can take.
    unasked: VecDeque<KeeperRequest>,
    /// Answers of the keeper's that are to come, and when it was last heard.
    awaited: usize,
    heard: Instant,
    stores: SharedStore,
}

/// What a run touched outside its view, and what people answered.
#[derive(Debug, Default)]
pub struct Touched {
    tally: Tally,
    pub answered: Vec<Rule>,
    /// Where something was put into the view.
    pub shown: HashSet<PathBuf>,
}

impl Touched {
    pub fn report(self, report: &mut RunReport) {
        self.tally.report(report);
    }
}

impl<'p> Gate<'p> {
    /// None where nothing is asked in this plan.
    pub fn of(
        plan: &'p Plan,
        rules: Vec<Rule>,
        home: Option<PathBuf>,
        stores: SharedStore,
    ) -> Option<Self> {
        let gate = plan.sandbox.gate.as_ref()?;
        let state =
            GateState::new(gate, home, rules, Excess::of(plan), plan.sandbox.guard.as_ref());
        Some(Self {
            plan,
            state,
            keeper: None,
            unasked: VecDeque::new(),
            awaited: 0,
            heard: Instant::now(),
            stores,
        })
    }

    pub(crate) fn touched(
        &mut self,
        request: PathAccess,
        asking: &mut Asking,
        terminal: Option<&HostTerminal>,
    ) {
        // It matters only to who joins a question.
        let people = match asking.has_questions() {
            true => asking.people(terminal, self.state.on_ask()),
            false => People::Nobody,
        };
        self.state.touched(request, &mut asking.moment(people));
    }

    pub(crate) fn returned(&mut self, request: u64) {
        self.state.returned(request);
    }

    pub(crate) fn made(&mut self, request: u64, file: FileIdentity) {
        self.state.made(request, file);
    }

    pub(crate) fn withdrawn(&mut self, request: u64, asking: &mut Asking) {
        let at = asking.moment(People::Nobody);
        self.state.withdrawn(request, at.queue, at.now);
    }

    /// Somebody answered, or nobody did in time.
    pub(crate) fn decided(&mut self, decided: Decided) {
        self.state.carry_out(decided, Now::read());
    }

    /// What people answered for the session.
    pub(crate) fn answered(&self) -> &[Rule] {
        &self.state.answered
    }

    /// Readable when the keeper says something; none before there is one.
    pub(crate) fn keeper(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(Keeper::socket)
    }

    /// Carries out what the state asks for, until it wants nothing more.
    pub(crate) fn act(
        &mut self,
        running: &Running,
        asking: &mut Asking,
        log: &mut dyn FnMut(EventKind),
    ) -> Result<(), SupervisorError> {
        let now = Now::read();
        if self.keeper_deadline().is_some_and(|deadline| deadline <= now.monotonic) {
            self.lose_keeper("the host's file system does not answer", asking);
        }
        self.state.pass(now);
        while let Some(action) = self.state.actions.pop_front() {
            match action {
                Action::Keeper(ask) => {
                    self.unasked.push_back(ask);
                    self.ask_keeper(running, asking);
                }
                Action::Broker(reply, file) => {
                    running.reply(reply, file.as_ref().map(|file| file.as_fd()))?;
                }
                Action::Record(event) => log(event),
                Action::Opened(id) => asking.opened(id),
                Action::Joined(id) => asking.changed(id),
                Action::Closed(decided) => asking.closed(&decided),
                Action::Save(rule, store) => {
                    if let Err(error) = self.stores.save(&vec![*rule].into(), store) {
                        self.state.tally.note(format!("an answer was not saved: {error}"));
                    }
                }
                Action::EndRun(why) => return Err(SupervisorError::GateFailed(why)),
            }
        }
        self.ask_keeper(running, asking);
        Ok(())
    }

    /// How long the loop may sleep.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        [self.state.next_deadline(), self.keeper_deadline()].into_iter().flatten().min()
    }

    /// What was only counted so far, for the audit log.
    pub(crate) fn take_sums(&mut self) -> Vec<EventKind> {
        self.state.records.take_all()
    }

    /// What is left to tell at the end.
    pub(crate) fn end(self) -> Touched {
        let GateState { tally, answered, shown, .. } = self.state;
        Touched { tally, answered, shown }
    }

    fn keeper_deadline(&self) -> Option<Instant> {
        (self.awaited > 0).then(|| self.heard + KEEPER_ANSWERS_IN)
    }

    /// Hands over what the keeper can take now; the first time, there is one to be started.
    fn ask_keeper(&mut self, running: &Running, asking: &mut Asking) {
        while self.awaited < MAX_AWAITED
            && let Some(ask) = self.unasked.pop_front()
        {
            if self.awaited == 0 {
                self.heard = Instant::now();
            }
            self.awaited += usize::from(!matches!(ask, KeeperRequest::Forget { .. }));
            let keeper = match self.keeper.take() {
                Some(keeper) => Ok(keeper),
                None => {
                    self.state.set_roots(running.roots());
                    Keeper::start(running, self.plan)
                }
            };
            let sent = keeper.and_then(|keeper| keeper.send(&ask).map(|()| keeper));
            match sent {
                Ok(keeper) => self.keeper = Some(keeper),
                Err(why) => return self.lose_keeper(&why.to_string(), asking),
            }
        }
    }

    /// Whoever waits for it is refused; a later touch starts another.
    fn lose_keeper(&mut self, why: &str, asking: &mut Asking) {
        self.keeper = None;
        self.unasked.clear();
        self.awaited = 0;
        let at = asking.moment(People::Nobody);
        self.state.keeper_is_gone(why, at.queue, at.now);
        // It holds nothing any more that could be forgotten.
        self.state.actions.retain(|action| !matches!(action, Action::Keeper(_)));
    }

    pub(crate) fn hear_keeper(&mut self, asking: &mut Asking, terminal: Option<&HostTerminal>) {
        let now = Now::read();
        loop {
            let Some(keeper) = &self.keeper else { return };
            match keeper.receive() {
                Ok(Some((told, file))) => {
                    self.awaited = self.awaited.saturating_sub(1);
                    self.heard = now.monotonic;
                    let people = match &told {
                        KeeperEvent::Found(_)
                        | KeeperEvent::Surveyed { .. }
                        | KeeperEvent::Absent { .. }
                        | KeeperEvent::Failed { .. } => {
                            asking.people(terminal, self.state.on_ask())
                        }
                        _ => People::Nobody,
                    };
                    self.state.told(told, file, &mut asking.moment(people));
                    // It says nothing unasked.
                    if self.awaited == 0 {
                        return;
                    }
                }
                Ok(None) => return,
                Err(why) => return self.lose_keeper(&why.to_string(), asking),
            }
        }
    }
}
