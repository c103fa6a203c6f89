//! What was granted and denied in a run, for its report: counted in full, listed in part.

use palisade_record::{RunReport, TouchedPath};

/// So many different paths are told apart, of each kind.
const MOST_PATHS: usize = 500;
/// The details of so many decisions are logged.
const MOST_LOGGED: u64 = 1000;

#[derive(Debug, Default)]
pub(super) struct Tally {
    granted: Vec<TouchedPath>,
    denied: Vec<TouchedPath>,
    beyond: u64,
    notes: Vec<String>,
    logged: u64,
}

impl Tally {
    /// Whether one more decision that nobody took in person is logged: their details, too, can be a flood.
    pub(super) fn may_log(&mut self) -> bool {
        self.logged += 1;
        self.logged <= MOST_LOGGED
    }

    pub(super) fn count(&mut self, is_granted: bool, touched: TouchedPath) {
        let list = if is_granted { &mut self.granted } else { &mut self.denied };
        let is_full = list.len() >= MOST_PATHS;
        let mut known = list.iter_mut();
        match known.find(|known| known.path == touched.path && known.access == touched.access) {
            Some(known) => {
                known.count += touched.count;
                known.by = touched.by;
                known.executable = touched.executable;
            }
            None if is_full => self.beyond += 1,
            None => list.push(touched),
        }
    }

    /// Said once, however often it is true.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) && self.notes.len() < MOST_PATHS {
            self.notes.push(note);
        }
    }

    pub(super) fn report(self, report: &mut RunReport) {
        report.granted_paths = self.granted;
        report.denied_paths = self.denied;
        report.notes.extend(self.notes);
        if self.beyond > 0 {
            let beyond = self.beyond;
            report.notes.push(format!("{beyond} more touches of paths outside the view"));
        }
    }
}
