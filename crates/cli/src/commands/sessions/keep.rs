//! `sandbox run --keep`: a session whose first command runs here, and which stays when that has ended.

use super::create::{SessionArgs, SessionReport, make};
use super::exec::{Meeting, in_foreground, start_command};
use super::find_for_command;
use crate::args::{PolicyArgs, ReportArgs};
use crate::output;
use palisade_session::background::{self, Creation};
use palisade_session::foreground::{DetachKeys, connect};
use palisade_session::{AskIn, Caller, quarantine};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

pub(crate) fn run(
    policy: &PolicyArgs,
    report: ReportArgs,
    command: Vec<OsString>,
) -> anyhow::Result<ExitCode> {
    background::close_inherited()?;
    let caller = Caller::here()?;
    // Before there is a session that nothing would run in.
    let tool = crate::request::policy_request(&caller, policy)?.tool;
    quarantine::check(&caller.places, tool.as_deref(), &command)?;
    let ReportArgs { report, metrics_file, quiet, ask_in, .. } = report;
    let ask_in = ask_in.map(AskIn::from).unwrap_or_default();
    let told = SessionReport { report, metrics_file, quiet, ask_in };
    let session = match make(caller, (policy, &[]), (SessionArgs::default(), None), &told, None)? {
        Creation::Created { session } => session,
        Creation::Failed { exit_code, message, .. } => {
            output::complain(&anyhow::anyhow!("{message}"));
            return Ok(ExitCode::from(exit_code));
        }
    };
    if !quiet {
        output::note(&format!(
            "session {session}; it stays: `sandbox exec {session} -- COMMAND`, `sandbox stop {session}`"
        ));
    }
    let (directory, summary) = find_for_command(&session)?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let meeting = match is_terminal {
        true => Meeting::Terminal(DetachKeys::default()),
        false => Meeting::Streams { reads_input: true },
    };
    let start = start_command(command, Vec::new(), None);
    in_foreground(connect(&directory)?, &summary, start, (meeting, None)).map(ExitCode::from)
}
