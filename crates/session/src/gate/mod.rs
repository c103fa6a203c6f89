//! The gate: blocked until somebody says yes, then the same call goes on (GATE-1 to GATE-8).
//!
//! `hub` decides what comes next, `grants` what is under way; this file holds the sockets and the terminal
//! and carries it out. Nothing here waits: it is part of the supervisor's one poll loop.

mod desk;
mod grants;
mod hub;
mod inquiry;
mod process;
mod prompt;
mod tally;
mod verdict;

use crate::error::SessionError;
use crate::stores::Stores;
use crate::terminal::HostTerminal;
use desk::{Desk, approver_is_there};
pub(crate) use grants::is_library;
use hub::{Action, Hub, People};
use palisade_ask::server::{Introduction, Received, Wish};
use palisade_ask::{Answer, Decided, Lifetime, Now, QuestionId, Source};
use palisade_broker::Touch;
use palisade_gate::Rule;
use palisade_keeper::{Ask, Told};
use palisade_launch::{Keeper, Running};
use palisade_plan::model::Plan;
use palisade_record::{Kind, RunReport};
use prompt::{Delivery, Page, Pressed, Prompt};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tally::Tally;

/// How often to look whether a full-screen program has given the terminal back, or an approver came.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// So many questions to the keeper are under way at once.
const MOST_AWAITED: usize = 32;
/// In this time it says something, or (a dead network mount) it counts as stuck.
const KEEPER_ANSWERS_IN: Duration = Duration::from_secs(5);

/// What a run's gate needs to know beforehand.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) session: String,
    pub(crate) rules: Vec<Rule>,
    pub(crate) home: Option<PathBuf>,
    /// Where the sockets of all sessions are.
    pub(crate) runtime: PathBuf,
    pub(crate) stores: Stores,
    /// The command, as a log would show it.
    pub(crate) command: String,
    pub(crate) project: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Gate<'p> {
    plan: &'p Plan,
    hub: Hub<'p>,
    keeper: Option<Keeper>,
    /// What the keeper has not been asked yet: it gets no more at once than it can take.
    unasked: VecDeque<Ask>,
    /// Answers of the keeper's that are to come, and when it was last heard.
    awaited: usize,
    heard: Instant,
    setting: Setting,
    desk: Option<Desk>,
    prompt: Option<Prompt>,
    /// Questions that nobody was told of.
    untold: VecDeque<QuestionId>,
    /// Whether the title of the terminal says that a question waits.
    is_in_title: bool,
    /// For standard error.
    notices: Vec<String>,
}

/// What the terminal can be used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A line can be written and keys be read.
    Line,
    /// The same, but not in this moment.
    Later,
    /// Somebody else draws on it.
    Taken,
    /// It only shows, or there is none: a line on standard error does no harm.
    Apart,
}

/// What a run touched outside its view, and what people answered.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    tally: Tally,
    pub(crate) answered: Vec<Rule>,
}

impl Touched {
    pub(crate) fn report(self, report: &mut RunReport) {
        self.tally.report(report);
    }
}

/// The number of descriptors that were added to a poll set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Polled {
    keeper: bool,
    desk: usize,
}

impl<'p> Gate<'p> {
    /// None where nothing is asked in this plan.
    pub(crate) fn of(plan: &'p Plan, mut setting: Setting) -> Option<Self> {
        let gate = plan.gate.as_ref()?;
        let rules = std::mem::take(&mut setting.rules);
        let hub = Hub::new(gate, &setting.session, setting.home.clone(), rules);
        Some(Self {
            plan,
            hub,
            keeper: None,
            unasked: VecDeque::new(),
            awaited: 0,
            heard: Instant::now(),
            setting,
            desk: None,
            prompt: None,
            untold: VecDeque::new(),
            is_in_title: false,
            notices: Vec::new(),
        })
    }

    pub(crate) fn touched(&mut self, touch: Touch, terminal: Option<&HostTerminal>) {
        // It matters only to who joins a question.
        let people = if self.has_questions() { self.people(terminal) } else { People::Nobody };
        self.hub.touched(touch, people, Now::read());
    }

    pub(crate) fn returned(&mut self, touch: u64) {
        self.hub.returned(touch);
    }

    pub(crate) fn withdrawn(&mut self, touch: u64) {
        self.hub.withdrawn(touch, Now::read());
    }

