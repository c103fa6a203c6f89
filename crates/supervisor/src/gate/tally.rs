//! What was granted and denied in a run, for its report: counted in full, listed in part.

use palisade_record::{RunReport, TouchedPath};

/// So many different paths are told apart, of each kind.
const MAX_PATHS: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Tally {
    granted: Vec<TouchedPath>,
    denied: Vec<TouchedPath>,
    /// Touches of paths beyond those in the lists.
    granted_beyond: u64,
    denied_beyond: u64,
    notes: Vec<String>,
}

impl Tally {
    pub(super) fn count(&mut self, is_granted: bool, touched: TouchedPath) {
        let (list, beyond) = match is_granted {
            true => (&mut self.granted, &mut self.granted_beyond),
            false => (&mut self.denied, &mut self.denied_beyond),
        };
        let is_full = list.len() >= MAX_PATHS;
        let mut known = list.iter_mut();
        match known.find(|known| known.path == touched.path && known.access == touched.access) {
            Some(known) => {
                known.count += touched.count;
                known.by = touched.by;
                known.executable = touched.executable;
            }
            None if is_full => *beyond += touched.count,
            None => list.push(touched),
        }
    }

    /// Said once, however often it is true.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) && self.notes.len() < MAX_PATHS {
            self.notes.push(note);
        }
    }

    pub(super) fn report(self, report: &mut RunReport) {
        report.granted_paths = self.granted;
        report.denied_paths = self.denied;
        report.notes.extend(self.notes);
        for (beyond, decision) in [(self.granted_beyond, "granted"), (self.denied_beyond, "denied")]
        {
            if beyond > 0 {
                report
                    .notes
                    .push(format!("{beyond} more accesses outside the view were {decision}"));
            }
        }
    }
}
