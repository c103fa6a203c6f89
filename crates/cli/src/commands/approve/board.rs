//! What is on the screen and what a key means, without a terminal.
//!
//! A key answers the question that was looked at, or none: when the list changes under the reader's
//! eyes, answers are not taken for a moment.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Answer, Lifetime, Question, QuestionId, Scope, Store};
use std::time::{Duration, Instant};

/// Longer than it takes to see that something else is selected now.
const SETTLING: Duration = Duration::from_millis(600);
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
type Identity = (String, QuestionId);

impl Row {
    fn identity(&self) -> Identity {
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
    /// Keep what was answered for the session; none if no question tells which one is meant.
    Save {
        session: Option<String>,
        store: Store,
    },
}

#[derive(Debug)]
pub(crate) struct Board {
    rows: Vec<Row>,
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
            rows: Vec::new(),
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
        self.rows = rows;
        self.sessions = sessions;
        let kept = before
            .as_ref()
            .and_then(|before| self.rows.iter().position(|row| row.identity() == *before));
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
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('j') | KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += 5,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::Char('w') => return self.save(key.code, Store::User, to_save.as_ref(), now),
            KeyCode::Char('W') => {
                return self.save(key.code, Store::Project, to_save.as_ref(), now);
            }
            code => return self.answer(code, confirmed.as_ref(), now),
        }
        Action::Nothing
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
        let is_directory = matches!(answer, Answer::Allow { scope: Scope::Directory, .. });
        if is_directory && row.question.offered().is_none() {
            let why = if row.question.is_secret { "for a secret" } else { "with this question" };
            self.say(format!("no directory is offered {why}"), now);
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
        'n' => Answer::Deny { lifetime: Lifetime::Session },
        'x' => Answer::Deny { lifetime: Lifetime::Always(Store::User) },
        _ => return None,
    })
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