    pub(crate) fn interests<'fd>(&'fd self, set: &mut Vec<PollFd<'fd>>) -> Polled {
        let mut polled = Polled::default();
        if let Some(keeper) = &self.keeper {
            set.push(PollFd::from_borrowed_fd(keeper.socket(), PollFlags::IN));
            polled.keeper = true;
        }
        if let Some(desk) = &self.desk {
            let before = set.len();
            desk.interests(set);
            polled.desk = set.len() - before;
        }
        polled
    }

    /// Serves the descriptors of [`Self::interests`], in that order.
    pub(crate) fn serve(
        &mut self,
        polled: Polled,
        ready: &[PollFlags],
        terminal: Option<&HostTerminal>,
    ) {
        let (keeper, desk) = ready.split_at(usize::from(polled.keeper));
        if keeper.iter().any(|ready| !ready.is_empty()) {
            self.hear_keeper(terminal);
        }
        if polled.desk == desk.len()
            && let Some(open) = &mut self.desk
        {
            let received = open.serve(desk, self.hub.queue());
            for received in received {
                self.obey(&received);
            }
        }
    }

    /// Carries out what the hub wants, until it wants nothing more.
    pub(crate) fn act(
        &mut self,
        running: &Running,
        terminal: Option<&HostTerminal>,
        log: &mut dyn FnMut(Kind),
    ) -> Result<(), SessionError> {
        let now = Now::read();
        if self.keeper_deadline().is_some_and(|deadline| deadline <= now.monotonic) {
            self.lose_keeper("the host's file system does not answer");
        }
        self.hub.pass(now);
        while let Some(action) = self.hub.actions.pop_front() {
            match action {
                Action::Keeper(ask) => {
                    self.unasked.push_back(ask);
                    self.ask_keeper(running);
                }
                Action::Broker(reply, file) => {
                    running.reply(reply, file.as_ref().map(|file| file.as_fd()))?;
                }
                Action::Record(event) => log(Kind::AccessDecided(event)),
                Action::Opened(id) => self.opened(id),
                Action::Joined(id) => {
                    if let Some(desk) = &mut self.desk {
                        desk.asked(id);
                    }
                }
                Action::Closed(decided) => self.closed(&decided, terminal),
                Action::Save(rule, store) => {
                    if let Err(error) = self.setting.stores.save(&[*rule], store) {
                        self.hub.tally.note(format!("an answer was not saved: {error}"));
                    }
                }
                Action::EndRun(why) => return Err(SessionError::GateFailed(why)),
            }
        }
        self.ask_keeper(running);
        if let Some(desk) = &mut self.desk {
            desk.write(self.hub.queue());
        }
        Ok(())
    }

    /// How long the loop may sleep.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let deadlines = [self.hub.next_deadline(), self.keeper_deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        let until = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if self.hub.queue().is_empty() {
            return until;
        }
        // While something waits for people, they may come and go unheard.
        Some(until.map_or(LOOK_AGAIN, |until| until.min(LOOK_AGAIN)))
    }

    /// Whether keys are answers now.
    pub(crate) fn is_asking(&self) -> bool {
        self.prompt.is_some()
    }

    /// Takes keys; gives back those that are the command's.
    pub(crate) fn pressed(&mut self, keys: &[u8]) -> Vec<u8> {
        let now = Now::read();
        let Some(prompt) = &mut self.prompt else { return keys.to_vec() };
        let id = prompt.question;
        let Some(question) = self.hub.queue().get(id) else { return keys.to_vec() };
        let (answer, passed) = match prompt.press(keys, question, now.monotonic) {
            Pressed::NotForUs => return keys.to_vec(),
            Pressed::Answer(answer) => (answer, Vec::new()),
            Pressed::Interrupt => (Answer::Deny { lifetime: Lifetime::Once }, keys.to_vec()),
        };
        // Somebody else may have been faster; then there is nothing left to do.
        let _ = self.hub.answer(id, answer, &Source::Terminal, now);
        passed
    }

    /// What people should be told on standard error.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Puts what waits where people see it.
    pub(crate) fn show(&mut self, terminal: Option<&HostTerminal>, stage: Stage) {
        let queue = self.hub.queue();
        let waiting = queue.open().count();
        if waiting == 0 {
            self.untold.clear();
            if let Some(terminal) = terminal.filter(|_| std::mem::take(&mut self.is_in_title)) {
                terminal.write(prompt::TITLE_BACK.as_bytes());
            }
            return;
        }
        match (stage, terminal) {
            (Stage::Line, Some(terminal)) if self.prompt.is_none() => {
                let Some(question) = queue.open().next() else { return };
                let page = Page::of_terminal(terminal.size_for_pty());
                let line = prompt::line(question, waiting - 1, page);
                let prompt = self.prompt.insert(Prompt::new(question.id, line));
                put_on(terminal, prompt);
            }
            (Stage::Line, Some(terminal)) => {
                if let Some(prompt) = self.prompt.as_mut().filter(|prompt| !prompt.is_shown()) {
                    put_on(terminal, prompt);
                }
            }
            (Stage::Line | Stage::Later, _) => {}
            (Stage::Taken, Some(terminal)) => {
                if !std::mem::replace(&mut self.is_in_title, true) {
                    terminal.write(prompt::TITLE.as_bytes());
                }
            }
            (Stage::Taken | Stage::Apart, _) => {
                let untold = std::mem::take(&mut self.untold);
                let told = untold.into_iter().filter_map(|id| queue.get(id)).map(prompt::notice);
                self.notices.extend(told);
            }
        }
    }

    pub(crate) fn has_questions(&self) -> bool {
        !self.hub.queue().is_empty()
    }

    /// What is left to tell at the end.
    pub(crate) fn end(self) -> Touched {
        let Hub { tally, answered, .. } = self.hub;
        Touched { tally, answered }
    }

    fn people(&self, terminal: Option<&HostTerminal>) -> People {
        let is_somebody = terminal.is_some()
            || self.desk.as_ref().is_some_and(Desk::has_clients)
            || (self.hub.asks_who_is_there() && approver_is_there(&self.setting.runtime));
        if is_somebody { People::Present } else { People::Nobody }
    }

    fn keeper_deadline(&self) -> Option<Instant> {
        (self.awaited > 0).then(|| self.heard + KEEPER_ANSWERS_IN)
    }

    /// Hands over what the keeper can take now; the first time, there is one to be started.
    fn ask_keeper(&mut self, running: &Running) {
        while self.awaited < MOST_AWAITED
            && let Some(ask) = self.unasked.pop_front()
        {
            if self.awaited == 0 {
                self.heard = Instant::now();
            }
            self.awaited += usize::from(!matches!(ask, Ask::Forget { .. }));
            let keeper = match self.keeper.take() {
                Some(keeper) => Ok(keeper),
                None => {
                    self.hub.set_top(running.pid());
                    Keeper::start(running, self.plan)
                }
            };
            let sent = keeper.and_then(|keeper| keeper.send(&ask).map(|()| keeper));
            match sent {
                Ok(keeper) => self.keeper = Some(keeper),
                Err(why) => return self.lose_keeper(&why.to_string()),
            }
        }
    }

    /// Whoever waits for it is refused; a later touch starts another.
    fn lose_keeper(&mut self, why: &str) {
        self.keeper = None;
        self.unasked.clear();
        self.awaited = 0;
        self.hub.keeper_is_gone(why, Now::read());
        // It holds nothing any more that could be forgotten.
        self.hub.actions.retain(|action| !matches!(action, Action::Keeper(_)));
    }

    fn hear_keeper(&mut self, terminal: Option<&HostTerminal>) {
        let now = Now::read();
        loop {
            let Some(keeper) = &self.keeper else { return };
            match keeper.receive() {
                Ok(Some((told, file))) => {
                    self.awaited = self.awaited.saturating_sub(1);
                    self.heard = now.monotonic;
                    let people = match &told {
                        Told::Found(_) | Told::Absent { .. } | Told::Failed { .. } => {
                            self.people(terminal)
                        }
                        _ => People::Nobody,
                    };
                    self.hub.told(told, file, people, now);
                    // It says nothing unasked.
                    if self.awaited == 0 {
                        return;
                    }
                }
                Ok(None) => return,
                Err(why) => return self.lose_keeper(&why.to_string()),
            }
        }
    }

    fn obey(&mut self, received: &Received) {
        let outcome = match received.wish {
            Wish::Answer { id, answer } => {
                self.hub.answer(id, answer, &received.source, Now::read())
            }
            Wish::Save(store) => {
                let saved = self.setting.stores.save(&self.hub.answered, store);
                if let (Err(error), Some(desk)) = (saved, &mut self.desk) {
                    return desk.server().fail(received, &error.to_string());
                }
                Ok(())
            }
        };
        if let Some(desk) = &mut self.desk {
            desk.server().reply(received, outcome);
        }
    }

    fn opened(&mut self, id: QuestionId) {
        self.untold.push_back(id);
        if self.desk.is_none() {
            let introduction = Introduction {
                session: self.setting.session.clone(),
                command: self.setting.command.clone(),
                project: self.setting.project.to_string_lossy().into_owned(),
            };
            match Desk::open(&self.setting.runtime, introduction) {
                Ok(desk) => self.desk = Some(desk),
                Err(error) => {
                    self.hub.tally.note(format!("questions stay in the terminal: {error}"));
                }
            }
        }
        if let Some(desk) = &mut self.desk {
            desk.asked(id);
        }
    }

    fn closed(&mut self, decided: &Decided, terminal: Option<&HostTerminal>) {
        if let Some(desk) = &mut self.desk {
            desk.decided(decided);
        }
        let prompt = self.prompt.take_if(|prompt| prompt.question == decided.question.id);
        if let (Some(prompt), Some(terminal)) = (prompt, terminal) {
            let outcome = prompt::outcome(decided.answer, decided.source.word());
            let is_whole = prompt.unwritten().is_empty();
            let words = if is_whole { outcome.as_str() } else { prompt::BROKEN_OFF };
            terminal.write(words.as_bytes());
        }
    }
}

/// Writes as much of a question as the terminal takes now.
fn put_on(terminal: &HostTerminal, prompt: &mut Prompt) {
    let count = terminal.write(prompt.unwritten());
    let delivery = if terminal.has_sent_all() { Delivery::Done } else { Delivery::UnderWay };
    prompt.wrote(count, delivery, Instant::now());
}
