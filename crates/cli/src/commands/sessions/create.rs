//! `sandbox create`: a sandbox that stays, with a supervisor of its own in the background.

use super::hold;
use crate::agent::{self, Purpose};
use crate::args::{AskInWord, HelpArgs, HelpEnd, PolicyArgs, help_end};
use crate::output;
use crate::request;
use crate::starting;
use anyhow::bail;
use clap::{Args, ValueEnum};
use palisade_record::metrics::MetricsFile;
use palisade_session::background::{self, Creation, NewSession};
use palisade_session::foreground::window_size;
use palisade_session::inputs::Inputs;
use palisade_session::run::{Finished, RunRequest};
use palisade_session::sessions::{FirstCommand, SessionOwner};
use palisade_session::supervise::interface::{Setting, TerminalSize};
use palisade_session::{AskIn, Caller};
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What reports and logs call a session without a command.
pub(crate) const NAME: &str = "sandbox-session";
const STAY: &str = "Session";
/// Where nothing says how large a terminal is.
pub(super) const USUAL_SIZE: TerminalSize =
    TerminalSize { rows: 24, columns: 80, pixel_width: 0, pixel_height: 0 };

const HELP_END: HelpEnd = help_end!(
    "\
Examples:
  sandbox create --name work                     prints the id; the sandbox stays
  sandbox exec work -- make test                 run commands in it
  sandbox create --ttl 8h --idle-ttl 30m         ends by itself
  sandbox create --name dev -t -- npm run dev    ends with its command; `sandbox attach dev` shows it
  sandbox stop work",
    "

All options of `sandbox run` that decide what a command may do apply to every command of the session.
Options and policies are read once: a session keeps what it was created with. Without a command the session
stays until `sandbox stop`, or until its time to live is over. Questions wait for `sandbox approve`."
);

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
pub(crate) struct Create {
    #[command(flatten)]
    session: SessionArgs,

    /// Give the command a terminal, to attach to
    #[arg(long, short, requires = "command", help_heading = STAY)]
    tty: bool,

    /// Print the id and the name as JSON
    #[arg(long, help_heading = STAY)]
    json: bool,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Write a JSON report to this file when the session has ended
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = STAY)]
    report: Option<PathBuf>,

    /// Add the session to the counters in this file when it has ended, in Prometheus text format
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = STAY)]
    metrics_file: Option<PathBuf>,

    /// Print errors only
    #[arg(long, short, hide_short_help = true, help_heading = STAY)]
    quiet: bool,

    /// Set a key of the policy; the value is JSON, such as 'resources.maxMemory="2g"'
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true, help_heading = STAY)]
    set: Vec<String>,

    /// Whether questions wait: approve (until somebody answers) or none (denied) [default: while `sandbox approve` runs]
    #[arg(long, value_name = "WHERE", hide_short_help = true, help_heading = STAY)]
    ask_in: Option<AskInWord>,

    /// Stay, and end the session when standard input ends; changes of a transaction are kept
    #[arg(long, hide_short_help = true, help_heading = STAY)]
    hold: bool,

    /// Make a sandbox that is no session until the client at standard input, a socket, claims it; it ends with that client
    #[arg(long, value_name = "WHEN", hide = true, conflicts_with_all = ["hold", "name", "command"], help_heading = STAY)]
    prepare: Option<PrepareWord>,

    /// The command that the session is for: it ends with it. None: it stays
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,

    #[command(flatten)]
    help: HelpArgs,
}

/// When it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrepareWord {
    /// At once.
    Now,
    /// Some time: it must hold no secrets, and no state of the project.
    Later,
}

/// What is special about a session.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionArgs {
    /// Another word for the session, unique among those that run
    #[arg(long, value_name = "NAME", help_heading = STAY)]
    pub(crate) name: Option<String>,
}

/// What happens when the session is over, and what is said.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionReport {
    pub(crate) report: Option<PathBuf>,
    pub(crate) metrics_file: Option<PathBuf>,
    pub(crate) quiet: bool,
    pub(crate) ask_in: AskIn,
}

