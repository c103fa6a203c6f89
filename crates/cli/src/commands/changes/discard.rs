//! `sandbox discard`: removes what a session changed, and leaves the project as it is.

use super::waiting;
use crate::output;
use clap::Args;
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
        let waiting = waiting(self.sid.as_deref())?;
        let count = waiting.scan()?.changes().len();
        let label = waiting.session().label().to_owned();
        waiting.discard()?;
        let changes = if count == 1 { "change" } else { "changes" };
        output::note(&format!("discarded {count} {changes} of session {label}"));
        Ok(ExitCode::SUCCESS)
    }
}
