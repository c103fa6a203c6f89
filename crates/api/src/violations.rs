//! What a sandbox denied, read from the audit log as it grows. The log is only read.

use palisade_record::{Records, read_on};
use palisade_session::AppDirs;
use palisade_session::tools::Violation;

/// Different ones that are told at once: a command can be denied as often as it likes.
const MAX_TOLD: usize = 1000;

/// The log, from the moment on at which this was opened.
#[derive(Debug)]
pub(crate) struct AuditTrail(Option<Records>);

impl AuditTrail {
    pub(crate) fn open(places: &AppDirs, sandbox: &str) -> Self {
        Self(read_on(&places.audit_log(), Some(sandbox)).ok())
    }

    /// Those since the last time, each once. None: the log cannot be read.
    pub(crate) fn violations(&mut self) -> Option<Vec<Violation>> {
        let records = self.0.as_mut()?;
        let mut found: Vec<Violation> = Vec::new();
        for record in records {
            let violation = Violation::of_event(&record.ok()?.event.kind);
            if let Some(violation) = violation.filter(|new| !found.contains(new))
                && found.len() < MAX_TOLD
            {
                found.push(violation);
            }
        }
        Some(found)
    }
}
