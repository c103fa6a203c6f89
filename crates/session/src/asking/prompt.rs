//! The question in the run's own terminal: one line, single keys (GATE-8).
//!
//! Only where the command has the terminal to itself and no full-screen program owns it. Keys count as an answer
//! only if they stand alone, after a moment in which nothing was typed: what somebody was typing for the command
//! must not grant anything. Every text that came from inside is escaped, and whatever the command did to the
//! terminal before must neither hide the question nor change how it reads.

use palisade_ask::{Access, Answer, Lifetime, Question, QuestionId, Scope, Store, Subject};
use palisade_record::escape;
use rustix::termios::Winsize;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A key is an answer if nothing was typed for so long before it, and the question was there meanwhile.
/// Who is typing is faster.
const PAUSE: Duration = Duration::from_millis(600);

/// Ctrl-C.
pub(crate) const INTERRUPT: u8 = 0x03;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Undoes what an earlier output may have done to what is written next. In this order: an unfinished sequence
/// or string ends (`CAN`; `ST` where that is not heard), VT52 and printer modes end; with the cursor kept,
/// margins and origin go (both move it home); wrapping is on and inserting off, drawing is neither held back nor
/// hidden, letters are letters, without attributes. The names are those of xterm's "Control Sequences".
const RESET: &str = concat!(
    "\x18\x1b\\\x1b<\x1b[4i",
    "\x1b7\x1b[?69l\x1b[?6l\x1b[r\x1b8",
    "\x1b[?7h\x1b[4l\x1b[?2026l",
    "\x1b(B\x0f\x1b[0m\x1b[?25h",
);
/// From a line's beginning: what was drawn below must not look like a part of the question.
const CLEAR_BELOW: &str = "\x1b[J";
/// Ends a question of which only a part was written.
pub(super) const BROKEN_OFF: &str = "\x18\x1b[0m\r\n";

/// A program's name is no longer than this.
const LONGEST_NAME: usize = 32;
/// A path is given so much room on the smallest of screens.
const LEAST_ROOM: usize = 24;

/// For a screen that a program owns: a bell, and the window's title, kept on xterm's stack meanwhile.
pub(super) const TITLE: &str =
    "\x1b[22;2t\x1b]2;palisade: a question waits (sandbox approve)\x07\x07";
pub(super) const TITLE_BACK: &str = "\x1b[23;2t";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Yes,
    No,
}

impl Colour {
    /// As <https://no-color.org> has it.
    pub(super) fn of_environment() -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_unwanted || is_dumb { Self::No } else { Self::Yes }
    }
}

/// What a question is written on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) colour: Colour,
}

impl Page {
    /// A terminal that does not know its size says 0.
    pub(super) fn of_terminal(size: Winsize) -> Self {
        let or = |number: u16, classic| if number == 0 { classic } else { usize::from(number) };
        Self {
            columns: or(size.ws_col, 80),
            rows: or(size.ws_row, 24),
            colour: Colour::of_environment(),
        }
    }
}

/// A question that stands on the screen, or is on its way there.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) question: QuestionId,
    /// What the terminal has not taken yet.
    unwritten: Vec<u8>,
    /// When the question was there or a key was pressed, whichever was later. None while the terminal has not
    /// taken all of it: nobody can have read it.
    quiet_since: Option<Instant>,
}

/// Whether a terminal's line still has to carry what was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    UnderWay,
    Done,
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// It goes to the command.
    NotForUs,
    Answer(Answer),
    /// No, and the command should hear of it as well.
    Interrupt,
}

impl Prompt {
    pub(super) fn new(question: QuestionId, text: String) -> Self {
        Self { question, unwritten: text.into_bytes(), quiet_since: None }
    }

