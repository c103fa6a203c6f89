//! What is kept of an incident: a directory of our own with a few small files, readable by its owner only.
//!
//! Everything in it is bounded in size, and the number of bundles is. Text from inside is in JSON strings and nowhere else:
//! no name of a file comes from inside.

use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use crate::quarantine;
use crate::trail::Trail;
use palisade_plan::model::Plan;
use palisade_record::RunReport;
use palisade_supervisor::escape::Incident;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// So many bundles are kept; those of tools that are still quarantined are never removed.
const MAX_BUNDLES: usize = 64;
const MAX_FILE: usize = 512 * 1024;
/// Of each list of a report that would be larger.
const MAX_LISTED: usize = 10;

const INCIDENT: &str = "incident.json";
const EVENTS: &str = "events.jsonl";
const PROCESSES: &str = "processes.json";
const CALLS: &str = "calls.json";
const POLICY: &str = "policy.json";
const REPORT: &str = "report.json";
const FILES: [&str; 6] = [INCIDENT, EVENTS, PROCESSES, CALLS, POLICY, REPORT];

#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
}

/// One file of a bundle.
#[derive(Clone, Debug)]
pub struct BundleFile {
    pub name: &'static str,
    pub path: PathBuf,
    pub text: String,
}

impl Bundle {
    pub(crate) fn create(places: &AppDirs, session: &str) -> Result<Self> {
        let all = places.incidents();
        app_dirs::make_private_dir(&all)?;
        make_room(places, &all);
        let path = all.join(session);
        app_dirs::make_private_dir(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(
        &mut self,
        incident: &Incident,
        plan: &Plan,
        report: &RunReport,
        trail: &Trail,
    ) -> Result<()> {
        self.put(EVENTS, trail.lines().as_bytes())?;
        self.put_json(
            INCIDENT,
            &serde_json::json!({
                "session": report.session_id,
                "command": report.command,
                "commandHash": report.command_hash,
                "attempt": incident.attempt,
                "escape": report.escape,
            }),
        )?;
        self.put_json(PROCESSES, &incident.processes)?;
        self.put_json(CALLS, &incident.calls)?;
        self.put_json(
            POLICY,
            &serde_json::json!({
                "walls": report.walls,
                "limits": report.limits,
                "escape": plan.supervision.escape,
            }),
        )?;
        let whole = json(report);
        match whole.len() <= MAX_FILE {
            true => self.put(REPORT, whole.as_bytes()),
            false => self.put_json(REPORT, &shortened(report)),
        }
    }

    fn put_json(&self, name: &str, content: &impl Serialize) -> Result<()> {
        let text = json(content);
        match text.len() <= MAX_FILE {
            true => self.put(name, text.as_bytes()),
            false => self.put(name, format!("{{\"omittedBytes\":{}}}\n", text.len()).as_bytes()),
        }
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let failed = |source: std::io::Error| SessionError::io("write", &path, source);
        let flags =
            OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(std::io::Error::from)
            .and_then(|file| File::from(file).write_all(content))
            .map_err(failed)
    }
}

fn json(content: &impl Serialize) -> String {
    serde_json::to_string_pretty(content).map(|text| text + "\n").unwrap_or_default()
}

/// The report without all but the first of what a command can make long.
fn shortened(report: &RunReport) -> RunReport {
    let mut short = report.clone();
    short.protected_writes.truncate(MAX_LISTED);
    short.refused_executions.truncate(MAX_LISTED);
    short.granted_paths.truncate(MAX_LISTED);
    short.denied_paths.truncate(MAX_LISTED);
    short.sockets_made.truncate(MAX_LISTED);
    short.read_only_directories.truncate(MAX_LISTED);
    short.notes.truncate(MAX_LISTED);
    short.discarded_files = None;
    short.network = None;
    short.notes.push("the lists of this report were cut: it was too long to be kept".to_owned());
    short
}

/// Removes the oldest bundles that nobody needs for a review. Ids sort by time.
fn make_room(places: &AppDirs, all: &Path) {
    // If it is not known which are needed, all are kept.
    let Ok(needed) = quarantine::list(places) else { return };
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let mut excess = (names.len() + 1).saturating_sub(MAX_BUNDLES);
    for name in names {
        if excess == 0 {
            return;
        }
        if needed.iter().all(|entry| entry.session != name) {
            // What cannot be removed takes a place, and is tried again next time.
            excess -= usize::from(fs::remove_dir_all(all.join(&name)).is_ok());
        }
    }
}

/// The files of a kept bundle, in the order in which a person would read them.
pub fn read(places: &AppDirs, session: &str) -> Result<Vec<BundleFile>> {
    let directory = places.incidents().join(session);
    let mut found = Vec::new();
    for name in FILES {
        let path = directory.join(name);
        let failed = |source: std::io::Error| SessionError::io("read", &path, source);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => continue,
            Err(errno) => return Err(failed(errno.into())),
        };
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_FILE * 2).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        found.push(BundleFile { name, path: path.clone(), text });
    }
    Ok(found)
}
