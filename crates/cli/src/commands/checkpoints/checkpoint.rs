//! `sandbox checkpoint`: keeps the present state of a session's project.

use super::Listed;
use crate::commands::changes::waiting;
use crate::output;
use anyhow::Context as _;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::transaction::{self, CheckpointReason, WaitingChanges};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Prints the number of the checkpoint. The session goes on meanwhile: a file that a command is writing is kept as it is at that
moment. Only sessions with --transaction have states to keep. With `sandbox create --checkpoint-each`, one is kept before each
command.

It is written to disk in the background, and `sandbox checkpoints` says if it is not there yet. In a session that is over, this
command waits for the disk.

Examples:
  sandbox checkpoint work
  sandbox checkpoint work -m 'tests pass'
  sandbox checkpoint work --sync             return when a loss of power cannot take it back")]
pub(crate) struct Checkpoint {
    /// What it is, for `sandbox checkpoints`
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,

    /// Keep only the last four of this kind
    ///
    /// For who asks a person about a state, and then applies it with `sandbox apply --checkpoint`.
    #[arg(long)]
    for_review: bool,

    /// Wait until it is on disk
    #[arg(long)]
    sync: bool,

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
        let places = AppDirs::here()?;
        let reason = match self.for_review {
            true => CheckpointReason::ForReview,
            false => CheckpointReason::Asked,
        };
        let made = waiting.checkpoint(&places, self.message.as_deref(), reason)?;
        // Whatever comes of that, it has been made.
        let written = match self.sync {
            true => waiting.write_checkpoints(),
            false => waiting.write_checkpoints_soon(),
        };
        match self.json {
            true => output::print_json(&Listed::new(&as_it_is(&waiting, made)?))?,
            false => output::print(&format!("{}\n", made.number))?,
        }
        written.context("the checkpoint was made, but is not on disk yet")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// It may be on disk by now.
fn as_it_is(
    waiting: &WaitingChanges,
    made: transaction::Checkpoint,
) -> anyhow::Result<transaction::Checkpoint> {
    let mut all = waiting.checkpoints()?.into_iter();
    Ok(all.find(|known| known.number == made.number).unwrap_or(made))
}
