//! The gate: blocked until somebody says yes, then the same call goes on (GATE-1 to GATE-8).
//!
//! `state` decides what comes next, `grants` what is under way; this file holds the sockets and the terminal
//! and carries it out. Nothing here waits: it is part of the supervisor's one poll loop.

mod action;
mod grants;
mod inquiry;
mod made_files;
mod private_directories;
mod records;
mod refused_callers;
mod revocations;
mod state;
mod still_open;
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
use palisade_gate::{AccessReply, PathAccess, Rule};
use palisade_gatefs::ToGateFs;
use palisade_keeper::{KeeperEvent, KeeperRequest};
use palisade_launch::{Keeper, Running};
use palisade_plan::model::Plan;
use palisade_record::{EventKind, RunReport};
use palisade_sys::FileIdentity;
use state::GateState;
use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally::Tally;

/// So many questions to the keeper are under way at once.
const MAX_AWAITED: usize = 32;
/// So many may not have been sent yet. A call that waits has few of them, and the broker lets no more than 4096 calls wait:
/// beyond this something is wrong with the keeper.
const MAX_UNASKED: usize = 64 * 1024;
/// A keeper can be started as soon as pid 1 has said its last words about the view; a fast command is ahead of them.
const INIT_IS_READY_IN: Duration = Duration::from_millis(5);
/// In this time it says something, or (a dead network mount) it counts as stuck.
const KEEPER_ANSWERS_IN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Gate<'p> {
    plan: &'p Plan,
    state: GateState<'p>,
    keeper: Option<Keeper>,
    /// What the keeper has not been asked yet, in order: it gets no more at once than it can take.
    unasked: VecDeque<KeeperRequest>,
    /// Whether its socket was full when the first of them was to be sent.
    is_socket_full: bool,
    /// Answers of the keeper's that are to come, and when it was last heard.
    awaited: usize,
    heard: Instant,
    /// Requests that the gate's file system made; all others are the broker's. The kernel counts those from a random
    /// number on, so that no two are the same.
    from_gatefs: HashSet<u64>,
    /// What clients take back.
    revoking: Vec<revocations::UnderWay>,
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
            is_socket_full: false,
            awaited: 0,
            heard: Instant::now(),
            from_gatefs: HashSet::new(),
            revoking: Vec::new(),
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

    /// The same, noticed by the gate's file system.
    pub(crate) fn touched_in_filesystem(
        &mut self,
        request: PathAccess,
        asking: &mut Asking,
        terminal: Option<&HostTerminal>,
    ) {
        self.from_gatefs.insert(request.id);
        self.touched(request, asking, terminal);
    }

    /// Somebody looked for one of Palisade's own directories, and found nothing.
    pub(crate) fn looked_at_own(&mut self, path: &Path, executable: &[u8], pid: u32) {
        self.state.looked_at_own(path, executable, pid);
    }

    /// Gives calls whose questions found no room their turn. Whether there is something to carry out.
    pub(crate) fn readmit(&mut self, asking: &mut Asking, terminal: Option<&HostTerminal>) -> bool {
        if !self.state.may_readmit(&asking.moment(People::Nobody)) {
            return false;
        }
        let people = asking.people(terminal, self.state.on_ask());
        self.state.readmit(&mut asking.moment(people));
        true
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
        self.from_gatefs.remove(&request);
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

    /// Whether something is to be sent to the keeper as soon as its socket is writable.
    pub(crate) fn wants_room(&self) -> bool {
        self.is_socket_full
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
                Action::Reply(reply, file) => {
                    self.reply(running, reply, file.as_ref())?;
                }
                Action::Shown(path) => {
                    asking.open_socket();
                    running.tell_gatefs(&ToGateFs::Grafted { path }, None)?;
                }
                Action::Hidden { path, is_name_kept } => {
                    running.tell_gatefs(&ToGateFs::Ungrafted { path, is_name_kept }, None)?;
                }
                Action::Revoked(id) => self.has_revoked(id, running, asking, log),
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

    /// Answers whoever noticed the access.
    fn reply(
        &mut self,
        running: &Running,
        reply: AccessReply,
        file: Option<&OwnedFd>,
    ) -> Result<(), SupervisorError> {
        let request = reply.request();
        let file = file.map(|file| file.as_fd());
        if !self.from_gatefs.contains(&request) {
            return Ok(running.reply(&reply, file)?);
        }
        // One that is watched gets another answer when its grant has ended.
        if !matches!(reply, AccessReply::ContinueAndWatch { .. }) {
            self.from_gatefs.remove(&request);
        }
        Ok(running.tell_gatefs(&ToGateFs::Reply(reply), file)?)
    }

    /// How long the loop may sleep.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let waits_for_init = self.keeper.is_none() && !self.unasked.is_empty();
        let retry = waits_for_init.then(|| Instant::now() + INIT_IS_READY_IN);
        [self.state.next_deadline(), self.keeper_deadline(), retry].into_iter().flatten().min()
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
        if self.unasked.len() > MAX_UNASKED {
            return self.lose_keeper("it does not keep up", asking);
        }
        self.is_socket_full = false;
        let gate = self.plan.sandbox.gate.as_ref();
        if self.keeper.is_none() && !gate.is_some_and(|gate| running.is_ready_for_keeper(gate)) {
            return;
        }
        while self.awaited < MAX_AWAITED
            && let Some(ask) = self.unasked.front()
        {
            let keeper = match self.keeper.take() {
                Some(keeper) => Ok(keeper),
                None => {
                    self.state.set_roots(running.roots());
                    Keeper::start(running, self.plan)
                }
            };
            let sent = keeper.and_then(|keeper| Ok((keeper.send(ask)?, keeper)));
            match sent {
                Ok((true, keeper)) => self.keeper = Some(keeper),
                Ok((false, keeper)) => {
                    self.keeper = Some(keeper);
                    self.is_socket_full = true;
                    return;
                }
                Err(why) => return self.lose_keeper(&why.to_string(), asking),
            }
            if self.awaited == 0 {
                self.heard = Instant::now();
            }
            self.awaited += usize::from(!matches!(ask, KeeperRequest::Forget { .. }));
            self.unasked.pop_front();
        }
    }

    /// Whoever waits for it is refused; a later touch starts another.
    fn lose_keeper(&mut self, why: &str, asking: &mut Asking) {
        self.keeper = None;
        self.unasked.clear();
        self.is_socket_full = false;
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
