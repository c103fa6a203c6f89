//! What is on the screen and what a key means, without a terminal.
//!
//! A key answers the question that was looked at, or none: when the list changes under the reader's
//! eyes, answers are not taken for a moment. A key that answers several questions answers those that were counted.

use super::like::{self, Group};
use super::matching;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Answer, Lifetime, Question, QuestionId, Scope, Store};
use std::time::{Duration, Instant};

/// Longer than it takes to see that something else is selected now.
const SETTLING: Duration = Duration::from_millis(600);
/// Nobody looks for more.
const LONGEST_SOUGHT: usize = 200;
/// How long the line below the list keeps what it says.
const REMEMBERED: Duration = Duration::from_secs(8);

/// One question, and what is known of the session it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// As it can be named on a command line.
    pub(crate) address: String,
    pub(crate) command: String,
    pub(crate) project: String,
    pub(crate) question: Question,
}

/// Which question, whatever its place in the list is.
pub(crate) type Identity = (String, QuestionId);

impl Row {
    pub(crate) fn identity(&self) -> Identity {
        (self.question.session.clone(), self.question.id)
    }
}

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
    /// Answers that come before this were meant for another question.
    settled_at: Instant,
    /// A key that has to be pressed again, for this question.
    to_confirm: Option<(KeyCode, Identity)>,
    /// The same, for the answers of this session.
    to_save: Option<(KeyCode, Option<String>)>,
    /// Answered here; the session has not said so yet.
    sent: Vec<Identity>,
    said: Option<(String, Instant)>,
}

