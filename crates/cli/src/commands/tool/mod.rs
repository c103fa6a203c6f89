//! `sandbox tool`: declared tools, a file a command.

mod consent;
mod declare;
mod files;
mod list;
mod run;
mod streams;

use crate::args::PolicyArgs;
use crate::request;
use clap::{Args, Subcommand};
use palisade_session::Caller;
use palisade_session::tools::{self, ToolSet};
use std::path::PathBuf;
use std::process::ExitCode;

const DETAILS: &str = "\
A declaration is a file that says what a tool is called, what it takes, which command it runs and under which policy. Yours are in
the directory `tools` beside your policy; a project's, in .palisade/tools, count once you have trusted them. docs/tools.md explains
the format.

Examples:
  sandbox tool declare count.yaml                    keep a declaration as your own
  sandbox tool list
  sandbox tool run count --input '{\"path\": \"README.md\"}'
  sandbox tool run count --input - --json < in.json  one typed result: output, exit code, usage, violations, changes
  sandbox tool check count.yaml                      what is wrong with a declaration
  sandbox tool trust .palisade/tools/lint.yaml       read it first
  sandbox tool approve fetch                         let a tool have the network, or a lower level";

#[derive(Debug, Subcommand)]
#[command(after_help = DETAILS)]
pub(crate) enum Tool {
    /// List the tools that are declared
    List(list::List),
    /// Show what a tool takes and does
    Show(list::Show),
    /// Check a declaration, and its policy
    Check(list::Check),
    /// Run a tool once, in a sandbox of its own
    Run(run::Run),
    /// Keep a declaration as your own
    Declare(declare::Declare),
    /// Remove a declaration of your own
    Remove(declare::Remove),
    /// Trust a declaration that commands could have written
    Trust(consent::Trust),
    /// Agree to what a tool needs beyond the usual: the network, or a lower level
    Approve(consent::Approve),
}

/// Which declarations count beside the user's own and the project's.
#[derive(Args, Clone, Debug, Default)]
struct Declared {
    /// Also read this declaration, or those in this directory; they count before your own; repeatable
    #[arg(long, value_name = "FILE|DIRECTORY")]
    tools: Vec<PathBuf>,
}

impl Declared {
    fn load(&self, caller: &Caller) -> anyhow::Result<ToolSet> {
        let request = request::policy_request(caller, &PolicyArgs::default())?;
        Ok(tools::load(caller, &self.tools, &request)?)
    }
}

impl Tool {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(list) => list.execute(),
            Self::Show(show) => show.execute(),
            Self::Check(check) => check.execute(),
            Self::Run(run) => run.execute(),
            Self::Declare(declare) => declare.execute(),
            Self::Remove(remove) => remove.execute(),
            Self::Trust(trust) => trust.execute(),
            Self::Approve(approve) => approve.execute(),
        }
    }
}
