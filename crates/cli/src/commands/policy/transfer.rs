//! `sandbox policy import` and `diff`: what another document would mean here, and taking it over.

use super::changes;
use crate::args::{HelpArgs, PolicyArgs};
use crate::output;
use crate::request::policy_request;
use clap::{Args, ValueEnum};
use palisade_policy::{Diagnostic, PolicyDocument, Trust, not_enforced};
use palisade_record::escape;
use palisade_session::config::{self, DocumentFile, PolicyRequest, PolicyTarget, Supposing};
use palisade_session::{Caller, SessionError};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// A policy document, or a settings file of another sandbox
    file: PathBuf,
    /// Whose policy to save it to
    #[arg(long, value_enum, default_value_t = Owner::User)]
    to: Owner,
    /// Show the converted document and what it would change; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write it even if parts cannot be converted or used
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Owner {
    User,
    Project,
}

#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Diff {
    /// A policy document, or a settings file of another sandbox
    file: PathBuf,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    help: HelpArgs,
}

impl Import {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let source = config::read(&self.file)?;
        let loaded = config::decode(&source.text, &source.path.to_string_lossy())
            .map_err(SessionError::Policy)?;
        for warning in &loaded.warnings {
            output::note(&format!("warning: {warning}"));
        }
        let mut text = escape::json(serde_json::to_string_pretty(&loaded.document.to_json())?);
        text.push('\n');
        let target = match self.to {
            Owner::User => PolicyTarget::User,
            Owner::Project => PolicyTarget::Project,
        };
        let path = config::free_place(&caller, target)?;
        let converted = DocumentFile::supposed(path.clone(), text.clone());
        let supposing = match target {
            PolicyTarget::User => Supposing::User(converted),
            PolicyTarget::Project => Supposing::ProjectFile(converted),
        };
        let request = policy_request(&caller, &PolicyArgs::default())?;
        let before = config::load(&caller, &request)?;
        let lost = loaded.document.refused();
        let refused = refused_in_use(&caller, &request, &source, &loaded.document)?;
        for complaint in lost {
            output::note(&format!("lost in the conversion: {complaint}"));
        }
        if let Some(address) = loaded.listen {
            output::note(&format!(
                "lost in the conversion: `listenAddr`; use `sandbox proxy --listen {address}` instead"
            ));
        }
        for complaint in &refused {
            output::note(&format!("kept, but not usable: {complaint}"));
        }
        let is_whole = lost.is_empty() && loaded.listen.is_none() && refused.is_empty();
        if self.dry_run {
            output::print(&text)?;
        }
        if !is_whole && !self.force {
            let shown = source.path.display();
            output::note(&format!("nothing was written: fix {shown}, or use --force"));
            return Ok(ExitCode::FAILURE);
        }
        let after = config::load_supposing(&caller, &request, Some(&supposing))?;
        changes::show(&before.merged, &after.merged, false)?;
        if !self.dry_run {
            config::write(&path, &text)?;
            output::print_lines([format!("written to {}", path.display())])?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What `run` would refuse if it were given the file itself, for the run or for a tool it declares:
/// there the complaints have the places that its author knows. What is lost is not among them.
fn refused_in_use(
    caller: &Caller,
    request: &PolicyRequest,
    source: &DocumentFile,
    document: &PolicyDocument,
) -> anyhow::Result<Vec<Diagnostic>> {
    let written = document.to_json();
    let tools = written["tools"].as_object().into_iter().flat_map(|tools| tools.keys().cloned());
    let mut found: Vec<Diagnostic> = Vec::new();
    for tool in std::iter::once(None).chain(tools.map(Some)) {
        let mut request = PolicyRequest { tool, ..request.clone() };
        request.files.push(source.path.clone());
        let trusted = Supposing::Writable(Trust::Trusted);
        let complaints = match config::load_supposing(caller, &request, Some(&trusted)) {
            Ok(loaded) => not_enforced(&loaded.merged),
            Err(SessionError::Policy(complaints)) => complaints,
            Err(other) => return Err(other.into()),
        };
        let file = source.path.to_string_lossy();
        for complaint in complaints.into_iter().filter(|complaint| complaint.file == file) {
            if !found.contains(&complaint) && !document.refused().contains(&complaint) {
                found.push(complaint);
            }
        }
    }
    Ok(found)
}

impl Diff {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        let mut request = policy_request(&caller, &self.policy)?;
        let before = config::load(&caller, &request)?;
        request.files.push(self.file);
        // What it asks for, wherever it lies.
        let trusted = Supposing::Writable(Trust::Trusted);
        let after = config::load_supposing(&caller, &request, Some(&trusted))?;
        changes::show(&before.merged, &after.merged, self.json)
    }
}
