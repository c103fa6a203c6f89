//! `sandbox create --hold`: a session that ends with whoever holds our standard input open, even if that process is killed.

use super::{find, stop};
use crate::output;
use palisade_session::foreground;
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::interface::Grace;
use palisade_session::transaction::WaitingChanges;
use rustix::process::Signal;
use std::io;
use std::time::Duration;

/// What commands may take to end when nobody waits for them any more.
const GRACE: Duration = Duration::from_secs(2);
/// What the supervisor may take beyond that, to write its records.
const LAST_STEPS: Duration = Duration::from_secs(10);

/// Returns when the session has ended. What it changed in a transaction is kept.
pub(crate) fn until_input_ends(session: &str) -> anyhow::Result<()> {
    // An error is an end, too: nobody can say anything any more.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let (directory, record) = find(session)?;
    end(&directory)?;
    let (directory, _) = find(session)?;
    let label = record.label();
    let unapplied = WaitingChanges::unapplied(&directory, &record)?;
    if unapplied.is_none() {
        return Ok(directory.remove()?);
    }
    output::note(&format!(
        "changes wait in session {label}: `sandbox diff {label}` shows them, `sandbox apply {label}` applies them, \
         `sandbox discard {label}` removes them"
    ));
    Ok(())
}

pub(crate) fn end(directory: &SessionDirectory) -> anyhow::Result<()> {
    if !directory.is_alive() {
        return Ok(());
    }
    let grace = Grace::Milliseconds(u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX));
    let ended = foreground::end(directory, Signal::TERM.as_raw(), grace, GRACE + LAST_STEPS);
    match ended {
        Ok(true) => Ok(()),
        // It may have ended by itself meanwhile.
        _ if !directory.is_alive() => Ok(()),
        _ => stop::kill(directory),
    }
}
