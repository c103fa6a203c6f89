//! How things are said: results on standard output, everything else on standard error.
//!
//! Colour only on a terminal, and never with `NO_COLOR` set (no-color.org).

use crate::patience;
use palisade_record::{ErrorKind, escape};
use palisade_session::{Complaint, ERRORS_AS_JSON, SessionError};
use std::io::{self, IsTerminal, Write};

/// Prints a result. A reader that has gone away (`| head`) is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints lines that hold names from elsewhere: what a terminal would act on is spelt out, and so is a line break within
/// a line, which would look like a line of ours.
pub(crate) fn print_lines<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> anyhow::Result<()> {
    let escaped = lines.into_iter().map(|line| format!("{}\n", escape::text(line.as_ref())));
    let text: String = escaped.collect();
    if text.is_empty() { Ok(()) } else { print(&text) }
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&escape::json(serde_json::to_string_pretty(value)?))
}

/// One line for a person, on standard error.
pub(crate) fn note(text: &str) {
    say(text, Style::Plain);
}

/// What is said next begins on a line of its own.
pub(crate) fn end_line() {
    patience::say(b"\n");
}

/// A question to a person at the terminal, who answers on the same line. What is not ours in it is escaped already.
pub(crate) fn question(text: &str) {
    let paint = Paint { on: io::stderr().is_terminal() && colour_wanted() };
    patience::say(format!("{} {text}", paint.with(Style::Yellow, "sandbox:")).as_bytes());
}

/// An error that already has its class, where only its text is left of what caused it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ClassifiedError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// An error and what led to it, a line for each complaint.
pub(crate) fn complain(error: &anyhow::Error) {
    if std::env::var_os(ERRORS_AS_JSON).is_some() {
        let reason = error.downcast_ref().map(SessionError::reason);
        let complaint = Complaint { kind: kind(error), reason, message: error.to_string() };
        // It has only texts.
        let line = serde_json::to_string(&complaint).unwrap_or_default();
        return patience::say(format!("{line}\n").as_bytes());
    }
    if let Some(SessionError::Policy(complaints)) = error.downcast_ref() {
        for complaint in complaints {
            say(&complaint.to_string(), Style::Red);
        }
        return;
    }
    say(&error.to_string(), Style::Red);
}

/// What did not come from below is about what was asked for.
fn kind(error: &anyhow::Error) -> ErrorKind {
    if let Some(error) = error.downcast_ref::<SessionError>() {
        return error.kind();
    }
    if let Some(error) = error.downcast_ref::<ClassifiedError>() {
        return error.kind;
    }
    match error.downcast_ref::<io::Error>() {
        Some(_) => ErrorKind::Initialisation,
        None => ErrorKind::Validation,
    }
}

fn say(text: &str, style: Style) {
    let paint = Paint { on: io::stderr().is_terminal() && colour_wanted() };
    let line = format!("{} {}\n", paint.with(style, "sandbox:"), escape::text(text));
    patience::say(line.as_bytes());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Red,
    Green,
    Yellow,
}

/// Colours, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Self {
        Self { on: io::stdout().is_terminal() && colour_wanted() }
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    pub(crate) fn with(self, style: Style, text: &str) -> String {
        let code = match style {
            _ if !self.on => return text.to_owned(),
            Style::Plain => return text.to_owned(),
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

pub(crate) fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
