//! `sandbox tool trust` and `approve`: what a person says about a declaration, at a terminal. Both hold for one content of it.

use super::{Declared, list};
use crate::args::PolicyArgs;
use crate::output;
use crate::request;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_policy::tool::parse_tool;
use palisade_record::{Digest, escape};
use palisade_session::tools::{self, DeclaredTool, ToolApprovals, ToolOrigin};
use palisade_session::{Caller, SessionError, TrustStore, config};
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// Stop trusting it
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// Do not ask; for scripts
    #[arg(long, short)]
    yes: bool,
    /// The declaration, such as .palisade/tools/lint.yaml
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Trust {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let mut store = TrustStore::load(&caller.places)?;
        let file = config::read(&self.file)?;
        let shown = file.path.display().to_string();
        if self.revoke {
            if !store.revoke(&file.path) {
                bail!("{shown} was not trusted");
            }
            store.save(&caller.places)?;
            output::note(&format!("{shown} is no longer trusted"));
            return Ok(ExitCode::SUCCESS);
        }
        let declaration = parse_tool(&file.text, &file.path.to_string_lossy())
            .map_err(SessionError::ToolDeclaration)?;
        if store.is_trusted(&file.path, &file.text) {
            output::note(&format!("{shown} is already trusted"));
            return Ok(ExitCode::SUCCESS);
        }
        let digest = Digest::of(file.text.as_bytes());
        let tool = DeclaredTool { declaration, file, origin: ToolOrigin::Named, digest };
        output::print_lines(list::lines(&tool))?;
        if !self.yes && !agrees(&format!("trust {shown}?"))? {
            bail!("{shown} is still not trusted");
        }
        // What was shown is what is trusted: the file may have changed while the question stood.
        if config::read(&self.file).map_or(true, |now| now.text != tool.file.text) {
            bail!("{shown} changed in the meantime; read it again");
        }
        store.trust(&tool.file.path, &tool.file.text);
        store.save(&caller.places)?;
        output::note(&format!("{shown} is trusted until it changes"));
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Approve {
    #[command(flatten)]
    declared: Declared,
    /// Take back what was agreed to
    #[arg(long)]
    revoke: bool,
    /// The tool
    name: String,
}

impl Approve {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let set = self.declared.load(&caller)?;
        let tool = tools::find(&set, &self.name)?;
        let name = &self.name;
        let mut store = ToolApprovals::load(&caller.places)?;
        if self.revoke {
            if !store.revoke(tool) {
                bail!("nothing was agreed to for {name}");
            }
            store.save(&caller.places)?;
            output::note(&format!("{name} has no approvals any more"));
            return Ok(ExitCode::SUCCESS);
        }
        let asked = request::policy_request(&caller, &PolicyArgs::default())?;
        let asked = tools::request_of(tool, asked);
        let (_, missing) = tools::with_approvals(&caller, tool, asked)?;
        if missing.is_empty() {
            output::note(&format!("{name} needs no approval"));
            return Ok(ExitCode::SUCCESS);
        }
        output::print_lines(list::lines(tool))?;
        for approval in &missing {
            if !agrees(&question(&approval.what, name))? {
                bail!("{} is not approved", approval.what);
            }
            store.give(tool, &approval.what, caller.facts.uid);
        }
        store.save(&caller.places)?;
        output::note(&format!("approved until the declaration of {name} changes"));
        Ok(ExitCode::SUCCESS)
    }
}

/// What a person is asked about an approval.
pub(super) fn question(what: &str, tool: &str) -> String {
    match what.rsplit_once(':') {
        Some((_, "network")) => {
            format!("let {tool} reach the hosts that its policy allows ({what})?")
        }
        _ => format!("let {tool} run at the lower isolation level that it declares ({what})?"),
    }
}

/// Only a person at a terminal can agree: the caller of a tool, a program, must not answer for one.
pub(super) fn agrees(what: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!("cannot ask: there is no terminal");
    }
    output::question(&format!("{} [y/N] ", escape::text(what)));
    // What was typed before the question was there is no answer to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
