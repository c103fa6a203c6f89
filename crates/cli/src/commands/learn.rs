//! `sandbox learn`: runs a command with everything granted that it touches, secrets excepted, and writes the
//! policy it would have needed.

use crate::args::{CommandArgs, PolicyArgs, ReportArgs};
use crate::commands::run::perform;
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_policy::add_rules;
use palisade_record::RunReport;
use palisade_session::Caller;
use palisade_session::run::RunRequest;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
The command runs as with `sandbox run`, but what it touches outside its view is granted, read-only, instead of \
asked about; secrets are still refused. What was granted is then written as rules, grouped into directories. \
Read them before you use them:

  sandbox learn -- make               writes palisade-learned.yaml
  sandbox run --policy palisade-learned.yaml -- make

Rules that the file has already are kept, with its comments, and the new ones are added. The exit code is the \
command's own.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Learn {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Where to write the policy; rules are added to one that is there
    #[arg(long, value_name = "FILE", default_value = "palisade-learned.yaml")]
    output: PathBuf,

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
        let text = present_text(&self.output)?;
        let caller = Caller::here()?;
        let learner = caller.clone();
        let done = perform(caller, &self.policy, self.report, self.command.command)?;
        write(&learner, &done.request, &done.report, &self.output, &text)?;
        Ok(done.exit_code)
    }
}

fn present_text(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("can not read {}", path.display())),
    }
}

fn write(
    caller: &Caller,
    request: &RunRequest,
    report: &RunReport,
    path: &Path,
    before: &str,
) -> anyhow::Result<()> {
    let rules = palisade_session::learn::rules(caller, request, report)?;
    let secrets = report.denied_paths.iter().filter(|denied| denied.is_secret);
    for secret in secrets {
        output::note(&format!("not learnt, a secret: {}", secret.path));
    }
    let saved = add_rules(before, &path.to_string_lossy(), &rules)?;
    if saved.added.is_empty() {
        output::note("nothing to add: what the command touched is in its view or in the file");
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644);
    let written = options
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .and_then(|mut file| file.write_all(saved.text.as_bytes()));
    written.with_context(|| format!("can not write {}", path.display()))?;
    for rule in &saved.added {
        output::note(&rule.to_string());
    }
    let shown = path.display();
    let (rules, them) = match saved.added.len() {
        1 => ("1 rule".to_owned(), "it"),
        count => (format!("{count} rules"), "them"),
    };
    output::note(&format!(
        "{rules} written to {shown}; read {them}, then: sandbox run --policy {shown} -- …"
    ));
    Ok(())
}
