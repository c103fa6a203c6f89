//! The answers that people gave in a session, kept for `sandbox policy save` (GATE-4).
//!
//! One file per session. It must never grant anything by itself: only saving rules reads it.

pub use palisade_supervisor::answers::{Answers, HostAnswer};

use crate::app_dirs::{AppDirs, read_document, replace_file};
use crate::error::{Result, SessionError};
use jiff::Timestamp;
use palisade_gate::{Access, Effect, Origin, Pattern, Rule, Store};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".answers.json";

/// How many sessions' answers are kept. Older ones are not worth saving, and every file names paths that were accessed.
const MAX_KEPT: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordedAnswer {
    effect: Effect,
    path: String,
    /// Whether it covers everything below.
    tree: bool,
    access: Access,
    at: Timestamp,
    by: String,
}

/// One line of a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Recorded {
    Path(RecordedAnswer),
    Host(HostAnswer),
}

impl RecordedAnswer {
    /// `None` for what a file cannot hold: globs, which are never answers, and names that are not UTF-8.
    fn of(rule: &Rule) -> Option<Self> {
        Some(Self {
            effect: rule.effect,
            path: rule.pattern.path()?.to_str()?.to_owned(),
            tree: matches!(rule.pattern, Pattern::Tree(_)),
            access: rule.access,
            at: rule.origin.at?,
            by: rule.origin.by.clone().unwrap_or_default(),
        })
    }

    fn rule(&self) -> Rule {
        let path = PathBuf::from(&self.path);
        Rule {
            effect: self.effect,
            pattern: if self.tree { Pattern::Tree(path) } else { Pattern::Exact(path) },
            access: self.access,
            store: Store::Session,
            until: None,
            origin: Origin {
                by: Some(self.by.clone()).filter(|by| !by.is_empty()),
                at: Some(self.at),
                place: "answered in this session".to_owned(),
            },
        }
    }
}

/// Saves the answers of a session, replacing earlier ones; without answers no file is written. Also removes the oldest
/// files beyond `MAX_KEPT`.
pub fn write(places: &AppDirs, session: &str, answers: &Answers) -> Result<()> {
    let paths = answers.rules.iter().filter_map(RecordedAnswer::of).map(Recorded::Path);
    let hosts = answers.hosts.iter().cloned().map(Recorded::Host);
    let answers: Vec<Recorded> = paths.chain(hosts).collect();
    if answers.is_empty() {
        return Ok(());
    }
    let path = file_of(places, session)?;
    let mut text = serde_json::to_string_pretty(&answers)
        .map_err(|source| SessionError::Answers { path: path.clone(), source })?;
    text.push('\n');
    replace_file(&path, text.as_bytes())?;
    forget_old(places)
}

/// Files that cannot be removed now are tried again by the next session.
fn forget_old(places: &AppDirs) -> Result<()> {
    let mut sessions = sessions(places)?;
    sessions.sort_unstable();
    let too_many = sessions.len().saturating_sub(MAX_KEPT);
    for session in sessions.drain(..too_many) {
        let _ = fs::remove_file(directory(places).join(format!("{session}{SUFFIX}")));
    }
    Ok(())
}

pub fn read(places: &AppDirs, session: &str) -> Result<Answers> {
    let path = file_of(places, session)?;
    let text = read_document(&path)?
        .ok_or_else(|| SessionError::NoAnswers { session: session.to_owned() })?;
    let recorded: Vec<Recorded> =
        serde_json::from_str(&text).map_err(|source| SessionError::Answers { path, source })?;
    let mut answers = Answers::default();
    for answer in recorded {
        match answer {
            Recorded::Path(path) => answers.rules.push(path.rule()),
            Recorded::Host(host) => answers.hosts.push(host),
        }
    }
    Ok(answers)
}

/// The newest session with answers: session ids sort by time.
pub fn last_session(places: &AppDirs) -> Result<String> {
    sessions(places)?.into_iter().max().ok_or(SessionError::NoSessions)
}

fn sessions(places: &AppDirs) -> Result<Vec<String>> {
    let directory = directory(places);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("list", &directory, error)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.strip_suffix(SUFFIX).map(str::to_owned)).collect())
}

fn directory(places: &AppDirs) -> PathBuf {
    places.state.join("sessions")
}

/// The id comes from a command line: it must not lead to another path.
fn file_of(places: &AppDirs, session: &str) -> Result<PathBuf> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if session.is_empty() || !session.chars().all(is_name) {
        return Err(SessionError::NoAnswers { session: session.to_owned() });
    }
    Ok(directory(places).join(Path::new(&format!("{session}{SUFFIX}"))))
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
