//! `sandbox fork`: a second session that begins with the changes of another one.

use crate::args::AskInWord;
use crate::commands::changes::waiting;
use crate::commands::sessions::create::{NAME, ask_in, tell_of_made};
use crate::commands::sessions::hold;
use crate::output;
use anyhow::Context as _;
use clap::Args;
use palisade_session::background::{self, Creation, NewSession};
use palisade_session::run::RunRequest;
use palisade_session::transaction::{ForkOptions, ForkOrigin, ForkRequest, StateNumber};
use palisade_session::{Caller, given_variables};
use serde_json::json;
use std::process::ExitCode;

const DETAILS: &str = "\
The new session has the options that the other one was made with, and a copy of its changes. From then on neither sees what
the other one writes. Its processes, its terminal and its private files (/tmp) are its own. The other one may run or be over.
Values of --env are not kept: the new session gets those that the variables have where you fork.

Examples:
  sandbox fork work --name other            from the present state
  sandbox fork work --at 2                  from checkpoint 2
  sandbox exec other -- make test";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Fork {
    /// The checkpoint to begin with; 0 is the project without changes [default: the present state]
    #[arg(long, value_name = "NUMBER")]
    at: Option<u32>,

    /// Another word for the new session, unique among those that run
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Print the id and the name as JSON
    #[arg(long)]
    json: bool,

    /// Print errors only
    #[arg(long, short)]
    quiet: bool,

    /// Whether questions wait: approve (until somebody answers) or none (denied) [default: while `sandbox approve` runs]
    #[arg(long, value_name = "WHERE")]
    ask_in: Option<AskInWord>,

    /// Stay, and end the new session when standard input ends; its changes are kept
    #[arg(long)]
    hold: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Fork {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        background::close_inherited()?;
        #[cfg(feature = "layers-off")]
        crate::starting::warn_of_test_build();
        let ask_in = ask_in(self.ask_in)?;
        let waiting = waiting(Some(&self.sid))?;
        if let Some(number) = self.at {
            waiting.check_state(StateNumber::Checkpoint(number))?;
        }
        let ForkRequest { policy, working_directory: cwd, missing_variables } =
            ForkOptions::of_session(waiting.directory())?
                .request(&|name| given_variables::value(name, |name| std::env::var(name).ok()));
        // What the options name is relative to where they were given.
        std::env::set_current_dir(&cwd)
            .with_context(|| format!("the working directory {} of the session", cwd.display()))?;
        let session = waiting.session();
        let fork_of = ForkOrigin {
            session: session.id.clone(),
            project: session.project.clone(),
            checkpoint: self.at,
        };
        let new = NewSession {
            name: self.name.clone(),
            presets: session.presets.clone(),
            command: None,
            owner: None,
        };
        drop(waiting);
        let mut caller = Caller::here()?;
        caller.facts.cwd = cwd;
        let request = RunRequest {
            command: vec![NAME.into()],
            policy,
            ask_in,
            fork_of: Some(fork_of),
            record_to: None,
            listed: None,
            is_for_files: false,
        };
        let mut tell = |note: &str| {
            if !self.quiet {
                output::note(note);
            }
        };
        for name in missing_variables {
            tell(&format!("--env {name} is left out: the variable has no value here"));
        }
        match background::create(caller, &request, new, &mut tell, |_| {})? {
            Creation::Created { session } => {
                let made = json!({ "id": session, "name": self.name });
                tell_of_made(&session, &made, (self.json, self.hold))?;
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
