//! `sandbox rollback`: brings a kept state of a session's project back.

use crate::commands::changes::waiting_as_they_are;
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::changes::write_name_status;
use palisade_session::transaction::{RunningCommands, StateNumber};
use serde_json::json;
use std::process::ExitCode;

const DETAILS: &str = "\
The present state is kept first, as a checkpoint of its own: a rollback can be taken back by another one. No checkpoint is
removed. 0 is the project without changes. The files of the project itself stay as they are, as always in a transaction.

A session that runs goes on: files change under it, as `git checkout` changes them. So nothing is done while commands run,
unless --kill ends them. What commands left in the background goes on, and can write again.

Examples:
  sandbox rollback work 2
  sandbox rollback --dry-run work 2       what would change
  sandbox rollback work 0                 as if nothing had been changed";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Rollback {
    /// Change nothing; show what would change, as `sandbox diff --name-status`
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Kill the commands that run
    #[arg(long, conflicts_with = "dry_run")]
    kill: bool,

    /// Print what was done, or would change, as JSON
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,

    /// The number of the checkpoint
    #[arg(value_name = "NUMBER")]
    number: u32,
}

impl Rollback {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        // One that was interrupted is replaced by this one.
        let waiting = waiting_as_they_are(&self.sid)?;
        let number = self.number;
        if self.dry_run {
            let (_, set) = waiting.between(StateNumber::Now, StateNumber::Checkpoint(number))?;
            if self.json {
                output::print_json(&set)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut text = Vec::new();
            write_name_status(&set, &mut text)?;
            output::print(&String::from_utf8_lossy(&text))?;
            return Ok(ExitCode::SUCCESS);
        }
        let running = if self.kill { RunningCommands::Kill } else { RunningCommands::Refuse };
        let done = waiting.roll_back(&AppDirs::here()?, number, running)?;
        match self.json {
            true => output::print_json(&json!({ "checkpoint": number, "keptAs": done.kept_as }))?,
            false => output::note(&format!(
                "rolled back to checkpoint {number}; the state before is checkpoint {}",
                done.kept_as
            )),
        }
        Ok(ExitCode::SUCCESS)
    }
}
