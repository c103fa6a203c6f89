//! `sandbox prune`: removes what is left of all sessions that are over.

use super::Lasting;
use crate::output;
use clap::Args;
use jiff::Timestamp;
use palisade_session::AppDirs;
use palisade_session::run::kept_recordings;
use palisade_session::sessions::{self, SWEPT_BY_COMMANDS, SessionRecord};
use palisade_session::transaction::{Unapplied, WaitingChanges};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
A session is kept if it has changes that wait, or checkpoints that differ from the project, but for those before each command.

Examples:
  sandbox prune
  sandbox prune --older-than 7d")]
pub(crate) struct Prune {
    /// Only those that ended this long ago
    #[arg(long, value_name = "TIME")]
    older_than: Option<Lasting>,

    /// Print the ids as JSON
    #[arg(long)]
    json: bool,
}

impl Prune {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = AppDirs::here()?;
        sessions::sweep(&places, SWEPT_BY_COMMANDS);
        let mut code = ExitCode::SUCCESS;
        let (mut removed, mut waiting) = (Vec::new(), Vec::new());
        for (directory, record) in sessions::list(&places)? {
            if !record.is_over() || !self.is_old_enough(&record) {
                continue;
            }
            // What an interrupted apply holds of the host goes back first.
            let unapplied = WaitingChanges::recover_of(&directory, &record)
                .and_then(|()| WaitingChanges::unapplied(&directory, &record));
            // What cannot be told counts as something that somebody may want.
            if !unapplied.is_ok_and(Unapplied::is_none) {
                waiting.push(record.label().to_owned());
                continue;
            }
            match directory.remove() {
                Ok(()) => removed.push(record.id),
                Err(error) => {
                    output::complain(&error.into());
                    code = ExitCode::from(crate::OWN_FAILURE);
                }
            }
        }
        code = self.remove_recordings(&places, code)?;
        if !waiting.is_empty() && !self.json {
            output::note(&format!(
                "kept, because changes wait: {}; apply or discard them first, checkpoints included",
                waiting.join(", ")
            ));
        }
        match self.json {
            true => {
                output::print_json(&serde_json::json!({ "removed": removed, "waiting": waiting }))?;
            }
            false if removed.is_empty() => output::note("no session is over"),
            false => output::print_lines(removed)?,
        }
        Ok(code)
    }

    /// Those of runs that were no sessions.
    fn remove_recordings(&self, places: &AppDirs, code: ExitCode) -> anyhow::Result<ExitCode> {
        let mut code = code;
        for (path, _) in kept_recordings(places)? {
            let age =
                path.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
            if self.older_than.is_some_and(|Lasting(time)| age.is_none_or(|age| age < time)) {
                continue;
            }
            if let Err(error) = std::fs::remove_file(&path) {
                output::complain(&anyhow::anyhow!("cannot remove {}: {error}", path.display()));
                code = ExitCode::from(crate::OWN_FAILURE);
            }
        }
        Ok(code)
    }

    fn is_old_enough(&self, record: &SessionRecord) -> bool {
        let Some(Lasting(time)) = self.older_than else { return true };
        let age = record.ended_at.map(|ended| Timestamp::now().duration_since(ended));
        age.is_none_or(|age| age.unsigned_abs() >= time && age.is_positive())
    }
}
