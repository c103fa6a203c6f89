//! `sandbox plan`: what `run` would do with the same options, as a summary, in full, or as JSON.

use crate::agent::{self, Purpose};
use crate::args::{CommandArgs, HelpArgs, HelpEnd, PolicyArgs, help_end};
use crate::output;
use crate::request::policy_request;
use clap::Args;
use palisade_session::new_session_id;
use palisade_session::run::{RunRequest, plan};
use palisade_session::{AskIn, Caller};
use std::process::ExitCode;

const HELP_END: HelpEnd = help_end!(
    "\
Examples:
  sandbox plan -- npm test
  sandbox plan --full -- npm test
  sandbox plan --json --allow-host api.example -- ./client"
);

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
pub(crate) struct Plan {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Print the whole plan: every mount, limit, filter group and promise
    #[arg(long, conflicts_with = "json")]
    full: bool,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    command: CommandArgs,

    #[command(flatten)]
    help: HelpArgs,
}

impl Plan {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut caller = Caller::here()?;
        let mut command = self.command.command;
        let agent = agent::apply(&self.policy, &mut command, &caller.facts.env, Purpose::Look)?;
        let typed = agent.as_ref().map_or(&self.policy, |agent| &agent.policy);
        let mut policy = policy_request(&caller, typed)?;
        policy.preset_paths = agent.as_ref().map(|agent| agent.paths.clone()).unwrap_or_default();
        let ask_in = AskIn::default();
        let request = RunRequest {
            command,
            policy,
            ask_in,
            fork_of: None,
            record_to: None,
            listed: None,
            is_for_files: false,
        };
        caller.facts.canary = Some(caller.places.canary());
        let planned = plan(&caller, &request, &new_session_id())?;
        if let Some(agent) = &agent {
            output::note(&agent.told);
        }
        for note in &planned.policy.notes {
            output::note(&note.to_string());
        }
        if self.json {
            output::print_json(&planned.plan)?;
        } else if self.full {
            output::print_lines(planned.plan.lines())?;
        } else {
            output::print_lines(planned.plan.summary())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
