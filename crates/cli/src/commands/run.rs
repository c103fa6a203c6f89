//! `sandbox run`: the command in, its exit code out.
//!
//! Standard output belongs to the command alone; whatever we say goes to standard error.

use crate::args::{CommandArgs, PolicyArgs};
use crate::output;
use crate::request;
use clap::Args;
use palisade_record::{Outcome, ReportFile, RunReport};
use palisade_session::Caller;
use palisade_session::run::{RunRequest, run};
use std::path::PathBuf;
use std::process::ExitCode;

const OUTPUT: &str = "Report";

const EXAMPLES: &str = "\
Examples:
  sandbox run -- bash                       a shell; the project is writable, ~/.ssh is not there
  sandbox run --ro ~/data -- ./analyse      one more directory, readable
  sandbox run --overlay ~/.config -- app    may write its settings, which are thrown away
  sandbox run --level 1 -- gdb ./program    fewer namespaces
  sandbox run --report r.json -- make       how it went and what held each promise";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Write the run report to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    report: Option<PathBuf>,

    /// Print the run report to standard error at the end, as one line of JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// Say nothing but errors
    #[arg(long, short, help_heading = OUTPUT)]
    quiet: bool,

    #[command(flatten)]
    pub(crate) command: CommandArgs,
}

impl Run {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        #[cfg(feature = "layers-off")]
        warn_of_test_build();
        let policy = request::policy_request(&caller, &self.policy)?;
        let report_file = self.report.as_deref().map(ReportFile::prepare).transpose()?;
        let request = RunRequest { command: self.command.command, policy };
        let mut tell = |note: &str| {
            if !self.quiet {
                output::note(note);
            }
        };
        let finished = run(caller, &request, &mut tell);
        let mut exit_code = u8::try_from(finished.report.exit_code).unwrap_or(crate::OWN_FAILURE);
        match finished.error {
            Some(error) => output::complain(&error.into()),
            None if finished.report.outcome == Outcome::Timeout => {
                tell("the time limit is over; everything inside was ended");
            }
            None => {}
        }
        if let Some(file) = report_file
            && let Err(error) = file.write(&finished.report)
        {
            output::complain(&error.into());
            exit_code = crate::OWN_FAILURE;
        }
        if self.json {
            eprintln!("{}", one_line(&finished.report)?);
        }
        Ok(ExitCode::from(exit_code))
    }
}

/// Not muted by `--quiet`: this build must not be taken for a sandbox.
#[cfg(feature = "layers-off")]
fn warn_of_test_build() {
    let layers = std::env::var(palisade_session::layers_off::VARIABLE).unwrap_or_default();
    let layers = if layers.is_empty() { "none" } else { &layers };
    output::note(&format!("TEST BUILD, layers off: {layers}"));
}

/// No string in JSON holds a raw line break, so indentation is all that goes.
fn one_line(report: &RunReport) -> anyhow::Result<String> {
    Ok(report.to_json()?.lines().map(str::trim_start).collect())
}
