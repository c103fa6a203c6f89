//! How a run asks people: one queue, one socket, one panel in the terminal, for both the gate and the egress process.
//!
//! Must never decide anything: an answer goes to the part that asked, which performs it. Nothing here blocks: it is
//! part of the supervisor's only poll loop.

mod approval_socket;
mod choice;
mod chord;
mod panel;
mod prompt;
mod replies;
mod tmux;

pub(crate) use chord::Chord;
pub(crate) use panel::{Arming, INTERRUPT};

use crate::control::interface::Event;
use crate::poll_set::{PollSet, Ready};
use crate::relay::Relay;
use crate::screen::Behind;
use crate::terminal::HostTerminal;
use approval_socket::{ApprovalSocket, approver_is_there};
use palisade_ask::message::Revoked;
use palisade_ask::server::{ClientRequest, Introduction, Received};
use palisade_ask::{Answer, Decided, Lifetime, Now, QuestionId, Queue, Source, Store};
use palisade_plan::model::Hardening;
use palisade_policy::model::OnAsk;
use palisade_record::UnaskedQuestions;
use panel::{Panel, PanelPosition, Pressed};
use prompt::Page;
pub(crate) use replies::Read;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tmux::Asker;

/// How often to check whether a full-screen program has released the terminal, or an approver has started.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long nobody must be present before open questions are denied: an approver may be restarted at once.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// Whether somebody could answer a question now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum People {
    Present,
    Nobody,
}

/// The context of a decision: the time, who is present, and the queue for questions.
#[derive(Debug)]
pub(crate) struct Moment<'q> {
    pub(crate) queue: &'q mut Queue,
    pub(crate) people: People,
    pub(crate) now: Now,
}

/// Where a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskIn {
    /// In the run's own terminal, and in `sandbox approve`.
    #[default]
    Terminal,
    /// In `sandbox approve` only.
    Approve,
    /// In `sandbox approve`, which tmux opens over or next to the run's window.
    Tmux,
    /// Nowhere: nobody can be asked.
    None,
}

/// What the terminal can be used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanelUse {
    /// A panel can be shown and keys can be read.
    Panel,
    /// The same, as soon as the command's output is between two sequences.
    Settling,
    /// Another program draws on it.
    Taken,
    /// It is output only, not ours at the moment, or missing: a line on standard error does no harm.
    Apart,
}

/// The meaning of keys while a question was open in the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    ForTheCommand(Vec<u8>),
    ForThePanel,
    /// Both: the answer no, and Ctrl-C for the command.
    Interrupt,
}

/// What people are shown about the run that asks.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) session: String,
    /// The directory with the sockets of all sessions.
    pub(crate) runtime: PathBuf,
    /// The command, masked as in a log.
    pub(crate) command: String,
    pub(crate) project: PathBuf,
    /// The maximum number of open questions.
    pub(crate) most_questions: usize,
    /// What happens to a question if nobody can answer it.
    pub(crate) on_ask: OnAsk,
    pub(crate) ask_in: AskIn,
    /// Puts a question in the terminal aside, and brings it back.
    pub(crate) key: Chord,
    pub(crate) backdrop: Backdrop,
    pub(crate) arming: Arming,
}

/// The background of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backdrop {
    /// A terminal in a known state.
    #[default]
    Known,
    /// Only without the layer `known-terminal`: the state that the command left, in the terminal's own colours.
    AsItIs,
}

impl Backdrop {
    pub(crate) fn of(hardening: &Hardening) -> Self {
        if hardening.known_terminal { Self::Known } else { Self::AsItIs }
    }
}

/// A client's request to save the session's answers.
#[derive(Debug)]
pub(crate) struct SaveWish {
    pub(crate) store: Store,
    received: Received,
}

/// A client's request to take back what was granted at a path, and below it.
#[derive(Debug)]
pub(crate) struct RevokeWish {
    pub(crate) path: PathBuf,
    received: Received,
}

impl RevokeWish {
    pub(crate) fn source(&self) -> &Source {
        &self.received.source
    }
}

