//! `sandbox audit`: what the log says, whether it is what was written, and a part of it for somebody else.

mod export;
mod since;
mod told;
mod verify;
mod view;

use crate::output;
use clap::{Args, Subcommand};
use palisade_session::{AppDirs, Caller};
use std::io;
use std::path::Path;
use std::process::ExitCode;

const DETAILS: &str = "\
Every run and every session is recorded: what was created and how it ended, each command of a session, what was denied, asked
and allowed. Each record is chained to the one before it, so that a change shows. Operations on files are recorded if
--audit-files or the policy asks for it. A run is named by its id, a part of it, or the name of its session.

Examples:
  sandbox audit work                            the records of session `work`
  sandbox audit work --follow --level warn      what is denied there, as it happens
  sandbox audit --follow                        everything, as it happens
  sandbox audit work --since 10m --json
  sandbox audit work --event session-exec       only the commands that were started
  sandbox audit verify                          is the log what was written
  sandbox audit export work --output work.jsonl
  sandbox audit verify --file work.jsonl        anywhere else";

#[derive(Args, Debug)]
#[command(
    after_help = DETAILS,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    subcommand_precedence_over_arg = true
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    #[command(flatten)]
    view: view::View,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Verify the chain of records, up to the stored head
    Verify(verify::Verify),
    /// Print the records of one run, or of all, one per line, in local time
    Show(view::View),
    /// Write a part of the log to a file that can be verified elsewhere
    Export(export::Export),
}

impl Audit {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = Caller::here()?.places;
        match self.command {
            Some(AuditCommand::Verify(verify)) => verify.execute(&places),
            Some(AuditCommand::Show(view)) => view.execute(&places),
            Some(AuditCommand::Export(export)) => export.execute(&places),
            None => self.view.execute(&places),
        }
    }
}

/// Neither a log nor its head: no run ever was. One of them without the other is a fault.
fn nothing_recorded(places: &AppDirs) -> bool {
    let missing = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    missing(&places.audit_log()) && missing(&places.audit_head())
}

/// The same, or the first run is about to make the log: it makes the head first, and writes to it last.
fn not_begun(places: &AppDirs) -> bool {
    let has_no_head = places.audit_head().metadata().map_or(true, |head| head.len() == 0);
    !places.audit_log().exists() && has_no_head
}

fn tell_that_nothing_is_recorded() -> ExitCode {
    output::note("no run has been recorded yet");
    ExitCode::SUCCESS
}
