//! What is done with the changes of a session, in the audit log (AUD-2). Where the log cannot be opened, nothing is done.

use super::waiting::{ApplyOptions, SessionProcesses, WaitingChanges};
use crate::app_dirs::AppDirs;
use crate::error::Result;
use crate::journal::Journal;
use crate::reporting::word;
use crate::sessions::{SessionDirectory, SessionRecord};
use palisade_changes::{Change, ChangeSet, Outcome};
use palisade_record::{
    ChangesApplied, ChangesDiscarded, ChangesHeld, Decision, EventKind, EventsSummed, FileOperation,
};

/// Of one transaction.
const MAX_CHANGES: usize = 2000;

impl WaitingChanges {
    /// Applies changes to the project, or says what stands in the way.
    pub fn apply(
        &self,
        places: &AppDirs,
        options: &ApplyOptions<'_>,
        processes: SessionProcesses,
    ) -> Result<Outcome> {
        let mut journal = journal_of(places, self.session())?;
        let outcome = self.apply_unrecorded(options, processes)?;
        let count = |number: usize| number as u64;
        journal.record(vec![match &outcome {
            Outcome::Applied(applied) => EventKind::ChangesApplied(ChangesApplied {
                paths: count(applied.paths.len()),
                refused: count(applied.refused.len()),
                kept: count(applied.kept.len()),
            }),
            Outcome::Held(held) => EventKind::ChangesHeld(ChangesHeld {
                refused: count(held.refused.len()),
                conflicts: count(held.conflicts.len()),
            }),
        }])?;
        Ok(outcome)
    }

    /// Removes the changes, and what is left of the run if the session is there for nothing else. What still runs goes on
    /// with what it has open, so it must have ended.
    pub fn discard(self, places: &AppDirs) -> Result<()> {
        let mut journal = journal_of(places, self.session())?;
        // Changes that cannot be listed can be discarded all the same.
        let paths = self.scan().map(|set| set.changes().len() as u64).ok();
        self.remove()?;
        Ok(journal.record(vec![EventKind::ChangesDiscarded(ChangesDiscarded { paths })])?)
    }

    /// The same at the end of a session whose time to live was over, by its own supervisor. Says how many there were, if they
    /// could be counted.
    pub(super) fn discard_expired(
        self,
        places: &AppDirs,
        records_operations: bool,
    ) -> Result<Option<usize>> {
        let mut journal = journal_of(places, self.session())?;
        let set = self.scan().ok();
        if let Some(set) = set.as_ref().filter(|_| records_operations) {
            record_changes(places, self.session(), set)?;
        }
        let count = set.map(|set| set.changes().len());
        if self.record().is_of_one_run {
            self.remove()?;
        } else {
            // Somebody may be about to apply them.
            let _lock = self.lock()?;
            self.remove_as_supervisor()?;
        }
        let paths = count.map(|count| count as u64);
        journal.record(vec![EventKind::ChangesDiscarded(ChangesDiscarded { paths })])?;
        Ok(count)
    }

    /// The same without looking at them, where their project is gone.
    pub fn discard_unseen(
        places: &AppDirs,
        directory: SessionDirectory,
        session: SessionRecord,
    ) -> Result<()> {
        let mut journal = journal_of(places, &session)?;
        Self::remove_unseen(directory, session)?;
        Ok(journal.record(vec![EventKind::ChangesDiscarded(ChangesDiscarded { paths: None })])?)
    }
}

/// Before the session with its changes is removed.
pub fn record_removal(places: &AppDirs, session: &SessionRecord, paths: u64) -> Result<()> {
    let discarded = ChangesDiscarded { paths: Some(paths) };
    Ok(journal_of(places, session)?.record(vec![EventKind::ChangesDiscarded(discarded)])?)
}

/// What a transaction changed, one by one; of very many the number of the rest.
pub(super) fn record_changes(
    places: &AppDirs,
    session: &SessionRecord,
    set: &ChangeSet,
) -> Result<()> {
    let changes = set.changes();
    let operation = |change: &Change| {
        EventKind::FileOperation(Box::new(FileOperation {
            op: word(&change.kind),
            path: session.project.join(&change.path).to_string_lossy().into_owned(),
            pid: None,
            executable: None,
        }))
    };
    let mut events: Vec<EventKind> = changes.iter().take(MAX_CHANGES).map(operation).collect();
    if let Some(more) = changes.len().checked_sub(MAX_CHANGES).filter(|more| *more > 0) {
        events.push(EventKind::EventsSummed(Box::new(EventsSummed {
            what: "file-operation".to_owned(),
            decision: Decision::Allowed,
            source: None,
            count: more as u64,
            questions: 0,
            last_path: None,
            duration_ms: 0,
        })));
    }
    Ok(journal_of(places, session)?.record(events)?)
}

fn journal_of(places: &AppDirs, session: &SessionRecord) -> Result<Journal> {
    Ok(Journal::open(places, &session.id)?.in_state(session.state))
}