    /// What is still to be written.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.unwritten
    }

    pub(super) fn is_shown(&self) -> bool {
        self.quiet_since.is_some()
    }

    /// So much of it was written; `delivery` tells what became of it.
    pub(super) fn wrote(&mut self, count: usize, delivery: Delivery, now: Instant) {
        self.unwritten.drain(..count.min(self.unwritten.len()));
        if self.unwritten.is_empty() && delivery == Delivery::Done {
            self.quiet_since.get_or_insert(now);
        }
    }

    /// What was typed at once; more than one key is no answer.
    pub(super) fn press(&mut self, keys: &[u8], question: &Question, now: Instant) -> Pressed {
        if keys.contains(&INTERRUPT) {
            return Pressed::Interrupt;
        }
        let Some(quiet_since) = &mut self.quiet_since else { return Pressed::NotForUs };
        let quiet = now.saturating_duration_since(*quiet_since);
        *quiet_since = now;
        match keys {
            [key] if quiet >= PAUSE => choices(question)
                .find(|choice| choice.key == char::from(*key))
                .map_or(Pressed::NotForUs, |choice| Pressed::Answer(choice.answer)),
            _ => Pressed::NotForUs,
        }
    }
}

struct Choice {
    key: char,
    word: &'static str,
    answer: Answer,
}

/// In the order they are shown.
fn choices(question: &Question) -> impl Iterator<Item = Choice> {
    let has_directory = question.subject.file().is_some_and(|file| file.directory.is_some());
    let is_secret = question.is_secret;
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    let always = Lifetime::Always(Store::User);
    [
        ('y', "once", allow(Scope::File, Lifetime::Once), true),
        ('s', "session", allow(Scope::File, Lifetime::Session), true),
        ('a', "always", allow(Scope::File, always), !is_secret),
        ('d', "dir", allow(Scope::Directory, Lifetime::Session), has_directory),
        ('D', "dir always", allow(Scope::Directory, always), has_directory),
        ('n', "no", Answer::Deny { lifetime: Lifetime::Session }, true),
        ('x', "never", Answer::Deny { lifetime: always }, true),
    ]
    .into_iter()
    .filter(|(_, _, _, is_offered)| *is_offered)
    .map(|(key, word, answer, _)| Choice { key, word, answer })
}

/// The question as it is written to a terminal in raw mode. All of it fits on the screen: a path that is too
/// long for that loses its middle, never its end.
pub(super) fn line(question: &Question, others: usize, page: Page) -> String {
    let (strong, red, dim, plain) = match page.colour {
        Colour::Yes => (BOLD, RED, DIM, PLAIN),
        Colour::No => ("", "", "", ""),
    };
    let room = Room::of(question, page);
    let mark = if question.is_secret { red } else { strong };
    let mut text = format!("{RESET}\r\n{CLEAR_BELOW}");
    let (verb, what) = wanted(&question.subject);
    // Writing to a String has no way to fail.
    let _ = write!(text, "{mark}?{plain} {} wants to {verb} ", program(question));
    let what = cut(&what, room.path);
    if question.is_secret {
        let _ = write!(text, "{red}the secret {what}{plain}");
    } else {
        let _ = write!(text, "{strong}{what}{plain}");
    }
    let file = question.subject.file();
    for also in file.map(|file| file.also.as_slice()).unwrap_or_default() {
        let _ = write!(text, " with {}", cut(&shown(also), room.each_other));
    }
    if let Some(directory) = file.and_then(|file| file.directory.as_ref()) {
        let directory = cut(&format!("{}/**", shown(directory)), room.each_other);
        let _ = write!(text, "\r\n  {dim}directory:{plain} {directory}");
    }
    if others > 0 {
        let _ = write!(text, "\r\n  {dim}{others} more waiting, also in `sandbox approve`{plain}");
    }
    text.push_str("\r\n ");
    for Choice { key, word, .. } in choices(question) {
        let _ = write!(text, " {strong}{key}{plain} {word} ");
    }
    text
}

