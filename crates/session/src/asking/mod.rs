//! Where a run asks people: one queue, one socket, one line in the terminal, for the gate and for the way out alike.
//!
//! It decides nothing. What was answered is handed to whoever asked, which carries it out. Nothing here waits: it is
//! part of the supervisor's one poll loop.

mod desk;
mod prompt;

pub(crate) use prompt::INTERRUPT;

use crate::terminal::HostTerminal;
use desk::{Desk, approver_is_there};
use palisade_ask::server::{Introduction, Received, Wish};
use palisade_ask::{Answer, Decided, Lifetime, Now, QuestionId, Queue, Source, Store};
use palisade_policy::model::OnAsk;
use palisade_record::UnaskedQuestions;
use prompt::{Delivery, Page, Pressed, Prompt};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often to look whether a full-screen program has given the terminal back, or an approver came.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long nobody has to be there before open questions are denied: an approver may be started again at once.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// Whether somebody could answer a question now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum People {
    Present,
    Nobody,
}

/// When something is decided, who is there, and where questions go.
#[derive(Debug)]
pub(crate) struct Moment<'q> {
    pub(crate) queue: &'q mut Queue,
    pub(crate) people: People,
    pub(crate) now: Now,
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

/// What keys were, while a question stood in the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    ForTheCommand,
    Answer,
    /// Both: no, and Ctrl-C.
    Interrupt,
}

/// What people are told of the run that asks.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) session: String,
    /// Where the sockets of all sessions are.
    pub(crate) runtime: PathBuf,
    /// The command, as a log would show it.
    pub(crate) command: String,
    pub(crate) project: PathBuf,
    /// Open at once.
    pub(crate) most_questions: usize,
    /// What happens to a question that nobody is there to answer.
    pub(crate) on_ask: OnAsk,
}

/// A client wants the session's answers kept.
#[derive(Debug)]
pub(crate) struct SaveWish {
    pub(crate) store: Store,
    received: Received,
}

#[derive(Debug)]
pub(crate) struct Asking {
    setting: Setting,
    queue: Queue,
    desk: Option<Desk>,
    prompt: Option<Prompt>,
    /// Questions that nobody was told of.
    untold: VecDeque<QuestionId>,
    /// Answers that nobody has carried out.
    decided: VecDeque<Decided>,
    saves: Vec<SaveWish>,
    /// Whether the title of the terminal says that a question waits.
    is_in_title: bool,
    /// Since when nobody is there who could answer what is open, and when that was looked for last.
    deserted_since: Option<Instant>,
    looked_at: Option<Instant>,
    /// For standard error.
    notices: Vec<String>,
    /// For the report.
    notes: Vec<String>,
}

