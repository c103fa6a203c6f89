//! `sandbox discard`: removes what a session changed, and leaves the project as it is.

use super::waiting;
use crate::closing::counted;
use crate::commands::sessions::find;
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::WaitingChanges;
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Without a session, the newest one is meant that has changes in this directory's project.

Examples:
  sandbox discard
  sandbox discard work")]
pub(crate) struct Discard {
    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: Option<String>,
}

impl Discard {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = AppDirs::here()?;
        if let Some(named) = self.sid.as_deref() {
            let (directory, session) = find(named)?;
            // The project may be gone, or be another one by now.
            if std::fs::symlink_metadata(&session.project).is_ok_and(|found| !found.is_dir())
                || !session.project.exists()
            {
                let label = session.label().to_owned();
                WaitingChanges::discard_unseen(&places, directory, session)?;
                output::note(&format!("discarded the changes of session {label}"));
                return Ok(ExitCode::SUCCESS);
            }
        }
        let waiting = waiting(self.sid.as_deref())?;
        // Changes that cannot be listed can be discarded all the same.
        let count = waiting.scan().map(|set| set.changes().len());
        let label = waiting.session().label().to_owned();
        waiting.discard(&places)?;
        output::note(&match count {
            Ok(count) => {
                format!("discarded {} of session {label}", counted(count as u64, "change"))
            }
            Err(_) => format!("discarded the changes of session {label}"),
        });
        Ok(ExitCode::SUCCESS)
    }
}