impl Create {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        background::close_inherited()?;
        let ask_in = ask_in(self.ask_in)?;
        let terminal = self.tty.then(|| window_size().unwrap_or(USUAL_SIZE));
        let first = match self.command.is_empty() {
            true => None,
            false => Some(FirstCommand { argv: self.command, terminal }),
        };
        let name = self.session.name.clone();
        let (report, metrics_file, quiet) = (self.report, self.metrics_file, self.quiet);
        let told = SessionReport { report, metrics_file, quiet, ask_in };
        let settings = self.set.iter().map(|text| setting(text)).collect::<Result<Vec<_>, _>>()?;
        let how = (&self.policy, settings.as_slice());
        let caller = Caller::here()?;
        let owner = self.prepare.map(|when| SessionOwner::at_stdin(when == PrepareWord::Later));
        let owner = owner.transpose()?;
        // One that is claimed at once cannot be out of date.
        let inputs = match self.prepare {
            Some(PrepareWord::Later) => {
                Some(Inputs::look(&caller, &request::policy_request(&caller, &self.policy)?))
            }
            Some(PrepareWord::Now) | None => None,
        };
        match make(caller, how, (self.session, owner), &told, first)? {
            Creation::Created { session } => {
                let mut made = json!({ "id": session, "name": name });
                if let Some(inputs) = &inputs {
                    made["inputs"] = serde_json::to_value(inputs)?;
                }
                // Who prepares one reads on, too.
                let is_read_on = self.hold || self.prepare.is_some();
                tell_of_made(&session, &made, (self.json, is_read_on))?;
                if self.hold {
                    hold::until_input_ends(&session)?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Creation::Failed { exit_code, kind, message } => {
                output::complain(&output::ClassifiedError { kind, message }.into());
                Ok(ExitCode::from(exit_code))
            }
        }
    }
}

/// Where a session asks.
pub(crate) fn ask_in(word: Option<AskInWord>) -> anyhow::Result<AskIn> {
    match word {
        None => Ok(AskIn::default()),
        Some(word @ (AskInWord::Approve | AskInWord::None)) => Ok(word.into()),
        Some(AskInWord::Terminal | AskInWord::Tmux) => {
            bail!("--ask-in: a session has no terminal of its own; use approve or none")
        }
    }
}

/// Prints what was made. On one line for a reader that does not wait for the end of the output.
pub(crate) fn tell_of_made(
    session: &str,
    made: &serde_json::Value,
    (as_json, is_read_on): (bool, bool),
) -> anyhow::Result<()> {
    match (as_json, is_read_on) {
        (true, true) => output::print(&made.to_string()),
        (true, false) => output::print_json(made),
        (false, _) => output::print(session),
    }
}

/// A key of the policy and its value, as `--set` has them.
pub(crate) fn setting(text: &str) -> anyhow::Result<Setting> {
    match text.split_once('=') {
        Some((key, value)) => Ok(Setting { key: key.to_owned(), value: value.to_owned() }),
        None => bail!("--set {text}: write KEY=VALUE, such as 'resources.maxMemory=\"2g\"'"),
    }
}

/// Makes a session. Returns in the process that called it; the supervisor is another one.
pub(crate) fn make(
    caller: Caller,
    (policy, settings): (&PolicyArgs, &[Setting]),
    (session, owner): (SessionArgs, Option<SessionOwner>),
    told: &SessionReport,
    mut first: Option<FirstCommand>,
) -> anyhow::Result<Creation> {
    #[cfg(feature = "layers-off")]
    starting::warn_of_test_build();
    let mut no_command = Vec::new();
    let command = first.as_mut().map_or(&mut no_command, |first| &mut first.argv);
    let agent = agent::apply(policy, command, &caller.facts.env, Purpose::Run)?;
    let typed = agent.as_ref().map_or(policy, |agent| &agent.policy);
    let mut policy_request = request::policy_request(&caller, typed)?;
    policy_request.command_line.extend(request::flags_of(settings)?);
    policy_request.preset_paths =
        agent.as_ref().map(|agent| agent.paths.clone()).unwrap_or_default();
    if request::record_to(&caller, typed)?.is_some() {
        bail!(
            "--record: the commands of a session have files of their own, in its directory; leave out the file"
        );
    }
    let report_file = told.report.as_deref().map(starting::report_file).transpose()?;
    let metrics_file = told.metrics_file.as_deref().map(MetricsFile::prepare).transpose()?;
    let presets = policy.preset.clone();
    let new = NewSession { name: session.name, presets, command: first, owner };
    let mut tell = |note: &str| {
        if !told.quiet {
            output::note(note);
        }
    };
    agent.iter().for_each(|agent| tell(&agent.told));
    let request = RunRequest {
        command: vec![NAME.into()],
        policy: policy_request,
        ask_in: told.ask_in,
        fork_of: None,
        record_to: None,
        listed: None,
        is_for_files: false,
    };
    let conclude = |finished: &Finished| {
        // Standard error is the log of the session by then.
        if let Some(Err(error)) = report_file.map(|file| file.write(&finished.report)) {
            output::complain(&error.into());
        }
        if let Some(Err(error)) = metrics_file.map(|file| file.add(&finished.metrics)) {
            output::complain(&error.into());
        }
    };
    Ok(background::create(caller, &request, new, &mut tell, conclude)?)
}
