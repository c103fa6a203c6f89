//! `sandbox rm`: removes what is left of a session that is over.

use super::{find, stop};
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::{WaitingChanges, record_removal};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox rm work
  sandbox rm --force work       also if it runs, or has changes that wait")]
pub(crate) struct Remove {
    /// Kill it first if it runs, and forget changes that wait
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
            let count = WaitingChanges::count(&directory, &record).unwrap_or_default() as u64;
            if count > 0 {
                record_removal(&AppDirs::here()?, &record, count)?;
            }
            return Ok(directory.remove()?);
        }
        let count = WaitingChanges::count(&directory, &record)?;
        if count > 0 {
            let label = record.label();
            anyhow::bail!(
                "session {label} has changes that wait ({count}): apply or discard them first (`sandbox diff {label}` \
                 shows them), or use --force"
            );
        }
        Ok(directory.remove()?)
    }
}
