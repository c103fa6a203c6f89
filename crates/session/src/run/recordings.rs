//! The recording of a run that is no session: where it goes, and how long it is kept.

use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use crate::foreground::window_size;
use palisade_plan::model::Plan;
use palisade_record::RunReport;
use palisade_record::cast::{CastHeader, CastWriter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Of all runs. The oldest are removed when another one begins.
const MAX_KEPT: usize = 32;
const ENDING: &str = ".cast";

/// Begins what the plan asks for. One that cannot begin keeps the run from starting.
pub(super) fn begin(
    places: &AppDirs,
    record_to: Option<&Path>,
    plan: &Plan,
    report: &mut RunReport,
    tell: &mut dyn FnMut(&str),
) -> Result<Option<CastWriter>> {
    let Some(planned) = plan.supervision.recording else { return Ok(None) };
    let path = match record_to {
        Some(path) => path.to_owned(),
        None => {
            let all = places.recordings();
            app_dirs::make_private_dir(&all)?;
            for (oldest, _) in kept(places)?.iter().rev().skip(MAX_KEPT - 1) {
                // Somebody may have removed it.
                let _ = fs::remove_file(oldest);
            }
            all.join(format!("{}{ENDING}", report.session_id))
        }
    };
    let size = window_size().map(|size| (size.columns, size.rows));
    let header = CastHeader::new(size, &report.command.join(" "));
    let writer = CastWriter::create(&path, &header, planned.max_bytes)?;
    let note = match record_to {
        Some(_) => format!("recording to {}", path.display()),
        None => format!("recording; `sandbox replay {}` shows it", report.session_id),
    };
    tell(&note);
    report.notes.push(note);
    Ok(Some(writer))
}

/// The recordings of runs with their ids, oldest first: ids sort by time.
pub fn kept(places: &AppDirs) -> Result<Vec<(PathBuf, String)>> {
    let all = places.recordings();
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("read", &all, error)),
    };
    let id = |path: &Path| Some(path.file_name()?.to_str()?.strip_suffix(ENDING)?.to_owned());
    let paths = entries.flatten().map(|entry| entry.path());
    let mut kept: Vec<_> = paths.filter_map(|path| id(&path).map(|id| (path, id))).collect();
    kept.sort_by(|(_, one), (_, other)| one.cmp(other));
    Ok(kept)
}
