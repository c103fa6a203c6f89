//! Sessions by the words of a person: an id, its beginning or its end, or a name.

use super::directory::{SessionDirectory, all_sessions};
use super::record::{SessionRecord, SessionSummary};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use std::fs;
use std::io;

/// The last part of an id: sessions that were made one after another differ in it, and not at the beginning.
const SHORT_ID: usize = 12;
const MAX_NAME: usize = 64;

/// This user's sessions, oldest first. What nobody has claimed is none yet. What cannot be read as one is left out: it must never hide the others.
pub fn list(places: &AppDirs) -> Result<Vec<(SessionDirectory, SessionRecord)>> {
    let all = all_sessions(places);
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("read", &all, error)),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let directories = names.filter_map(|name| SessionDirectory::open(places, &name).ok()?);
    let mut sessions: Vec<_> = directories
        .filter_map(|directory| {
            let record = directory.record().ok().filter(|record| record.id == directory.id())?;
            (!record.is_prepared).then_some((directory, record))
        })
        .collect();
    sessions.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    Ok(sessions)
}

/// The one session that is meant. A name means the session that has it and is not over, if there is one.
pub fn find(places: &AppDirs, named: &str) -> Result<(SessionDirectory, SessionRecord)> {
    // The usual case costs one open: a program knows the whole id.
    if let Some(directory) = SessionDirectory::open(places, named)? {
        let record = directory.record()?;
        if record.is_prepared {
            return Err(nobody_has_claimed(named));
        }
        return Ok((directory, record));
    }
    find_among_all(places, named)
}

/// The same, for who starts a command in it.
pub fn find_for_command(
    places: &AppDirs,
    named: &str,
) -> Result<(SessionDirectory, SessionSummary)> {
    if let Some(directory) = SessionDirectory::open(places, named)? {
        let summary = directory.summary()?;
        if summary.is_prepared {
            return Err(nobody_has_claimed(named));
        }
        return Ok((directory, summary));
    }
    find_among_all(places, named).map(|(directory, record)| (directory, record.into()))
}

/// It is no session yet.
fn nobody_has_claimed(named: &str) -> SessionError {
    SessionError::NoSuchSession { named: named.to_owned(), sessions: String::new() }
}

fn find_among_all(places: &AppDirs, named: &str) -> Result<(SessionDirectory, SessionRecord)> {
    let sessions = list(places)?;
    let everything = words_for(sessions.iter().map(|(_, record)| record));
    let is_named = |record: &SessionRecord| record.name.as_deref() == Some(named);
    let is_part = |record: &SessionRecord| {
        !named.is_empty() && (record.id.starts_with(named) || record.id.ends_with(named))
    };
    let (mut meant, others): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|(_, record)| is_named(record));
    if meant.iter().any(|(_, record)| !record.is_over()) {
        meant.retain(|(_, record)| !record.is_over());
    }
    if meant.is_empty() {
        meant = others.into_iter().filter(|(_, record)| is_part(record)).collect();
    }
    let named = named.to_owned();
    match meant.len() {
        0 => Err(SessionError::NoSuchSession { named, sessions: everything }),
        1 => Ok(meant.swap_remove(0)),
        _ => {
            let sessions = words_for(meant.iter().map(|(_, record)| record));
            Err(SessionError::SeveralSessions { named, sessions })
        }
    }
}

/// The end of an id, by which a person tells sessions apart.
pub fn short_id(id: &str) -> &str {
    id.len().checked_sub(SHORT_ID).and_then(|start| id.get(start..)).unwrap_or(id)
}

/// Whether a new session may have this name.
pub(super) fn check_new_name(places: &AppDirs, name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_valid = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= MAX_NAME
        && name.chars().all(is_word);
    if !is_valid {
        return Err(SessionError::InvalidName { name: name.to_owned() });
    }
    let has_it = |record: &SessionRecord| record.name.as_deref() == Some(name) && !record.is_over();
    let taken = list(places)?
        .into_iter()
        .find(|(directory, record)| has_it(record) && directory.is_alive());
    match taken {
        Some((_, SessionRecord { id: session, .. })) => {
            Err(SessionError::NameTaken { name: name.to_owned(), session })
        }
        None => Ok(()),
    }
}

fn words_for<'r>(sessions: impl Iterator<Item = &'r SessionRecord>) -> String {
    let words = sessions.map(|record| match &record.name {
        Some(name) => format!("{} ({name})", record.id),
        None => record.id.clone(),
    });
    words.collect::<Vec<_>>().join(", ")
}
