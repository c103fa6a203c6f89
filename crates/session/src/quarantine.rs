//! Tools that do not run until a person has looked at what they did (ESC-1).
//!
//! A store that cannot be read refuses every command: what it would have said is not known. Nothing inside a sandbox sees
//! it, because the state directory is never visible there.

use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::session_id::new_session_id;
use crate::sessions;
use jiff::Timestamp;
use palisade_record::{Digest, EscapeAttempt, EventKind, Quarantined, Released, Severity, redact};
use palisade_supervisor::escape::{CommandVeto, StartedTool};
use palisade_sys::lock::{lock_within, open_lock_file, try_lock_file};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// More than anybody would review; then nothing is forgotten, and further ones are refused a place.
const MAX_ENTRIES: usize = 512;
/// Others hold the lock while they replace one file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Of the text that describes an attempt.
const MAX_TEXT: usize = 400;

/// A tool that does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineEntry {
    pub id: String,
    /// The declared tool's name, or the program's.
    pub tool: String,
    /// Whether the name was declared (`--tool`): then no command of that tool runs.
    pub is_declared: bool,
    pub command_hash: Digest,
    /// Its masked beginning.
    pub command: String,
    pub since: Timestamp,
    /// The session in which it happened, under whose name the bundle is kept.
    pub session: String,
    pub indicator: String,
    pub severity: Severity,
    pub description: String,
}

impl QuarantineEntry {
    fn holds(&self, tool: Option<&str>, hash: Digest) -> bool {
        self.command_hash == hash || (self.is_declared && tool == Some(self.tool.as_str()))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    entries: Vec<QuarantineEntry>,
}

const VERSION: u32 = 1;

/// All that are quarantined, oldest first.
pub fn list(places: &AppDirs) -> Result<Vec<QuarantineEntry>> {
    let path = places.quarantine_store();
    let text = match app_dirs::read_document(&path) {
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(text)) => text,
        Err(error) => {
            return Err(SessionError::QuarantineStore { path, why: error.to_string() });
        }
    };
    let damaged =
        |why: String| SessionError::QuarantineStore { path: places.quarantine_store(), why };
    let document: Document =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    match document.version {
        VERSION => Ok(document.entries),
        other => Err(damaged(format!("version {other} is not known"))),
    }
}

/// An error if this command must not run.
pub fn check<A: AsRef<OsStr>>(places: &AppDirs, tool: Option<&str>, argv: &[A]) -> Result<()> {
    let entries = list(places)?;
    if entries.is_empty() {
        return Ok(());
    }
    let hash = redact::hash(argv);
    match entries.into_iter().find(|entry| entry.holds(tool, hash)) {
        Some(QuarantineEntry { id, tool, since, indicator, .. }) => {
            let id = sessions::short_id(&id).to_owned();
            Err(SessionError::Quarantined { tool, since, indicator, id })
        }
        None => Ok(()),
    }
}

/// The entries that a word means: an id, its beginning or its end, or a tool's name.
pub fn find(places: &AppDirs, named: &str) -> Result<Vec<QuarantineEntry>> {
    let entries = list(places)?;
    let is_id = |entry: &&QuarantineEntry| {
        named.len() >= 4 && (entry.id.starts_with(named) || entry.id.ends_with(named))
    };
    let by_id: Vec<_> = entries.iter().filter(is_id).cloned().collect();
    match by_id.len() {
        0 => {}
        1 => return Ok(by_id),
        _ => {
            return Err(SessionError::SeveralQuarantined { named: named.to_owned() });
        }
    }
    let by_tool: Vec<_> = entries.into_iter().filter(|entry| entry.tool == named).collect();
    if by_tool.is_empty() {
        return Err(SessionError::NotQuarantined { named: named.to_owned() });
    }
    Ok(by_tool)
}

