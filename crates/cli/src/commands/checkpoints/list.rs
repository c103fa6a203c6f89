//! `sandbox checkpoints`: the states of a session's project that were kept.

use super::Listed;
use crate::commands::changes::waiting;
use crate::commands::sessions::shown;
use crate::output;
use clap::Args;
use jiff::Timestamp;
use palisade_record::escape;
use palisade_session::transaction::{Checkpoint, CheckpointReason};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
CHANGES are files, directories and deletions that differ from the project. The project without changes is checkpoint 0.
One that is not on disk yet lasts until the machine starts anew. One made by hand is written there in the background, one
before a command is not.

Examples:
  sandbox checkpoints work
  sandbox diff work 2..5            what changed between two of them
  sandbox rollback work 2           bring one back")]
pub(crate) struct Checkpoints {
    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Checkpoints {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let waiting = waiting(Some(&self.sid))?;
        let found = waiting.checkpoints()?;
        if self.json {
            let listed: Vec<Listed<'_>> = found.iter().map(Listed::new).collect();
            output::print_json(&serde_json::json!({ "checkpoints": listed }))?;
        } else {
            output::print(&table(&found))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(found: &[Checkpoint]) -> String {
    let headings = ["NUMBER", "AGE", "CHANGES", "SIZE", "MADE"].map(str::to_owned);
    let lines: Vec<[String; 5]> =
        std::iter::once(headings).chain(found.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(&format!("{cell:>width$}  "));
        }
        text.push_str(&line[4]);
        if let Some(message) = number.checked_sub(1).and_then(|at| found[at].message.as_ref()) {
            text.push_str(": ");
            text.push_str(&escape::text(message));
        }
        text.push('\n');
    }
    text
}

fn cells(checkpoint: &Checkpoint) -> [String; 5] {
    let age = Timestamp::now().duration_since(checkpoint.created_at).as_millis();
    let made = match checkpoint.reason {
        CheckpointReason::Asked => "by hand",
        CheckpointReason::BeforeCommand => "before a command",
        CheckpointReason::BeforeRollback => "automatically",
        CheckpointReason::ForReview => "for a question",
    };
    [
        checkpoint.number.to_string(),
        shown(u64::try_from(age).unwrap_or_default()),
        checkpoint.entries.to_string(),
        crate::commands::top::size(checkpoint.bytes),
        format!("{made}{}", if checkpoint.is_on_disk() { "" } else { ", not on disk" }),
    ]
}
