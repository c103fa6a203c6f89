//! `sandbox learn`: runs a command, allows everything that it reads except secrets, and writes the policy it needs.
//! Writes are recorded and denied.

use crate::args::{CommandArgs, HelpArgs, HelpEnd, PolicyArgs, ReportArgs, help_end};
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

const HELP_END: HelpEnd = help_end!(
    "\
Everything that the command reads or runs is allowed, except secrets. Writes to paths that are not granted are denied \
(\"Read-only file system\") and recorded. When the command ends, the rules it needs are written to a policy file. Read \
the rules before you use them:

  sandbox learn -- make
  sandbox run --policy FILE -- make",
    "

A command that needs to write may fail: run it again with the learned policy. Rules are grouped into directories. The \
default file belongs to the project and is in ~/.config/palisade/learned, where no command in a sandbox can write. \
Existing rules and comments in it are kept and shown; new rules are added. A file in the project is changed only if you \
trust it. The exit code is the command's own."
);

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
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

    #[command(flatten)]
    help: HelpArgs,
}

impl Learn {
    pub(crate) fn execute(mut self) -> anyhow::Result<ExitCode> {
        if self.policy.on_ask.is_some() {
            bail!("--on-ask: learn answers every question itself; remove this option");
        }
        self.policy.on_ask = Some("allow".to_owned());
        let caller = Caller::here()?;
        let output = self.output.unwrap_or_else(|| learn::usual_file(&caller));
        let text = learn::present_text(&caller, &output)?;
        let learner = caller.clone();
        let done = perform(caller, &self.policy, self.report, self.command.command.into())?;
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
        output::note(&format!("not learned, a secret: {}", secret.path));
    }
    for name in &report.removed_variables {
        output::note(&format!("not learned, the variable {name}: its name looks like a secret's"));
    }
    if learnt.added.is_empty() {
        output::note("nothing to add: the command used only what it can already use");
        return Ok(());
    }
    learn::write(path, &learnt.text)?;
    if before.is_empty() {
        learnt.added.iter().for_each(|added| output::note(added));
    } else {
        // The whole file: the rules that it had before take effect too.
        output::note(&format!("{} now, including what was in it before:", path.display()));
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
        1 => "1 write was denied in this run and is allowed".to_owned(),
        count => format!("writes to {count} paths were denied in this run and are allowed"),
    };
    output::note(&format!("{refused} by the learned policy: run the command again with it"));
    Ok(())
}