/// Lets tools run again, and records who did it.
pub fn release(places: &AppDirs, released: &[QuarantineEntry], uid: u32) -> Result<()> {
    let _lock = lock(places)?;
    let mut entries = list(places)?;
    entries.retain(|entry| released.iter().all(|it| it.id != entry.id));
    // First in the log: what cannot be recorded is not released.
    for entry in released {
        let event = EventKind::Released(Released {
            quarantine: entry.id.clone(),
            tool: entry.tool.clone(),
            command_hash: entry.command_hash,
            uid,
        });
        Journal::open(places, &entry.session)?.record_afterwards(event)?;
    }
    save(places, entries)
}

/// What a run is quarantined for.
#[derive(Debug)]
pub(crate) struct Offence<'a> {
    pub(crate) session: &'a str,
    pub(crate) attempt: &'a EscapeAttempt,
    /// As declared for the run.
    pub(crate) declared: Option<&'a str>,
    pub(crate) tools: &'a [StartedTool],
}

/// Keeps tools from running again. What is quarantined already is not entered twice.
pub(crate) fn add(places: &AppDirs, offence: &Offence<'_>) -> Result<Vec<Quarantined>> {
    let _lock = lock(places)?;
    let mut entries = list(places)?;
    let mut added = Vec::new();
    for tool in offence.tools {
        let is_known = |entry: &QuarantineEntry| entry.command_hash == tool.hash;
        if entries.iter().any(is_known) {
            continue;
        }
        if entries.len() >= MAX_ENTRIES {
            let why = format!("it has {MAX_ENTRIES} entries, which is as many as it holds");
            return Err(SessionError::QuarantineStore { path: places.quarantine_store(), why });
        }
        let entry = QuarantineEntry {
            id: new_session_id(),
            tool: offence.declared.map_or_else(|| cut(&tool.program), str::to_owned),
            is_declared: offence.declared.is_some(),
            command_hash: tool.hash,
            command: tool.preview.clone(),
            since: Timestamp::now(),
            session: offence.session.to_owned(),
            indicator: offence.attempt.id.clone(),
            severity: offence.attempt.severity,
            description: cut(&offence.attempt.description),
        };
        added.push(Quarantined {
            quarantine: entry.id.clone(),
            tool: entry.tool.clone(),
            command_hash: entry.command_hash,
        });
        entries.push(entry);
    }
    if !added.is_empty() {
        save(places, entries)?;
    }
    Ok(added)
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

fn save(places: &AppDirs, entries: Vec<QuarantineEntry>) -> Result<()> {
    let path = places.quarantine_store();
    let document = Document { version: VERSION, entries };
    let mut text = serde_json::to_string_pretty(&document).map_err(|error| {
        SessionError::QuarantineStore { path: path.clone(), why: error.to_string() }
    })?;
    text.push('\n');
    if text.len() as u64 > app_dirs::MAX_DOCUMENT_BYTES {
        let why = "it would be too large to be read again; release what was reviewed".to_owned();
        return Err(SessionError::QuarantineStore { path, why });
    }
    app_dirs::replace_file(&path, text.as_bytes())
}

/// Held while the store is changed.
fn lock(places: &AppDirs) -> Result<OwnedFd> {
    let path = places.state.join("quarantine.lock");
    app_dirs::make_private_dir(&places.state)?;
    let failed = |errno: Errno| SessionError::io("lock", &path, errno.into());
    let file = open_lock_file(&path).map_err(failed)?;
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    match lock_within(LOCK_TIMEOUT, || try_lock_file(&file, exclusive)).map_err(failed)? {
        true => Ok(file),
        false => Err(failed(Errno::AGAIN)),
    }
}

/// For the supervisor of a session: the commands that are started in it later are looked up as well.
#[derive(Debug)]
pub(crate) struct QuarantineVeto {
    pub(crate) places: AppDirs,
    pub(crate) tool: Option<String>,
}

impl CommandVeto for QuarantineVeto {
    fn refuses(&self, argv: &[&OsStr]) -> Option<String> {
        check(&self.places, self.tool.as_deref(), argv).err().map(|error| error.to_string())
    }
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod tests;
