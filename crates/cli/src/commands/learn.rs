//! `sandbox learn`: runs a command with everything granted that it reads, secrets excepted, and writes the
//! policy it would have needed. What it wants to write is recorded and refused.

use crate::args::{CommandArgs, PolicyArgs, ReportArgs};
use crate::commands::policy::changes::{self, Line};
use crate::commands::run::perform;
use crate::output;
use anyhow::bail;
use clap::Args;
use palisade_record::{RunReport, escape};
use palisade_session::run::RunRequest;
use palisade_session::{Caller, die_like, learn};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
The command runs as with `sandbox run`, but what it reads or runs outside its view is granted instead of asked about. \
What it wants to write there is recorded and refused (\"Read-only file system\"), so a command that has to write may \
fail: run it again with the policy that was learnt. Secrets are refused. What was granted or wanted is then written as \
rules, grouped into directories. Read them before you use them:

  sandbox learn -- make
  sandbox run --policy FILE -- make

The file is the project's own in ~/.config/palisade/learned, where no command in a sandbox can write. What it has \
already is shown and kept, with its comments, and the new rules are added. A file in the project is added to only if \
it is trusted. The exit code is the command's own.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Learn {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Where to write the policy [default: the project's file in ~/.config/palisade/learned]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    command: CommandArgs,
}

impl Learn {
    pub(crate) fn execute(mut self) -> anyhow::Result<ExitCode> {
        if self.policy.on_ask.is_some() {
            bail!("--on-ask: learn answers every question itself; leave it out");
        }
        self.policy.on_ask = Some("allow".to_owned());
        let caller = Caller::here()?;
        let output = self.output.unwrap_or_else(|| learn::usual_file(&caller));
        let text = learn::present_text(&caller, &output)?;
        let learner = caller.clone();
        let done = perform(caller, &self.policy, self.report, self.command.command)?;
        write(&learner, &done.request, &done.report, &output, &text)?;
        die_like(&done.report);
        Ok(done.exit_code)
    }
}

fn write(
    caller: &Caller,
    request: &RunRequest,
    report: &RunReport,
    path: &Path,
    before: &str,
) -> anyhow::Result<()> {
    let learnt = learn::add(caller, request, report, path, before)?;
    let secrets = report.denied_paths.iter().filter(|denied| denied.is_secret);
    for secret in secrets {
        output::note(&format!("not learnt, a secret: {}", secret.path));
    }
    for name in &report.removed_variables {
        output::note(&format!("not learnt, a variable with a name like a secret's: {name}"));
    }
    if learnt.added.is_empty() {
        output::note("nothing to add: what the command touched is in its view or in the file");
        return Ok(());
    }
    learn::write(path, &learnt.text)?;
    if before.is_empty() {
        learnt.added.iter().for_each(|added| output::note(added));
    } else {
        // All of it: what was there comes to count with what was learnt.
        output::note(&format!("{} as it is now, with what was there before:", path.display()));
        for Line { sign, text } in changes::in_text(before, &learnt.text, None) {
            output::note(&format!("{sign} {text}"));
        }
    }
    let path = path.to_string_lossy();
    let shown = escape::shell_word(&path);
    let (rules, them) = match learnt.added.len() {
        1 => ("1 rule".to_owned(), "it"),
        count => (format!("{count} rules"), "them"),
    };
    output::note(&format!(
        "{rules} written to {shown}; read {them}, then: sandbox run --policy {shown} -- …"
    ));
    let refused = match learnt.writable {
        0 => return Ok(()),
        1 => "a write was refused in this run and is allowed".to_owned(),
        count => format!("writes to {count} paths were refused in this run and are allowed"),
    };
    output::note(&format!(
        "{refused} by the policy that was learnt: run the command again with it"
    ));
    Ok(())
}
