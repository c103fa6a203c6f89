//! What is on the screen and what a key means, without a terminal.
//!
//! A key answers the question that was looked at, or none ([`super::pace`]). What holds for runs to come needs Enter, a
//! secret a whole word and Enter. A key that answers several questions answers those that were counted.

use super::like::{self, Group};
use super::pace::{Arrival, Pace, Tempo};
use super::row::{Identity, Row};
use super::{answers, matching};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Answer, QuestionId, Scope, Store};
use std::time::{Duration, Instant};

/// No word that is an answer is longer.
const MAX_WORD_LEN: usize = 12;
/// What is said where something else was typed.
const SECRET: &str = "this is a secret: type yes, session, no or never, then Enter";
/// Nobody looks for more.
const MAX_SEARCH_LEN: usize = 200;
/// How long the line below the list keeps what it says.
const REMEMBERED: Duration = Duration::from_secs(8);

/// What is to be done for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    Answer {
        session: String,
        id: QuestionId,
        answer: Answer,
    },
    /// The same answer to each.
    AnswerAll {
        questions: Vec<(String, QuestionId)>,
        answer: Answer,
    },
    /// Keep what was answered for the session; none if no question tells which one is meant.
    Save {
        session: Option<String>,
        store: Store,
    },
}

/// What keys are for at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    List,
    Help,
    /// Typing what to look for.
    Search,
    /// Choosing what questions have in common.
    Like,
    /// Answering all of these.
    Group(Group),
    /// Enter does this, every other key goes back.
    Confirm(Pending),
}

/// What holds for runs to come, and so waits for Enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Answer { identity: Identity, answer: Answer },
    AnswerAll { group: Group, answer: Answer },
    Save { session: Option<String>, store: Store },
}