impl Asking {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            queue: Queue::new(&setting.session, setting.most_questions),
            setting,
            desk: None,
            prompt: None,
            untold: VecDeque::new(),
            decided: VecDeque::new(),
            saves: Vec::new(),
            is_in_title: false,
            deserted_since: None,
            looked_at: None,
            notices: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn moment(&mut self, people: People) -> Moment<'_> {
        Moment { queue: &mut self.queue, people, now: Now::read() }
    }

    /// Whether somebody could answer; looked for only where that makes a difference.
    pub(crate) fn people(&self, terminal: Option<&HostTerminal>, on_ask: OnAsk) -> People {
        let is_somebody = terminal.is_some()
            || self.desk.as_ref().is_some_and(Desk::has_clients)
            || (on_ask == OnAsk::Ask && approver_is_there(&self.setting.runtime));
        if is_somebody { People::Present } else { People::Nobody }
    }

    pub(crate) fn interests<'fd>(&'fd self, set: &mut Vec<PollFd<'fd>>) {
        if let Some(desk) = &self.desk {
            desk.interests(set);
        }
    }

    /// Serves the descriptors of [`Self::interests`], in that order.
    pub(crate) fn serve(&mut self, ready: &[PollFlags]) {
        let Some(desk) = self.desk.as_mut().filter(|_| !ready.is_empty()) else { return };
        let received = desk.serve(ready, &self.queue);
        for received in received {
            self.obey(received);
        }
    }

    /// What time alone decides, and what nobody is left to answer.
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

    /// Whether questions are open and whoever could answer them is gone: with `onAsk: ask` they are then denied, as if
    /// nobody had been there from the start.
    fn is_deserted(&mut self, terminal: Option<&HostTerminal>, now: Instant) -> bool {
        if self.queue.is_empty() || self.setting.on_ask != OnAsk::Ask {
            self.deserted_since = None;
            return false;
        }
        // It is looked for in the file system.
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

    /// An answer that is to be carried out by who asked.
    pub(crate) fn next_decided(&mut self) -> Option<Decided> {
        self.decided.pop_front()
    }

    pub(crate) fn take_saves(&mut self) -> Vec<SaveWish> {
        std::mem::take(&mut self.saves)
    }

    pub(crate) fn saved(&mut self, wish: &SaveWish, outcome: Result<(), String>) {
        let Some(desk) = &mut self.desk else { return };
        match outcome {
            Ok(()) => desk.server().reply(&wish.received, Ok(())),
            Err(why) => desk.server().fail(&wish.received, &why),
        }
    }

    /// Writes to clients what there is to write.
    pub(crate) fn flush(&mut self) {
        if let Some(desk) = &mut self.desk {
            desk.write(&self.queue);
        }
    }

    /// How long the loop may sleep.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.queue.is_empty() {
            return None;
        }
        let deadline = self.queue.next_deadline();
        let until = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // While something waits for people, they may come and go unheard.
        Some(until.map_or(LOOK_AGAIN, |until| until.min(LOOK_AGAIN)))
    }

    /// Whether keys are answers now.
    pub(crate) fn has_prompt(&self) -> bool {
        self.prompt.is_some()
    }

    pub(crate) fn has_questions(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes keys, and says whose they are.
    pub(crate) fn pressed(&mut self, keys: &[u8]) -> Typed {
        let now = Now::read();
        let Some(prompt) = &mut self.prompt else { return Typed::ForTheCommand };
        let id = prompt.question;
        let Some(question) = self.queue.get(id) else { return Typed::ForTheCommand };
        let (answer, typed) = match prompt.press(keys, question, now.monotonic) {
            Pressed::NotForUs => return Typed::ForTheCommand,
            Pressed::Answer(answer) => (answer, Typed::Answer),
            Pressed::Interrupt => (Answer::Deny { lifetime: Lifetime::Once }, Typed::Interrupt),
        };
        // Somebody else may have been faster; then there is nothing left to do.
        if let Ok(decided) = self.queue.answer(id, answer, &Source::Terminal, now) {
            self.decided.extend(decided);
        }
        typed
    }

    /// What people should be told on standard error.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Questions that were never put to anybody, as too many were open.
    pub(crate) fn unasked(&self) -> Option<UnaskedQuestions> {
        let (count, limit) = self.queue.refused();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        (count > 0).then_some(UnaskedQuestions { count, limit })
    }

    /// What the report should say.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Puts what waits where people see it.
    pub(crate) fn show(&mut self, terminal: Option<&HostTerminal>, stage: Stage) {
        let queue = &self.queue;
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

    /// People should see this question.
    pub(crate) fn opened(&mut self, id: QuestionId) {
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
                    let note = format!("questions stay in the terminal: {error}");
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
            }
        }
        self.changed(id);
    }

    /// More wait for this question.
    pub(crate) fn changed(&mut self, id: QuestionId) {
        if let Some(desk) = &mut self.desk {
            desk.asked(id);
        }
    }

    /// Nobody needs to answer it any more.
    pub(crate) fn closed(&mut self, decided: &Decided, terminal: Option<&HostTerminal>) {
        if let Some(desk) = &mut self.desk {
            desk.decided(decided);
        }
        let prompt = self.prompt.take_if(|prompt| prompt.question == decided.question.id);
        if let (Some(prompt), Some(terminal)) = (prompt, terminal) {
            let outcome = prompt::outcome(decided.answer, &answered_by(&decided.source));
            let is_whole = prompt.unwritten().is_empty();
            let words = if is_whole { outcome.as_str() } else { prompt::BROKEN_OFF };
            terminal.write(words.as_bytes());
        }
    }

    fn obey(&mut self, received: Received) {
        match received.wish {
            Wish::Answer { id, answer } => {
                let outcome = self.queue.answer(id, answer, &received.source, Now::read());
                let outcome = outcome.map(|decided| self.decided.extend(decided));
                if let Some(desk) = &mut self.desk {
                    desk.server().reply(&received, outcome);
                }
            }
            Wish::Save(store) => self.saves.push(SaveWish { store, received }),
        }
    }
}

/// Who answered, in the word of a record.
pub(crate) fn who(source: &Source) -> String {
    match source {
        Source::Socket { name, .. } => name.clone(),
        other => other.word().to_owned(),
    }
}

/// Who answered, for a person to read. A client's name is its own word.
fn answered_by(source: &Source) -> String {
    match source {
        Source::Socket { name, .. } if name.is_empty() => "answered elsewhere".to_owned(),
        Source::Socket { name, .. } => palisade_record::escape::text(name).into_owned(),
        other => other.word().to_owned(),
    }
}

/// Writes as much of a question as the terminal takes now.
fn put_on(terminal: &HostTerminal, prompt: &mut Prompt) {
    let count = terminal.write(prompt.unwritten());
    let delivery = if terminal.has_sent_all() { Delivery::Done } else { Delivery::UnderWay };
    prompt.wrote(count, delivery, Instant::now());
}