impl Board {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            all: Vec::new(),
            rows: Vec::new(),
            mode: Mode::List,
            sought: String::new(),
            sessions: 0,
            selected: 0,
            scroll: 0,
            settled_at: now,
            to_confirm: None,
            to_save: None,
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
        let (text, at) = self.said.as_ref()?;
        (now.saturating_duration_since(*at) < REMEMBERED).then_some(text.as_str())
    }

    pub(crate) fn say(&mut self, text: String, now: Instant) {
        self.said = Some((text, now));
    }

    /// Takes what is open now. The selection stays with its question; if that is gone, it goes to
    /// the one in its place.
    pub(crate) fn update(&mut self, mut rows: Vec<Row>, sessions: usize, now: Instant) {
        rows.sort_by_key(|row| (row.question.asked_at, row.identity()));
        let is_open = |identity: &Identity| rows.iter().any(|row| row.identity() == *identity);
        self.sent.retain(is_open);
        rows.retain(|row| !self.sent.contains(&row.identity()));
        let before = self.selected().map(Row::identity);
        self.all = rows;
        self.sessions = sessions;
        if let Mode::Group(group) = &mut self.mode {
            group.members.retain(|member| self.all.iter().any(|row| row.identity() == *member));
            if group.members.is_empty() {
                self.mode = Mode::List;
            }
        }
        self.show_sought(before.as_ref(), now);
    }

    /// Shows what is looked for. The selection stays with its question, if that is shown.
    fn show_sought(&mut self, before: Option<&Identity>, now: Instant) {
        let is_sought = |row: &&Row| matching::is_sought(row, &self.sought);
        self.rows = self.all.iter().filter(is_sought).cloned().collect();
        let kept =
            before.and_then(|before| self.rows.iter().position(|row| row.identity() == *before));
        match kept {
            Some(index) => self.selected = index,
            None => {
                self.selected = self.selected.min(self.rows.len().saturating_sub(1));
                self.moved();
                self.settled_at = now + SETTLING;
            }
        }
    }

    /// An answer did not arrive; the question is shown again.
    pub(crate) fn take_back(&mut self, session: &str) {
        self.sent.retain(|(sent_to, _)| sent_to != session);
    }

    pub(crate) fn press(&mut self, key: KeyEvent, now: Instant) -> Action {
        let confirmed = self.to_confirm.take();
        let to_save = self.to_save.take();
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            let is_quit = key.modifiers == KeyModifiers::CONTROL
                && matches!(key.code, KeyCode::Char('c' | 'd'));
            return if is_quit { Action::Quit } else { Action::Nothing };
        }
        match std::mem::take(&mut self.mode) {
            Mode::List => self.press_in_list(key.code, confirmed.as_ref(), to_save.as_ref(), now),
            // Whatever is pressed, the list is back.
            Mode::Help => Action::Nothing,
            Mode::Search => self.press_in_search(key.code, now),
            Mode::Like => self.press_in_likeness(key.code, now),
            Mode::Group(group) => self.press_in_group(key.code, group, now),
        }
    }

    fn press_in_list(
        &mut self,
        code: KeyCode,
        confirmed: Option<&(KeyCode, Identity)>,
        to_save: Option<&(KeyCode, Option<String>)>,
        now: Instant,
    ) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Search,
            KeyCode::Char('=') if !self.rows.is_empty() => self.mode = Mode::Like,
            KeyCode::Esc if !self.sought.is_empty() => self.seek(String::new(), now),
            KeyCode::Char('j') | KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char('g') | KeyCode::Home => self.select(0),
            KeyCode::Char('G') | KeyCode::End => self.select(usize::MAX),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += 5,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::Char('w') => return self.save(code, Store::User, to_save, now),
            KeyCode::Char('W') => return self.save(code, Store::Project, to_save, now),
            code => return self.answer(code, confirmed, now),
        }
        Action::Nothing
    }

    /// While something is typed no letter is an answer.
    fn press_in_search(&mut self, code: KeyCode, now: Instant) -> Action {
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
            KeyCode::Char(c) if sought.chars().count() < LONGEST_SOUGHT => sought.push(c),
            _ => {}
        }
        if sought != self.sought {
            self.seek(sought, now);
        }
        Action::Nothing
    }

    fn seek(&mut self, sought: String, now: Instant) {
        let before = self.selected().map(Row::identity);
        self.sought = sought;
        self.show_sought(before.as_ref(), now);
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

    fn press_in_group(&mut self, code: KeyCode, group: Group, now: Instant) -> Action {
        // A directory is offered for one question, not for many.
        let answer =
            meaning(code).filter(|answer| !answer.scope().is_some_and(Scope::is_directory));
        let Some(answer) = answer else {
            if code != KeyCode::Esc {
                self.mode = Mode::Group(group);
            }
            return Action::Nothing;
        };
        let questions = group.members;
        let before = self.selected().map(Row::identity);
        self.sent.extend(questions.iter().cloned());
        self.all.retain(|row| !questions.contains(&row.identity()));
        self.show_sought(before.as_ref(), now);
        self.settled_at = now + SETTLING;
        Action::AnswerAll { questions, answer }
    }

    /// What it keeps holds for good, so it is asked for twice.
    fn save(
        &mut self,
        code: KeyCode,
        store: Store,
        confirmed: Option<&(KeyCode, Option<String>)>,
        now: Instant,
    ) -> Action {
        if self.sessions == 0 {
            return Action::Nothing;
        }
        let session = self.selected().map(|row| row.question.session.clone());
        let wish = (code, session.clone());
        if confirmed == Some(&wish) {
            return Action::Save { session, store };
        }
        self.say(format!("press {code} again to save this session's answers for the {store}"), now);
        self.to_save = Some(wish);
        Action::Nothing
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
        self.to_confirm = None;
    }

    fn answer(
        &mut self,
        code: KeyCode,
        confirmed: Option<&(KeyCode, Identity)>,
        now: Instant,
    ) -> Action {
        let (Some(answer), Some(row)) = (meaning(code), self.selected()) else {
            return Action::Nothing;
        };
        let identity = row.identity();
        if now < self.settled_at {
            self.say("the list just changed; look, and press again".to_owned(), now);
            return Action::Nothing;
        }
        if answer.scope().is_some_and(Scope::is_directory) && row.question.offered().is_none() {
            let why = if row.question.is_secret { "for a secret" } else { "with this question" };
            self.say(format!("no directory is offered {why}"), now);
            return Action::Nothing;
        }
        let may_be_copied = row.question.subject.file().is_some_and(|file| file.may_be_copied);
        if answer.scope() == Some(Scope::PrivateCopy) && !may_be_copied {
            self.say("it changes nothing: there is nothing to keep a copy of".to_owned(), now);
            return Action::Nothing;
        }
        let is_grave = row.question.is_secret
            && matches!(answer, Answer::Allow { lifetime: Lifetime::Always(_), .. });
        if is_grave && confirmed != Some(&(code, identity.clone())) {
            self.say("this is a secret: press a again to allow it always".to_owned(), now);
            self.to_confirm = Some((code, identity));
            return Action::Nothing;
        }
        self.sent.push(identity.clone());
        self.all.retain(|row| row.identity() != identity);
        self.rows.remove(self.selected);
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        self.moved();
        self.settled_at = now + SETTLING;
        let (session, id) = identity;
        Action::Answer { session, id, answer }
    }
}

fn meaning(code: KeyCode) -> Option<Answer> {
    let KeyCode::Char(key) = code else { return None };
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    Some(match key {
        'y' => allow(Scope::File, Lifetime::Once),
        's' => allow(Scope::File, Lifetime::Session),
        'a' => allow(Scope::File, Lifetime::Always(Store::User)),
        'd' => allow(Scope::Directory, Lifetime::Session),
        'D' => allow(Scope::Directory, Lifetime::Always(Store::User)),
        'e' => allow(Scope::DirectoryToRun, Lifetime::Session),
        'c' => allow(Scope::PrivateCopy, Lifetime::Session),
        'n' => Answer::Deny { lifetime: Lifetime::Session },
        'x' => Answer::Deny { lifetime: Lifetime::Always(Store::User) },
        _ => return None,
    })
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
