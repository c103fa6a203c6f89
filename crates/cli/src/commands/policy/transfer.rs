//! `sandbox policy import` and `diff`: what another document would mean here, and taking it over.

use super::changes;
use crate::args::PolicyArgs;
use crate::output;
use crate::request::policy_request;
use clap::{Args, ValueEnum};
use palisade_session::config::{self, DocumentFile, Supposing, Target};
use palisade_session::{Caller, SessionError};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// A policy document, or a settings file of another sandbox
    file: PathBuf,
    /// Whose policy it becomes
    #[arg(long, value_enum, default_value_t = Owner::User)]
    to: Owner,
    /// Show the converted document and what it would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Owner {
    User,
    Project,
}

#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// A policy document, or a settings file of another sandbox
    file: PathBuf,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Print the changes as JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        let source = config::read(&self.file)?;
        let loaded = palisade_policy::load(&source.text, &self.file.to_string_lossy())
            .map_err(SessionError::Policy)?;
        for warning in &loaded.warnings {
            output::note(&format!("warning: {warning}"));
        }
        let mut text = serde_json::to_string_pretty(&loaded.document.to_json())?;
        text.push('\n');
        let target = match self.to {
            Owner::User => Target::User,
            Owner::Project => Target::Project,
        };
        let path = config::free_place(&caller, target)?;
        let converted = DocumentFile { path: path.clone(), text: text.clone() };
        let supposing = match target {
            Target::User => Supposing::User(converted),
            Target::Project => Supposing::ProjectFile(converted),
        };
        let request = policy_request(&caller, &PolicyArgs::default())?;
        let before = config::load(&caller, &request)?;
        let after = config::load_supposing(&caller, &request, Some(&supposing))?;
        if self.dry_run {
            output::print(&text)?;
        }
        changes::show(&before.merged, &after.merged, false)?;
        if self.dry_run {
            return Ok(());
        }
        config::write(&path, &text)?;
        output::print(&format!("written to {}", path.display()))
    }
}

impl Diff {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        let mut request = policy_request(&caller, &self.policy)?;
        let before = config::load(&caller, &request)?;
        request.files.push(self.file);
        let after = config::load(&caller, &request)?;
        changes::show(&before.merged, &after.merged, self.json)
    }
}
