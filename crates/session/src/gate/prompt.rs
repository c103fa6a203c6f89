//! The question in the run's own terminal: one line, single keys (GATE-8).
//!
//! Only where the command has the terminal to itself and no full-screen program owns it. Keys count as an answer
//! only if they stand alone, after a moment in which nothing was typed: what somebody was typing for the command
//! must not grant anything. Every text that came from inside is escaped.

use palisade_ask::{Access, Answer, Lifetime, Question, QuestionId, Scope, Store, Subject};
use palisade_record::escape;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A key is an answer if nothing was typed for so long before it, and the question was there meanwhile.
/// Who is typing is faster.
const PAUSE: Duration = Duration::from_millis(600);

const INTERRUPT: u8 = 0x03;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

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

/// A question that stands on the screen.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) question: QuestionId,
    /// When the question appeared or a key was pressed, whichever was later.
    quiet_since: Instant,
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
    pub(super) fn new(question: QuestionId, now: Instant) -> Self {
        Self { question, quiet_since: now }
    }

    /// What was typed at once; more than one key is no answer.
    pub(super) fn press(&mut self, keys: &[u8], question: &Question, now: Instant) -> Pressed {
        let quiet = now.saturating_duration_since(self.quiet_since);
        self.quiet_since = now;
        if keys.contains(&INTERRUPT) {
            return Pressed::Interrupt;
        }
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
    let Subject::File(file) = &question.subject;
    let has_directory = file.directory.is_some();
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

/// The question as it is written to a terminal in raw mode.
pub(super) fn line(question: &Question, others: usize, colour: Colour) -> String {
    let (strong, red, dim, plain) = match colour {
        Colour::Yes => (BOLD, RED, DIM, PLAIN),
        Colour::No => ("", "", "", ""),
    };
    let Subject::File(file) = &question.subject;
    let mark = if question.is_secret { red } else { strong };
    let mut text = String::from("\r\n");
    let verb = match (file.access, file.is_directory) {
        (Access::Execute, _) => "run",
        (Access::Read, true) => "look into",
        (Access::Read, false) => "read",
    };
    // Writing to a String has no way to fail.
    let _ = write!(text, "{mark}?{plain} {} wants to {verb} ", program(question));
    if question.is_secret {
        let _ = write!(text, "{red}the secret {}{plain}", shown(&file.path));
    } else {
        let _ = write!(text, "{strong}{}{plain}", shown(&file.path));
    }
    for also in &file.also {
        let _ = write!(text, " with {}", shown(also));
    }
    if let Some(directory) = &file.directory {
        let _ = write!(text, "\r\n  {dim}directory:{plain} {}/**", shown(directory));
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
    let Subject::File(file) = &question.subject;
    let verb = match file.access {
        Access::Execute => "run",
        Access::Read => "read",
    };
    format!(
        "waiting: {} wants to {verb} {}; answer with `sandbox approve`",
        program(question),
        shown(&file.path)
    )
}

fn program(question: &Question) -> String {
    let Some(process) = question.processes.first() else { return "a program".to_owned() };
    let name = process.executable.rsplit('/').next().unwrap_or_default();
    format!("{} ({})", escape::text(name), process.pid)
}

fn shown(path: &std::path::Path) -> String {
    escape::bytes(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