#[derive(Debug)]
pub struct Asking {
    setting: Setting,
    queue: Queue,
    approval_socket: Option<ApprovalSocket>,
    panel: Option<Panel>,
    /// Redraws what is behind the panel, and whether that moves up.
    again: Vec<u8>,
    behind: Behind,
    /// Questions that were not announced yet.
    untold: VecDeque<QuestionId>,
    /// Answers that were not performed yet.
    decided: VecDeque<Decided>,
    saves: Vec<SaveWish>,
    revokes: Vec<RevokeWish>,
    window: tmux::Window,
    /// Whether the terminal's title shows that a question waits.
    is_in_title: bool,
    /// Since when nobody could answer the open questions, and the time of the last check.
    deserted_since: Option<Instant>,
    looked_at: Option<Instant>,
    /// For standard error.
    notices: Vec<String>,
    /// For clients of the control interface.
    events: Vec<Event>,
    /// For the report.
    notes: Vec<String>,
}

impl Asking {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            queue: Queue::new(&setting.session, setting.most_questions),
            setting,
            approval_socket: None,
            panel: None,
            again: Vec::new(),
            behind: Behind::Stays,
            untold: VecDeque::new(),
            decided: VecDeque::new(),
            saves: Vec::new(),
            revokes: Vec::new(),
            window: tmux::Window::default(),
            is_in_title: false,
            deserted_since: None,
            looked_at: None,
            notices: Vec::new(),
            events: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn moment(&mut self, people: People) -> Moment<'_> {
        Moment { queue: &mut self.queue, people, now: Now::read() }
    }

    /// Whether somebody could answer; checked only where that matters.
    pub(crate) fn people(&self, terminal: Option<&HostTerminal>, on_ask: OnAsk) -> People {
        match self.setting.ask_in {
            AskIn::Terminal => {}
            // The user of this option comes when there is a question.
            AskIn::Approve | AskIn::Tmux => return People::Present,
            AskIn::None => return People::Nobody,
        }
        let is_somebody = terminal.is_some()
            || self.approval_socket.as_ref().is_some_and(ApprovalSocket::has_clients)
            || (on_ask == OnAsk::Ask && approver_is_there(&self.setting.runtime));
        if is_somebody { People::Present } else { People::Nobody }
    }

    /// Whether questions are asked outside the run's own terminal.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.setting.ask_in != AskIn::Terminal
    }

    pub(crate) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        if let Some(approval_socket) = &self.approval_socket {
            approval_socket.register(set);
        }
    }

    /// Serves the clients of the socket.
    pub(crate) fn handle(&mut self, ready: &Ready) {
        let Some(approval_socket) = &mut self.approval_socket else { return };
        let received = approval_socket.handle(ready, &self.queue);
        for received in received {
            self.obey(received);
        }
    }

    /// Decides what has timed out, and what nobody is left to answer.
    pub(crate) fn pass(&mut self, terminal: Option<&HostTerminal>) {
        let now = Now::read();
        let expired = self.queue.expire(now);
        self.decided.extend(expired);
        if self.is_deserted(terminal, now.monotonic) {
            let open: Vec<QuestionId> = self.queue.open().map(|question| question.id).collect();
            let no = Answer::Deny { lifetime: Lifetime::Once };
            for id in open {
                let decided = self.queue.answer(id, no, &Source::NobodyToAsk, now);
                self.decided.extend(decided.unwrap_or_default());
            }
        }
    }

    /// Whether questions are open and everybody who could answer them has left. With `onAsk: ask` they are then denied,
    /// as if nobody had been present from the start.
    fn is_deserted(&mut self, terminal: Option<&HostTerminal>, now: Instant) -> bool {
        if self.queue.is_empty() || self.setting.on_ask != OnAsk::Ask {
            self.deserted_since = None;
            return false;
        }
        // At intervals: the check accesses the file system.
        if self.looked_at.is_none_or(|looked| now >= looked + LOOK_AGAIN) {
            self.looked_at = Some(now);
            match self.people(terminal, self.setting.on_ask) {
                People::Present => self.deserted_since = None,
                People::Nobody => {
                    self.deserted_since.get_or_insert(now);
                }
            }
        }
        self.deserted_since.is_some_and(|since| now >= since + NOBODY_FOR)
    }

    /// The next answer for the part that asked to perform.
    pub(crate) fn next_decided(&mut self) -> Option<Decided> {
        self.decided.pop_front()
    }

    pub(crate) fn take_saves(&mut self) -> Vec<SaveWish> {
        std::mem::take(&mut self.saves)
    }

    pub(crate) fn saved(&mut self, wish: &SaveWish, outcome: Result<(), String>) {
        let Some(approval_socket) = &mut self.approval_socket else { return };
        match outcome {
            Ok(()) => approval_socket.server().reply(&wish.received, Ok(())),
            Err(why) => approval_socket.server().fail(&wish.received, &why),
        }
    }

    pub(crate) fn take_revokes(&mut self) -> Vec<RevokeWish> {
        std::mem::take(&mut self.revokes)
    }

    pub(crate) fn revoked(&mut self, wish: &RevokeWish, outcome: Result<Revoked, String>) {
        let Some(approval_socket) = &mut self.approval_socket else { return };
        match outcome {
            Ok(revoked) => approval_socket.server().revoked(&wish.received, revoked),
            Err(why) => approval_socket.server().fail(&wish.received, &why),
        }
    }

    /// Writes pending output to clients.
    pub(crate) fn flush(&mut self) {
        if let Some(approval_socket) = &mut self.approval_socket {
            approval_socket.write(&self.queue);
        }
    }

    /// How long the loop may sleep.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.queue.is_empty() {
            return None;
        }
        let comes_back = self.panel.as_ref().and_then(Panel::comes_back);
        let deadlines = self.queue.next_deadline().into_iter().chain(comes_back);
        // While a question is open, people may come and go without an event.
        deadlines.chain([Instant::now() + LOOK_AGAIN]).min()
    }

    /// Whether keys are checked here first.
    pub(crate) fn wants_keys(&self) -> bool {
        self.panel.is_some()
    }

    /// Whether a question is to be shown in the terminal, and is not put aside.
    pub(crate) fn wants_panel(&self) -> bool {
        let is_aside =
            self.panel.as_ref().is_some_and(|panel| panel.place() == PanelPosition::PutAside);
        !self.queue.is_empty() && !is_aside
    }

    pub(crate) fn open_questions(&self) -> usize {
        self.queue.open().count()
    }

    pub(crate) fn has_questions(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Separates the terminal's replies from keys while a question is shown: replies belong to the command.
    pub(crate) fn tell_apart(&self, read: &[u8]) -> Read {
        match self.panel.as_ref().map(Panel::place) {
            Some(PanelPosition::Shown) => replies::tell_apart(read),
            Some(PanelPosition::PutAside) | None => {
                Read { keys: read.to_vec(), replies: Vec::new() }
            }
        }
    }

    /// Handles keys, and returns whom they belong to.
    pub(crate) fn pressed(&mut self, keys: &[u8]) -> Typed {
        let now = Now::read();
        let for_the_command = || Typed::ForTheCommand(keys.to_vec());
        let Some(panel) = &mut self.panel else { return for_the_command() };
        let id = panel.question;
        let Some(question) = self.queue.get(id) else { return for_the_command() };
        if panel.place() == PanelPosition::PutAside {
            let Some(chord) = panel.chord().find(keys) else {
                panel.stay_aside(now.monotonic);
                return for_the_command();
            };
            panel.put(PanelPosition::Shown);
            panel.stay_aside(now.monotonic);
            return Typed::ForTheCommand([&keys[..chord.start], &keys[chord.end..]].concat());
        }
        let (answer, typed) = match panel.press(keys, question, now.monotonic) {
            Pressed::Nothing => return Typed::ForThePanel,
            Pressed::PutAside => {
                panel.put(PanelPosition::PutAside);
                panel.stay_aside(now.monotonic);
                return Typed::ForThePanel;
            }
            Pressed::Answer(answer) => (answer, Typed::ForThePanel),
            Pressed::Interrupt => (Answer::Deny { lifetime: Lifetime::Once }, Typed::Interrupt),
        };
        // Another client may have answered first; then there is nothing left to do.
        if let Ok(decided) = self.queue.answer(id, answer, &Source::Terminal, now) {
            self.decided.extend(decided);
        }
        typed
    }

    /// The terminal was resized.
    pub(crate) fn resized(&mut self, terminal: &mut HostTerminal, relay: &mut Relay) {
        if let Some(panel) = self.panel.as_mut().filter(|_| terminal.is_covered()) {
            let around = relay.surroundings();
            terminal.cover_again(around.after);
            (self.again, self.behind) = (around.again, around.behind);
            panel.moved();
        }
    }

    /// Messages for standard error.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Questions that were asked and answered.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// So many calls were denied because too many wait for answers.
    pub(crate) fn count_unasked(&mut self, count: u64) {
        self.queue.count_refused(count, palisade_ask::MAX_WAITING);
    }

    /// Questions that were denied unasked because too many were waiting.
    pub(crate) fn unasked(&self) -> Option<UnaskedQuestions> {
        let (count, limit) = self.queue.refused();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        (count > 0).then_some(UnaskedQuestions { count, limit })
    }

    /// Notes for the report.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Shows open questions to people.
    pub(crate) fn show(
        &mut self,
        terminal: Option<&mut HostTerminal>,
        relay: &mut Relay,
        stage: PanelUse,
    ) {
        let waiting = self.queue.open().count();
        if waiting == 0 {
            self.untold.clear();
            if let Some(terminal) = terminal {
                self.put_away(terminal, relay);
            }
            return;
        }
        if self.setting.ask_in == AskIn::Tmux {
            let is_new = !std::mem::take(&mut self.untold).is_empty();
            let is_somebody =
                self.approval_socket.as_ref().is_some_and(ApprovalSocket::has_clients)
                    || approver_is_there(&self.setting.runtime);
            let approver = if is_somebody { People::Present } else { People::Nobody };
            let Setting { session, runtime, .. } = &self.setting;
            let opened =
                self.window.look(Asker { session, runtime }, is_new, approver, Instant::now());
            if let Err(error) = opened {
                // Otherwise, the person here would wait for a window that never appears.
                self.notes.push(format!("tmux: {error}; questions were asked in the terminal"));
                self.setting.ask_in = AskIn::Terminal;
                self.untold.extend(self.queue.open().map(|question| question.id));
            }
        }
        match (stage, terminal) {
            (PanelUse::Panel, Some(terminal)) => self.show_panel(terminal, relay, waiting - 1),
            (PanelUse::Panel | PanelUse::Settling, _) => {}
            (PanelUse::Taken, Some(terminal)) => self.put_in_title(terminal, relay),
            (PanelUse::Taken | PanelUse::Apart, _) => {
                let untold = std::mem::take(&mut self.untold);
                let queue = &self.queue;
                let told = untold.into_iter().filter_map(|id| queue.get(id)).map(prompt::notice);
                self.notices.extend(told);
            }
        }
    }

    /// Removes everything of ours from the terminal.
    fn put_away(&mut self, terminal: &mut HostTerminal, relay: &Relay) {
        terminal.uncover();
        if self.is_in_title && may_write(terminal, relay) {
            self.is_in_title = false;
            terminal.write(prompt::TITLE_BACK.as_bytes());
        }
    }

    fn put_in_title(&mut self, terminal: &mut HostTerminal, relay: &Relay) {
        if !self.is_in_title && may_write(terminal, relay) {
            self.is_in_title = true;
            terminal.write(prompt::TITLE.as_bytes());
        }
    }

    fn show_panel(&mut self, terminal: &mut HostTerminal, relay: &mut Relay, others: usize) {
        let Setting { key, arming, backdrop, .. } = self.setting;
        let next = self.queue.open().next().map(|question| question.id);
        let Some(id) = self.panel.as_ref().map(|panel| panel.question).or(next) else { return };
        let Some(question) = self.queue.get(id) else { return };
        let panel = self.panel.get_or_insert_with(|| Panel::new(id, key, arming));
        let now = Instant::now();
        if panel.comes_back().is_some_and(|then| then <= now) {
            panel.put(PanelPosition::Shown);
            panel.stay_aside(now);
        }
        if panel.place() == PanelPosition::PutAside {
            terminal.uncover();
            return self.put_in_title(terminal, relay);
        }
        panel.count_others(others);
        let page = Page::of_terminal(terminal.size_for_pty(), backdrop);
        if !terminal.is_covered() {
            // Only when it is drawn: the possible answers are those of the panel that a person sees.
            let rows = prompt::lay_out(panel, question, others, page);
            let around = relay.hold();
            let before = if backdrop == Backdrop::Known { &around.before[..] } else { b"" };
            let picture = prompt::picture(&rows, Page { behind: around.behind, ..page });
            (self.again, self.behind) = (around.again, around.behind);
            terminal.cover(&[before, picture.as_bytes()].concat(), around.after);
            panel.is_drawn();
        } else if panel.is_stale() && terminal.is_up_to_date() {
            let rows = prompt::lay_out(panel, question, others, page);
            let picture = prompt::picture(&rows, Page { behind: self.behind, ..page });
            terminal.draw(&[&self.again[..], picture.as_bytes()].concat());
            panel.is_drawn();
        }
        terminal.flush();
        if !panel.is_stale() && terminal.is_up_to_date() && terminal.has_sent_all() {
            panel.is_there(Instant::now());
        }
    }

    /// Announces a new question.
    pub(crate) fn opened(&mut self, id: QuestionId) {
        self.untold.push_back(id);
        let asked = self.queue.get(id).map(prompt::summary);
        self.events.extend(asked.map(|text| Event::QuestionAsked { question: id.0, text }));
        self.open_socket();
        self.changed(id);
    }

    /// From the first question or grant on: people may answer, or take back what was granted.
    pub(crate) fn open_socket(&mut self) {
        if self.approval_socket.is_some() {
            return;
        }
        let introduction = Introduction {
            session: self.setting.session.clone(),
            command: self.setting.command.clone(),
            project: self.setting.project.to_string_lossy().into_owned(),
        };
        match ApprovalSocket::open(&self.setting.runtime, introduction) {
            Ok(approval_socket) => self.approval_socket = Some(approval_socket),
            Err(error) => {
                let note = format!("questions stay in the terminal: {error}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
    }

    /// More processes wait for this question.
    pub(crate) fn changed(&mut self, id: QuestionId) {
        if let Some(approval_socket) = &mut self.approval_socket {
            approval_socket.asked(id);
        }
    }

    /// The question needs no answer any more.
    pub(crate) fn closed(&mut self, decided: &Decided) {
        self.events.push(Event::QuestionAnswered {
            question: decided.question.id.0,
            is_allowed: decided.answer.is_allowed(),
            by: who(&decided.source),
        });
        if let Some(approval_socket) = &mut self.approval_socket {
            approval_socket.decided(decided);
        }
        // The panel is removed once it is known that no other question follows.
        self.panel.take_if(|panel| panel.question == decided.question.id);
    }

    fn obey(&mut self, received: Received) {
        match &received.request {
            ClientRequest::Answer { id, answer } => {
                let outcome = self.queue.answer(*id, *answer, &received.source, Now::read());
                let outcome = outcome.map(|decided| self.decided.extend(decided));
                if let Some(approval_socket) = &mut self.approval_socket {
                    approval_socket.server().reply(&received, outcome);
                }
            }
            ClientRequest::Save(store) => self.saves.push(SaveWish { store: *store, received }),
            ClientRequest::Revoke(path) => {
                self.revokes.push(RevokeWish { path: path.clone(), received });
            }
        }
    }
}

/// Whether our text between the command's output would disturb neither.
fn may_write(terminal: &HostTerminal, relay: &Relay) -> bool {
    !terminal.is_covered() && relay.is_between_sequences()
}

/// Who answered, in the words of the audit log.
pub(crate) fn who(source: &Source) -> String {
    match source {
        Source::Socket { name, .. } => name.clone(),
        other => other.word().to_owned(),
    }
}
