//! `sandbox rm`: removes what is left of a session that is over.

use super::{find, stop};
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::{Unapplied, WaitingChanges, record_removal};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox rm work
  sandbox rm --force work       also if it runs, or has changes or checkpoints that wait")]
pub(crate) struct Remove {
    /// Kill it first if it runs, and forget changes that wait and checkpoints
    #[arg(long, short)]
    force: bool,

    /// The sessions, by id, a part of it or name
    #[arg(value_name = "SESSION", required = true)]
    sid: Vec<String>,
}

impl Remove {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        for named in &self.sid {
            if let Err(error) = self.remove(named) {
                output::complain(&error);
                code = ExitCode::from(crate::OWN_FAILURE);
            }
        }
        Ok(code)
    }

    fn remove(&self, named: &str) -> anyhow::Result<()> {
        let (directory, record) = find(named)?;
        if self.force && directory.is_alive() {
            stop::kill(&directory)?;
        }
        if self.force {
            WaitingChanges::recover_of(&directory, &record)?;
            // What cannot be counted can be removed all the same.
            let unapplied = WaitingChanges::unapplied(&directory, &record).unwrap_or_default();
            if !unapplied.is_none() {
                record_removal(&AppDirs::here()?, &record, unapplied.changes as u64)?;
            }
            return Ok(directory.remove()?);
        }
        let Unapplied { changes: count, checkpoints } =
            WaitingChanges::unapplied(&directory, &record)?;
        let label = record.label();
        if count > 0 {
            anyhow::bail!(
                "session {label} has changes that wait ({count}): apply or discard them first (`sandbox diff {label}` \
                 shows them), or use --force"
            );
        }
        if checkpoints > 0 {
            anyhow::bail!(
                "session {label} has checkpoints that differ from the project ({checkpoints}): bring one back to apply it \
                 (`sandbox checkpoints {label}` lists them), discard them (`sandbox discard {label}`), or use --force"
            );
        }
        Ok(directory.remove()?)
    }
}