/// What is to be done, and what with.
fn wanted(subject: &Subject) -> (&'static str, String) {
    match subject {
        Subject::File(file) => {
            let verb = match (file.access, file.is_directory) {
                (Access::Execute, _) => "run",
                (Access::Read, true) => "look into",
                (Access::Read, false) => "read",
            };
            (verb, shown(&file.path))
        }
        Subject::Host(host) => ("connect to", escape::text(&host.to_string()).into_owned()),
    }
}

/// Columns for the paths of a question.
#[derive(Clone, Copy, Debug)]
struct Room {
    path: usize,
    each_other: usize,
}

impl Room {
    fn of(question: &Question, page: Page) -> Self {
        /// Around a path: the words before it, its length; or a label and the length.
        const WORDS: usize = 56;
        const LABEL: usize = 36;
        let file = question.subject.file();
        // Half of a wide character does not fit at the end of a row.
        let columns = page.columns.saturating_sub(1).max(1);
        let keys: usize = 1 + choices(question).map(|choice| choice.word.len() + 4).sum::<usize>();
        // Besides the keys: the row that was there before, and what else waits, on a narrow page in two rows.
        let rows = page.rows.saturating_sub(keys.div_ceil(columns) + 3);
        let others = file.map_or(0, |file| file.also.len() + usize::from(file.directory.is_some()));
        let half = rows.div_ceil(2) * columns;
        // Each may end in the middle of a row.
        let each_other = ((rows / 2) * columns).checked_div(others).unwrap_or(0);
        Self {
            path: half.saturating_sub(WORDS + columns_of(&program(question))).max(LEAST_ROOM),
            each_other: each_other.saturating_sub(LABEL + columns / 2).max(LEAST_ROOM),
        }
    }
}

/// Columns that a character takes, at most.
fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

fn columns_of(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The beginning and the end of a text that has no room, and how long it is; of a path, the end tells more.
fn cut(text: &str, room: usize) -> String {
    if columns_of(text) <= room {
        return text.to_owned();
    }
    let within = |columns: usize| {
        let mut used = 0;
        move |c: &char| {
            used += width(*c);
            used <= columns
        }
    };
    let beginning: String = text.chars().take_while(within(room / 3)).collect();
    let end: Vec<char> = text.chars().rev().take_while(within(room - room / 3)).collect();
    let end: String = end.into_iter().rev().collect();
    format!("{beginning}…{end} ({} characters)", text.chars().count())
}

/// What is written behind it once it is decided.
pub(super) fn outcome(answer: Answer, by: &str) -> String {
    let word = match answer {
        Answer::Allow { scope: Scope::Directory, .. } => "directory allowed",
        Answer::Allow { lifetime: Lifetime::Once, .. } => "allowed once",
        Answer::Allow { lifetime: Lifetime::Session, .. } => "allowed for this session",
        Answer::Allow { lifetime: Lifetime::Always(_), .. } => "always allowed",
        Answer::Deny { lifetime: Lifetime::Always(_) } => "never allowed",
        Answer::Deny { .. } => "denied",
    };
    format!("-> {word} ({by})\r\n")
}

/// The question where nobody can be asked here: one line, for `sandbox approve`.
pub(super) fn notice(question: &Question) -> String {
    let (verb, what) = wanted(&question.subject);
    format!("waiting: {} wants to {verb} {what}; answer with `sandbox approve`", program(question))
}

/// Quoted, so that a name can not go on as if it were words of ours.
fn program(question: &Question) -> String {
    let Some(process) = question.processes.first() else { return "a program".to_owned() };
    let name = process.executable.rsplit('/').next().unwrap_or_default();
    let mut kept = String::new();
    for c in name.chars() {
        kept.push(c);
        if escape::text(&kept).chars().count() > LONGEST_NAME {
            kept.pop();
            kept.push('…');
            break;
        }
    }
    format!("{} ({})", escape::quoted(&kept), process.pid)
}

fn shown(path: &std::path::Path) -> String {
    escape::bytes(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
