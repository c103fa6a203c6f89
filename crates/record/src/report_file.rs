//! Writes a report to a user-chosen path, even if the command can write to that directory.

use crate::error::Result;
use crate::place::OutputFile;
use crate::report::RunReport;
use rustix::fs::Mode;
use std::path::Path;
use std::time::Duration;

/// A report has 10 to 60 KiB.
const USUAL_SIZE: usize = 64 * 1024;
/// A report is written within milliseconds; older files were left by a killed process.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The output file for a report, opened before the command starts.
#[derive(Debug)]
pub struct ReportFile(OutputFile);

impl ReportFile {
    /// Fails now if the report could not be written later, as far as that can be known: writes a file of its size next
    /// to it, and removes it.
    pub fn prepare(path: &Path) -> Result<ReportFile> {
        let place = OutputFile::prepare(path)?;
        place.try_to_write(&[0; USUAL_SIZE])?;
        place.sweep_temporaries(ABANDONED);
        Ok(ReportFile(place))
    }

    /// Replaces the file by the report, mode 0600. A reader sees the old content or the new one.
    pub fn write(&self, report: &RunReport) -> Result<()> {
        self.0.replace(report.to_json()?.as_bytes(), Mode::RUSR | Mode::WUSR)
    }
}

#[cfg(test)]
#[path = "report_file_tests.rs"]
mod tests;
