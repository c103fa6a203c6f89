//! `sandbox run`: the command in, its exit code out.
//!
//! Standard output belongs to the command alone; whatever we say goes to standard error.

use crate::agent::{self, Purpose};
use crate::args::{CommandArgs, HelpArgs, HelpEnd, PolicyArgs, ReportArgs, help_end};
use crate::closing::{self, SavedPolicy, SavedRules};
use crate::commands::sessions;
use crate::early;
use crate::environment;
use crate::output;
use crate::request;
use crate::starting;
use anyhow::bail;
use clap::Args;
use palisade_policy::limit::LimitKind;
use palisade_record::metrics::MetricsFile;
use palisade_record::{Outcome, RunReport};
use palisade_session::config::{self, PolicyRequest};
use palisade_session::listed_view::ListedView;
use palisade_session::run::{RunRequest, run};
use palisade_session::stores::{SavedRule, Stores};
use palisade_session::{AskIn, Caller, die_like};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

const HELP_END: HelpEnd = help_end!(
    "\
Examples:
  sandbox run -- npm test                          the project is writable; ~/.ssh is hidden
  sandbox run --ro ~/data --timeout 5m -- ./train  one more directory, and a time limit
  sandbox run --allow-for npm -- npm install       only the registry that npm is configured to use",
    "
  sandbox run --overlay ~/.config -- app           it can change its settings; changes are discarded
  sandbox run --blacklist keys -- ./agent          hidden, although it is in the project
  sandbox run --report r.json -- make              what happened, and what enforced each promise

The exit code is the command's own; 124 time limit, 125 sandbox failed, 126 denied by policy or not
executable, 127 not found, 128+N killed by signal N."
);

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
pub(crate) struct Run {
    #[command(flatten)]
    policy: PolicyArgs,

    #[command(flatten)]
    report: ReportArgs,

    /// Keep the sandbox when the command has ended, as a session: see `sandbox exec` and `sandbox ps`
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    keep: bool,

    #[command(flatten)]
    pub(crate) command: CommandArgs,

    #[command(flatten)]
    help: HelpArgs,
}

impl Run {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        if self.keep {
            return sessions::keep::run(&self.policy, self.report, self.command.command);
        }
        let caller = Caller::here()?;
        let done = perform(caller, &self.policy, self.report, self.command.command.into())?;
        die_like(&done.report);
        Ok(done.exit_code)
    }
}

/// A run that is over, with everything said that is to be said.
pub(crate) struct Done {
    pub(crate) request: RunRequest,
    pub(crate) report: RunReport,
    pub(crate) exit_code: ExitCode,
}

/// What is run, and what it sees.
pub(crate) struct Wanted {
    pub(crate) command: Vec<OsString>,
    /// The view, if it is not the one that the policy describes.
    pub(crate) listed: Option<ListedView>,
}

impl From<Vec<OsString>> for Wanted {
    fn from(command: Vec<OsString>) -> Self {
        Self { command, listed: None }
    }
}

