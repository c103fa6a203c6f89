//! `sandbox tool run`: one call of a declared tool, in a sandbox of its own.

use super::{Declared, consent, files, streams};
use crate::args::PolicyArgs;
use crate::closing::{self, SavedPolicy, SavedRules};
use crate::early;
use crate::output;
use crate::request;
#[cfg(feature = "layers-off")]
use crate::starting;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_policy::Flag;
use palisade_policy::tool::Work;
use palisade_record::metrics::MetricsFile;
use palisade_session::config::{self, PolicyRequest};
use palisade_session::run::{Finished, RunRequest, run};
use palisade_session::tools::{self, DeclaredTool, ToolResult};
use palisade_session::{AskIn, Caller, SessionError, die_like};
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Of an input.
const MAX_INPUT: u64 = 8 << 20;

#[derive(Args, Debug)]
#[command(after_help = "\
The input is a JSON object with the values that the declaration names; `sandbox tool show NAME` lists them. Without --json the tool
has this terminal for its output. With --json the result is one document on standard output: what it wrote, exit code, usage,
violations, waiting changes.

The exit code is the tool's own; 124 time limit, 125 wrong input or sandbox failed, 126 refused: a blocked pattern, a missing approval,
or quarantined.

Examples:
  sandbox tool run count --input '{\"path\": \"README.md\"}'
  echo '{\"path\": \"README.md\"}' | sandbox tool run count --input - --json")]
pub(crate) struct Run {
    #[command(flatten)]
    declared: Declared,
    /// The input as JSON; - reads it from standard input [default: {}]
    #[arg(long, value_name = "JSON|-")]
    input: Option<String>,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
    /// Add the run to the counters in this file, in Prometheus text format
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    /// Refuse the call if the declaration has another SHA-256, as `sandbox tool list --json` prints it
    #[arg(long, value_name = "HEX", hide_short_help = true)]
    sha256: Option<String>,
    /// The tool
    name: String,
}

impl Run {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        #[cfg(feature = "layers-off")]
        starting::warn_of_test_build();
        let caller = Caller::here()?;
        let set = self.declared.load(&caller)?;
        let tool = tools::find(&set, &self.name)?;
        if let Some(offered) = &self.sha256 {
            tools::refuse_changed(tool, offered)?;
        }
        let call = tool.declaration.call(&self.read_input()?).map_err(SessionError::ToolCall)?;
        let metrics = self.metrics_file.as_deref().map(MetricsFile::prepare).transpose()?;
        let mut policy = approved(&caller, tool, self.json)?;
        let (argv, stdin) = match call.work {
            Work::Files(built_in) => {
                let result = files::run(caller, tool, (built_in, &call.values), policy, metrics)?;
                return finish(&result, self.json);
            }
            Work::Command { argv, stdin } => (argv, stdin),
        };
        if self.json {
            bound_output(&caller, &mut policy)?;
        }
        let command = argv.into_iter().map(Into::into).collect::<Vec<_>>();
        if !self.json {
            early::ask(&caller, &mut policy, &command);
        }
        let request = RunRequest {
            command,
            policy,
            ask_in: AskIn::default(),
            fork_of: None,
            record_to: None,
            listed: None,
            is_for_files: false,
        };
        // A person at the terminal may have to answer questions there. Nothing else of our input is for the tool.
        if self.json || stdin.is_some() || !io::stdin().is_terminal() {
            streams::set_stdin(stdin.as_deref())?;
        }
        let cwd = caller.facts.cwd.clone();
        if !self.json {
            let mut tell = |note: &str| output::note(note);
            let finished = run(caller, &request, &mut tell);
            let saved = SavedPolicy { rules: SavedRules::new(), lists_hosts: false };
            closing::words(&finished.report, &cwd, &saved).iter().for_each(|line| tell(line));
            count(metrics, &finished);
            let code = u8::try_from(finished.report.exit_code).unwrap_or(crate::OWN_FAILURE);
            if let Some(error) = finished.error {
                output::complain(&error.into());
            }
            die_like(&finished.report);
            return Ok(ExitCode::from(code));
        }
        let captured = streams::Captured::begin()?;
        // Said by the report, which is not mixed with what the tool wrote.
        let mut tell = |_: &str| {};
        let finished = run(caller, &request, &mut tell);
        let output = captured.end()?;
        count(metrics, &finished);
        finish(&ToolResult::new(&self.name, &finished.report, &output), true)
    }

    fn read_input(&self) -> anyhow::Result<Value> {
        let text = match self.input.as_deref() {
            None => return Ok(json!({})),
            Some("-") => {
                let mut text = String::new();
                let read = io::stdin().lock().take(MAX_INPUT + 1).read_to_string(&mut text);
                read.context("cannot read standard input")?;
                if text.len() as u64 > MAX_INPUT {
                    bail!("--input: an input has at most 8 MiB");
                }
                text
            }
            Some(text) => text.to_owned(),
        };
        serde_json::from_str(&text).context("--input is not JSON")
    }
}

/// The policy of the call, with what a person agreed to before, or agrees to now.
fn approved(
    caller: &Caller,
    tool: &DeclaredTool,
    is_silent: bool,
) -> anyhow::Result<PolicyRequest> {
    let asked = request::policy_request(caller, &PolicyArgs::default())?;
    let asked = tools::request_of(tool, asked);
    let (mut asked, missing) = tools::with_approvals(caller, tool, asked)?;
    let name = &tool.declaration.name;
    let can_ask = !is_silent && io::stdin().is_terminal() && io::stderr().is_terminal();
    for approval in &missing {
        if !can_ask || !consent::agrees(&consent::question(&approval.what, name))? {
            let missing = missing.iter().map(|it| it.what.clone()).collect();
            return Err(SessionError::ToolNotApproved { tool: name.clone(), missing }.into());
        }
        asked.command_line.push(approval.given("answered at the terminal before the run"));
    }
    Ok(asked)
}

/// What is kept in our memory has a limit, even if a policy allows more output.
fn bound_output(caller: &Caller, policy: &mut PolicyRequest) -> anyhow::Result<()> {
    const KEY: &str = "resources.maxOutputSize";
    let stated = config::load(caller, policy)?.merged.policy.resources.max_output_size;
    if stated.is_none_or(|stated| stated > streams::MAX_CAPTURED) {
        let most = format!("{}m", streams::MAX_CAPTURED >> 20);
        policy.command_line.push(Flag::new("sandbox tool run --json", KEY, most));
    }
    Ok(())
}

/// The tool has run: nothing that is written about it changes what became of it.
fn count(metrics: Option<MetricsFile>, finished: &Finished) {
    if let Some(Err(error)) = metrics.map(|file| file.add(&finished.metrics)) {
        output::complain(&error.into());
    }
}

fn finish(result: &ToolResult, as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        output::print_json(result)?;
    } else {
        if !result.stdout.is_empty() {
            output::print(&result.stdout)?;
        }
        if !result.stderr.is_empty() {
            output::note(result.stderr.trim_end());
        }
    }
    if let Some(failure) = &result.failure {
        let (kind, message) = (failure.kind, failure.message.clone());
        output::complain(&output::ClassifiedError { kind, message }.into());
    }
    Ok(ExitCode::from(u8::try_from(result.exit_code).unwrap_or(crate::OWN_FAILURE)))
}