/// What the line below the list says, and until when.
#[derive(Debug)]
struct Said {
    text: String,
    at: Instant,
    /// The session that it is about.
    session: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Board {
    /// All that is open, whether it is looked for or not.
    all: Vec<Row>,
    /// Those that are shown.
    rows: Vec<Row>,
    mode: Mode,
    /// What is looked for; empty for everything.
    sought: String,
    sessions: usize,
    selected: usize,
    /// First line of the details that is shown.
    scroll: usize,
    pace: Pace,
    /// What was typed about the selected question, a secret.
    word: String,
    /// Answered here; the session has not said so yet.
    sent: Vec<Identity>,
    said: Option<Said>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::new(),
            rows: Vec::new(),
            mode: Mode::List,
            sought: String::new(),
            sessions: 0,
            selected: 0,
            scroll: 0,
            pace: Pace::default(),
            word: String::new(),
            sent: Vec::new(),
            said: None,
        }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// How many are open, those that are not looked for among them.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn mode(&self) -> &Mode {
        &self.mode
    }

    pub(crate) fn sought(&self) -> &str {
        &self.sought
    }

    /// The groups that the selected question belongs to.
    pub(crate) fn groups(&self) -> Vec<(char, Group)> {
        self.selected().map(|row| like::choices(row, &self.rows)).unwrap_or_default()
    }

    /// Whether a row would be answered with others.
    pub(crate) fn is_marked(&self, row: &Row) -> bool {
        matches!(&self.mode, Mode::Group(group) if group.members.contains(&row.identity()))
    }

    pub(crate) fn sessions(&self) -> usize {
        self.sessions
    }

    pub(crate) fn selected(&self) -> Option<&Row> {
        self.rows.get(self.selected)
    }

    pub(crate) fn selected_index(&self) -> usize {
        self.selected
    }

    pub(crate) fn scroll(&self) -> usize {
        self.scroll
    }

    /// The line below the list, if there is something to say.
    pub(crate) fn said(&self, now: Instant) -> Option<&str> {
        let Said { text, at, .. } = self.said.as_ref()?;
        (now.saturating_duration_since(*at) < REMEMBERED).then_some(text.as_str())
    }

    pub(crate) fn say(&mut self, text: String, now: Instant) {
        self.said = Some(Said { text, at: now, session: None });
    }

    /// The same, of one session: it goes when the session is over and others ask.
    pub(crate) fn say_of(&mut self, session: &str, text: String, now: Instant) {
        self.said = Some(Said { text, at: now, session: Some(session.to_owned()) });
    }

    /// What was typed so far about a secret.
    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// The terminal shows all of this.
    pub(crate) fn drawn(&mut self, now: Instant) {
        self.pace.drawn(now);
    }

    /// The terminal may show something else, or shows it elsewhere: nobody has read it there.
    pub(crate) fn shown_anew(&mut self) {
        self.pace.changed();
    }

    /// A pasted text is not an answer, whatever letters it has.
    pub(crate) fn pasted(&mut self, now: Instant) {
        self.pace.key(Arrival::WithOthers, now);
        self.say("pasted text is not an answer".to_owned(), now);
    }

    /// Takes what is open now in these sessions. The selection stays with its question; if that is gone, it goes to
    /// the one in its place.
    pub(crate) fn update(&mut self, mut rows: Vec<Row>, sessions: &[&str]) {
        rows.sort_by_key(|row| (row.question.asked_at, row.identity()));
        let is_open = |identity: &Identity| rows.iter().any(|row| row.identity() == *identity);
        self.sent.retain(is_open);
        rows.retain(|row| !self.sent.contains(&row.identity()));
        let before = self.selected().map(Row::identity);
        self.all = rows;
        self.sessions = sessions.len();
        self.forget_what_is_gone();
        let is_over = |said: &mut Said| {
            said.session.as_deref().is_some_and(|session| !sessions.contains(&session))
        };
        if !self.all.is_empty() {
            self.said.take_if(is_over);
        }
        self.show_sought(before.as_ref());
    }

    /// What a mode is about may have been answered elsewhere.
    fn forget_what_is_gone(&mut self) {
        let is_open = |identity: &Identity| self.all.iter().any(|row| row.identity() == *identity);
        let is_left = match &mut self.mode {
            Mode::Group(group) | Mode::Confirm(Pending::AnswerAll { group, .. }) => {
                group.members.retain(is_open);
                !group.members.is_empty()
            }
            Mode::Confirm(Pending::Answer { identity, .. }) => is_open(identity),
            Mode::Confirm(Pending::Save { .. }) => self.sessions > 0,
            Mode::List | Mode::Help | Mode::Search | Mode::Like => true,
        };
        if !is_left {
            self.mode = Mode::List;
        }
    }

    /// Shows what is looked for. The selection stays with its question, if that is shown.
    fn show_sought(&mut self, before: Option<&Identity>) {
        let is_sought = |row: &&Row| matching::is_sought(row, &self.sought);
        let rows: Vec<Row> = self.all.iter().filter(is_sought).cloned().collect();
        let is_same = rows.len() == self.rows.len()
            && rows.iter().zip(&self.rows).all(|(new, old)| new.identity() == old.identity());
        self.rows = rows;
        if !is_same {
            self.pace.changed();
        }
        let kept =
            before.and_then(|before| self.rows.iter().position(|row| row.identity() == *before));
        match kept {
            Some(index) => self.selected = index,
            None => {
                self.selected = self.selected.min(self.rows.len().saturating_sub(1));
                self.moved();
            }
        }
    }

    /// An answer did not arrive; the question is shown again.
    pub(crate) fn take_back(&mut self, session: &str) {
        self.sent.retain(|(sent_to, _)| sent_to != session);
    }

    pub(crate) fn press(&mut self, key: KeyEvent, arrival: Arrival, now: Instant) -> Action {
        let tempo = self.pace.key(arrival, now);
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            let is_quit = key.modifiers == KeyModifiers::CONTROL
                && matches!(key.code, KeyCode::Char('c' | 'd'));
            return if is_quit { Action::Quit } else { Action::Nothing };
        }
        match std::mem::take(&mut self.mode) {
            Mode::List => self.press_in_list(key.code, tempo, now),
            // Whatever is pressed, the list is back.
            Mode::Help => Action::Nothing,
            Mode::Search => self.press_in_search(key.code),
            Mode::Like => self.press_in_likeness(key.code, now),
            Mode::Group(group) => self.press_in_group(key.code, group, tempo, now),
            Mode::Confirm(pending) => self.press_to_confirm(key.code, pending, tempo, now),
        }
    }

    fn press_in_list(&mut self, code: KeyCode, tempo: Tempo, now: Instant) -> Action {
        if !self.word.is_empty() {
            return self.spell(code, tempo, now);
        }
        match code {
            // Without a question there is nothing that the key could have been typed into.
            KeyCode::Char('q') if self.rows.is_empty() || tempo == Tempo::Deliberate => {
                return Action::Quit;
            }
            KeyCode::Char('q') => self.say_too_fast(now),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Search,
            KeyCode::Char('=') if !self.rows.is_empty() => self.mode = Mode::Like,
            KeyCode::Esc if !self.sought.is_empty() => self.seek(String::new()),
            KeyCode::Char('j') | KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char('g') | KeyCode::Home => self.select(0),
            KeyCode::Char('G') | KeyCode::End => self.select(usize::MAX),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += 5,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::Char('w') => self.save(Store::User, tempo, now),
            KeyCode::Char('W') => self.save(Store::Project, tempo, now),
            code => return self.answer(code, tempo, now),
        }
        Action::Nothing
    }

    fn say_too_fast(&mut self, now: Instant) {
        self.say("key ignored: too fast; wait a moment, then press it again".to_owned(), now);
    }

    /// A word about the selected secret, letter by letter; Enter comes by itself.
    fn spell(&mut self, code: KeyCode, tempo: Tempo, now: Instant) -> Action {
        match code {
            KeyCode::Enter if tempo == Tempo::TooFast => {
                self.say_too_fast(now);
            }
            KeyCode::Enter => {
                let word = std::mem::take(&mut self.word);
                match (answers::of_word(&word), self.selected().map(Row::identity)) {
                    (Some(answer), Some(identity)) => return self.send(identity, answer),
                    _ => self.say(SECRET.to_owned(), now),
                }
            }
            KeyCode::Esc => self.word.clear(),
            KeyCode::Backspace => drop(self.word.pop()),
            KeyCode::Char(c) if c.is_ascii_alphabetic() && self.word.len() < MAX_WORD_LEN => {
                self.word.push(c);
            }
            _ => self.say(SECRET.to_owned(), now),
        }
        Action::Nothing
    }

    /// Enter soon after the key that began it is enough; the key itself was meant.
    fn press_to_confirm(
        &mut self,
        code: KeyCode,
        pending: Pending,
        tempo: Tempo,
        now: Instant,
    ) -> Action {
        if code != KeyCode::Enter {
            self.say("nothing was saved".to_owned(), now);
            return Action::Nothing;
        }
        if tempo == Tempo::TooFast {
            self.mode = Mode::Confirm(pending);
            self.say_too_fast(now);
            return Action::Nothing;
        }
        match pending {
            Pending::Answer { identity, answer } => self.send(identity, answer),
            Pending::AnswerAll { group, answer } => self.send_all(group, answer),
            Pending::Save { session, store } => Action::Save { session, store },
        }
    }

    /// While something is typed no letter is an answer.
    fn press_in_search(&mut self, code: KeyCode) -> Action {
        let mut sought = self.sought.clone();
        self.mode = Mode::Search;
        match code {
            KeyCode::Enter => self.mode = Mode::List,
            KeyCode::Esc => {
                self.mode = Mode::List;
                sought.clear();
            }
            KeyCode::Backspace => {
                sought.pop();
            }
            KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char(c) if sought.chars().count() < MAX_SEARCH_LEN => sought.push(c),
            _ => {}
        }
        if sought != self.sought {
            self.seek(sought);
        }
        Action::Nothing
    }

    fn seek(&mut self, sought: String) {
        let before = self.selected().map(Row::identity);
        self.sought = sought;
        self.show_sought(before.as_ref());
    }

    fn press_in_likeness(&mut self, code: KeyCode, now: Instant) -> Action {
        let Some(selected) = self.selected() else { return Action::Nothing };
        match like::chosen(code, selected, &self.rows) {
            Some(group) if group.members.is_empty() => {
                self.say("secrets are answered one by one".to_owned(), now);
            }
            Some(group) => self.mode = Mode::Group(group),
            None => {}
        }
        Action::Nothing
    }

    fn press_in_group(
        &mut self,
        code: KeyCode,
        group: Group,
        tempo: Tempo,
        now: Instant,
    ) -> Action {
        // A directory or a copy is offered for one question, not for many.
        let answer = answers::of_key(code)
            .filter(|answer| answer.scope().is_none_or(|scope| scope == Scope::File));
        match answer {
            None if code == KeyCode::Esc => {}
            None => self.mode = Mode::Group(group),
            Some(_) if tempo != Tempo::Deliberate => {
                self.mode = Mode::Group(group);
                self.say_too_fast(now);
            }
            Some(answer) if answers::is_permanent(answer) => {
                self.mode = Mode::Confirm(Pending::AnswerAll { group, answer });
            }
            Some(answer) => return self.send_all(group, answer),
        }
        Action::Nothing
    }

    fn send_all(&mut self, group: Group, answer: Answer) -> Action {
        let questions = group.members;
        let before = self.selected().map(Row::identity);
        self.sent.extend(questions.iter().cloned());
        self.all.retain(|row| !questions.contains(&row.identity()));
        self.show_sought(before.as_ref());
        Action::AnswerAll { questions, answer }
    }

    /// What it keeps holds for runs to come.
    fn save(&mut self, store: Store, tempo: Tempo, now: Instant) {
        if self.sessions == 0 {
            let why =
                "no session is running; `sandbox policy save` saves the answers of the last one";
            return self.say(why.to_owned(), now);
        }
        if tempo != Tempo::Deliberate {
            return self.say_too_fast(now);
        }
        let session = self.selected().map(|row| row.question.session.clone());
        self.mode = Mode::Confirm(Pending::Save { session, store });
    }

    /// The drawing knows how many lines there are.
    pub(crate) fn limit_scroll(&mut self, most: usize) {
        self.scroll = self.scroll.min(most);
    }

    fn select(&mut self, index: usize) {
        let index = index.min(self.rows.len().saturating_sub(1));
        if index != self.selected {
            self.selected = index;
            self.moved();
        }
    }

    fn moved(&mut self) {
        self.scroll = 0;
        self.word.clear();
    }

    fn answer(&mut self, code: KeyCode, tempo: Tempo, now: Instant) -> Action {
        let (Some(answer), Some(row)) = (answers::of_key(code), self.selected()) else {
            return Action::Nothing;
        };
        let identity = row.identity();
        let may_be_copied = row.question.subject.file().is_some_and(|file| file.may_be_copied);
        let is_directory = answer.scope().is_some_and(Scope::is_directory);
        match answer {
            _ if tempo != Tempo::Deliberate => self.say_too_fast(now),
            _ if row.question.is_secret => {
                let KeyCode::Char(first) = code else { return Action::Nothing };
                match answers::begins_word(first) {
                    true => self.word.push(first),
                    false => self.say(SECRET.to_owned(), now),
                }
            }
            _ if is_directory && row.question.offered().is_none() => {
                self.say("no directory is offered with this question".to_owned(), now);
            }
            _ if answer.scope() == Some(Scope::PrivateCopy) && !may_be_copied => {
                self.say("nothing is changed, so there is nothing to copy".to_owned(), now);
            }
            _ if answers::is_permanent(answer) => {
                self.mode = Mode::Confirm(Pending::Answer { identity, answer });
            }
            _ => return self.send(identity, answer),
        }
        Action::Nothing
    }

    fn send(&mut self, identity: Identity, answer: Answer) -> Action {
        self.sent.push(identity.clone());
        let before = self.selected().map(Row::identity);
        self.all.retain(|row| row.identity() != identity);
        self.show_sought(before.as_ref());
        let (session, id) = identity;
        Action::Answer { session, id, answer }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