/// Runs a command and tells a person how it went.
pub(crate) fn perform(
    caller: Caller,
    policy: &PolicyArgs,
    report: ReportArgs,
    Wanted { mut command, listed }: Wanted,
) -> anyhow::Result<Done> {
    #[cfg(feature = "layers-off")]
    starting::warn_of_test_build();
    let agent = agent::apply(policy, &mut command, &caller.facts.env, Purpose::Run)?;
    let typed = agent.as_ref().map_or(policy, |agent| &agent.policy);
    let mut policy = request::policy_request(&caller, typed)?;
    policy.preset_paths = agent.as_ref().map(|agent| agent.paths.clone()).unwrap_or_default();
    let told = report.or(environment::options(&caller.facts.env)?);
    if !told.quiet && !told.json {
        early::ask(&caller, &mut policy, &command);
    }
    let report_file = told.report.as_deref().map(starting::report_file).transpose()?;
    let metrics_file = told.metrics_file.as_deref().map(MetricsFile::prepare).transpose()?;
    let record_to = request::record_to(&caller, typed)?;
    let ask_in = ask_in(&told)?;
    let request = RunRequest {
        command,
        policy,
        ask_in,
        fork_of: None,
        record_to,
        listed,
        is_for_files: false,
    };
    let mut tell = |note: &str| {
        if !told.quiet {
            output::note(note);
        }
    };
    agent.iter().for_each(|agent| tell(&agent.told));
    let cwd = caller.facts.cwd.clone();
    let finished = run(caller, &request, &mut tell);
    // Read only where they are named; what cannot be read is named without the command that removes them.
    let saved = SavedPolicy {
        rules: match closing::names_rules(&finished.report) {
            true => saved_rules().unwrap_or_default(),
            false => SavedRules::new(),
        },
        lists_hosts: finished.report.offline_attempts.is_some() && lists_hosts(&request.policy),
    };
    let closing = closing::words(&finished.report, &cwd, &saved);
    if !closing.is_empty() && !told.quiet && is_ended_by_key(&finished.report) {
        output::end_line();
    }
    closing.iter().for_each(|line| tell(line));
    let exit_code = u8::try_from(finished.report.exit_code).unwrap_or(crate::OWN_FAILURE);
    match finished.error {
        Some(error) => output::complain(&error.into()),
        None if finished.report.outcome == Outcome::Timeout => {
            tell(&time_limit_reached(&finished.report));
        }
        None if outlasted_its_grace(&finished.report) => {
            tell("the command did not end when asked to; all processes were killed");
        }
        None => {}
    }
    // The command has run: nothing that is written about it changes what became of it.
    if let Some(file) = report_file
        && let Err(error) = file.write(&finished.report)
    {
        output::complain(&anyhow::anyhow!(
            "{error}; the report was not written; exit code {exit_code} is the command's"
        ));
    }
    if let Some(file) = metrics_file
        && let Err(error) = file.add(&finished.metrics)
    {
        output::complain(&error.into());
    }
    if told.json {
        eprintln!("{}", one_line(&finished.report)?);
    }
    Ok(Done { request, report: finished.report, exit_code: ExitCode::from(exit_code) })
}

fn time_limit_reached(report: &RunReport) -> String {
    let limit = LimitKind::WallTime;
    let reached = report.limits.iter().find(|it| it.name == limit.name());
    let value = reached.map(|it| format!(" ({})", limit.unit().show(it.value))).unwrap_or_default();
    format!("time limit{value} reached; all processes were killed")
}

/// Whether the policy lists hosts that the network could be opened to.
fn lists_hosts(request: &PolicyRequest) -> bool {
    let loaded = Caller::here().ok().and_then(|caller| config::load(&caller, request).ok());
    loaded.is_some_and(|loaded| {
        let network = &loaded.merged.policy.network;
        !network.allowed_hosts.is_empty() || !network.allowed_for.is_empty()
    })
}

fn saved_rules() -> anyhow::Result<SavedRules> {
    let stores = Stores::new(&Caller::here()?);
    let rules = stores.rules()?;
    let place = |rule: &SavedRule| format!("{}:{}", rule.file.display(), rule.entry.line);
    Ok(rules.iter().map(|rule| (place(rule), stores.words_for(rule, &rules))).collect())
}

/// Whether the terminal shows `^C` at the end of what the command wrote.
fn is_ended_by_key(report: &RunReport) -> bool {
    const SIGINT: i32 = 2;
    const SIGQUIT: i32 = 3;
    matches!(report.signal, Some(SIGINT | SIGQUIT))
        && io::stdin().is_terminal()
        && io::stderr().is_terminal()
}

fn ask_in(told: &ReportArgs) -> anyhow::Result<AskIn> {
    let ask_in = told.ask_in.map(AskIn::from).unwrap_or_default();
    if ask_in == AskIn::Tmux && std::env::var_os("TMUX").is_none_or(|tmux| tmux.is_empty()) {
        bail!(
            "--ask-in tmux: not in a tmux window ($TMUX is not set); start tmux first, or use --ask-in approve"
        );
    }
    Ok(ask_in)
}

fn outlasted_its_grace(report: &RunReport) -> bool {
    const SIGKILL: i32 = 9;
    let was_killed = report.outcome == Outcome::Killed && report.signal == Some(SIGKILL);
    was_killed && report.signals_forwarded.iter().any(|signal| signal.fatal)
}

/// No string in JSON holds a raw line break, so indentation is all that goes.
fn one_line(report: &RunReport) -> anyhow::Result<String> {
    Ok(report.to_json()?.lines().map(str::trim_start).collect())
}
