//! `sandbox checkpoint`: keeps the present state of a session's project.

use crate::commands::changes::waiting;
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::CheckpointReason;
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Prints the number of the checkpoint. The session goes on meanwhile: a file that a command is writing is kept as it is at that
moment. Only sessions with --transaction have states to keep. With `sandbox create --checkpoint-each`, `sandbox exec` keeps
one before each command.

Examples:
  sandbox checkpoint work
  sandbox checkpoint work -m 'tests pass'")]
pub(crate) struct Checkpoint {
    /// What it is, for `sandbox checkpoints`
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,

    /// Print the checkpoint as JSON
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Checkpoint {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let waiting = waiting(Some(&self.sid))?;
        let (places, reason) = (AppDirs::here()?, CheckpointReason::Asked);
        let made = waiting.checkpoint(&places, self.message.as_deref(), reason)?;
        match self.json {
            true => output::print_json(&made)?,
            false => output::print(&format!("{}\n", made.number))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
