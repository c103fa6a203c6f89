//! Writes a report where the user asked for it, though the command may have been able to write there.

use crate::error::RecordError;
use crate::place::Place;
use crate::report::RunReport;
use rustix::fs::Mode;
use std::path::Path;

/// A place for a report, fixed before the command starts.
#[derive(Debug)]
pub struct ReportFile(Place);

impl ReportFile {
    /// Fails now if the report could not be written there later.
    pub fn prepare(path: &Path) -> Result<ReportFile, RecordError> {
        Place::prepare(path).map(ReportFile)
    }

    /// Replaces the file by the report, mode 0600. Whoever reads it sees the old one or the new one.
    pub fn write(&self, report: &RunReport) -> Result<(), RecordError> {
        self.0.replace(report.to_json()?.as_bytes(), Mode::RUSR | Mode::WUSR)
    }
}

#[cfg(test)]
#[path = "report_file_tests.rs"]
mod tests;
