//! The changes of transactions: a file a command. What they share is which session is meant.

pub(crate) mod apply;
pub(crate) mod diff;
pub(crate) mod discard;
mod patch;
mod state_range;

use crate::output;
use palisade_session::sessions::{self, SessionDirectory, SessionRecord};
use palisade_session::transaction::WaitingChanges;
use palisade_session::{AppDirs, SessionError};
use std::path::Path;

/// The changes of this session, as they are: a rollback may have been interrupted.
pub(crate) fn waiting_as_they_are(named: &str) -> anyhow::Result<WaitingChanges> {
    let (directory, session) = sessions::find(&AppDirs::here()?, named.trim())?;
    let id = session.id.clone();
    let waiting = WaitingChanges::open(directory, session)?;
    Ok(waiting.ok_or(SessionError::NoTransaction { session: id })?)
}

/// The changes of the session that is named, or else of the newest one that has some in this directory's project.
pub(crate) fn waiting(named: Option<&str>) -> anyhow::Result<WaitingChanges> {
    if let Some(named) = named {
        let waiting = waiting_as_they_are(named)?;
        finish_rollback(&waiting)?;
        return Ok(waiting);
    }
    let places = AppDirs::here()?;
    let here = std::env::current_dir()?;
    let mut sessions = sessions::list(&places)?;
    while let Some((directory, session)) = sessions.pop() {
        let label = session.label().to_owned();
        match of_project(directory, session, &here) {
            Ok(Some(waiting)) => {
                finish_rollback(&waiting)?;
                return Ok(waiting);
            }
            Ok(None) => {}
            Err(error) => output::note(&format!("session {label} is left out: {error}")),
        }
    }
    anyhow::bail!(
        "no changes wait for this project; name a session of another one (`sandbox ps --all` lists them)"
    )
}

/// What was interrupted comes to its end before anybody looks.
fn finish_rollback(waiting: &WaitingChanges) -> Result<(), SessionError> {
    if let Some(number) = waiting.finish_rollback()? {
        output::note(&format!("an interrupted rollback to checkpoint {number} was finished"));
    }
    Ok(())
}

fn of_project(
    directory: SessionDirectory,
    session: SessionRecord,
    here: &Path,
) -> Result<Option<WaitingChanges>, SessionError> {
    if !here.starts_with(&session.project) {
        return Ok(None);
    }
    let Some(waiting) = WaitingChanges::open(directory, session)? else { return Ok(None) };
    // Whose last step was interrupted has nothing left to show, but something to finish.
    let is_wanted = waiting.is_apply_interrupted() || !waiting.scan()?.is_empty();
    Ok(is_wanted.then_some(waiting))
}
