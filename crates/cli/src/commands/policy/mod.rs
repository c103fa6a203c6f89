//! `sandbox policy`: read, check, trust, carry over. Nothing here runs a command.

pub(crate) mod changes;
mod check;
mod init;
mod rules;
mod save;
mod transfer;
mod trust;

use crate::args::PolicyArgs;
use crate::output;
use crate::request::policy_request;
use clap::{Subcommand, ValueEnum};
use palisade_policy::{presets, schema, show_json, show_lines};
use palisade_session::{Caller, config};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Print the policy that all layers make together, and where each value comes from
    Show {
        #[command(flatten)]
        policy: PolicyArgs,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check policy files, or all layers in their usual places; ends with 1 if something is wrong
    Check(check::Check),
    /// Write a policy file to start from, which editors can check and complete
    Init(init::Init),
    /// Print the JSON Schema of a policy document
    Schema,
    /// List the shipped policies
    Presets {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Let a policy file in a project loosen what it asks to, as long as its content stays the same
    Trust(trust::Trust),
    /// Print the merged policy as one document
    Export {
        #[command(flatten)]
        policy: PolicyArgs,
        #[arg(long, value_enum, default_value_t = DocumentFormat::Yaml)]
        format: DocumentFormat,
    },
    /// Convert a policy of any known kind into a document of ours, and put it in place
    Import(transfer::Import),
    /// Save what was answered in a session to a policy file, for good
    Save(save::Save),
    /// List what was answered for good, and every other rule, path and host in the policy files
    Rules(rules::Rules),
    /// Remove some of them from their files, by path, host or number
    Forget(rules::Forget),
    /// Show what a policy file would change, without using it
    Diff(transfer::Diff),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    Yaml,
    Json,
}

impl Policy {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Show { policy, json } => show(&policy, json)?,
            Self::Check(check) => return check.execute(),
            Self::Init(init) => return init.execute(),
            Self::Schema => output::print_json(&schema())?,
            Self::Presets { json } => list_presets(json)?,
            Self::Trust(trust) => trust.execute()?,
            Self::Export { policy, format } => export(&policy, format)?,
            Self::Import(import) => return import.execute(),
            Self::Save(save) => save.execute()?,
            Self::Rules(rules) => rules.execute()?,
            Self::Forget(forget) => forget.execute()?,
            Self::Diff(diff) => diff.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(args: &PolicyArgs, json: bool) -> anyhow::Result<()> {
    let caller = Caller::here()?;
    let loaded = config::load(&caller, &policy_request(&caller, args)?)?;
    if json {
        return output::print_json(&show_json(&loaded.merged));
    }
    output::print_lines(show_lines(&loaded.merged))
}

fn list_presets(as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let list: Vec<_> = presets()
            .iter()
            .map(|preset| {
                let not_enforced = preset.not_enforced();
                json!({
                    "name": preset.name,
                    "description": preset.description(),
                    "usable": not_enforced.is_empty(),
                    "notEnforced": not_enforced,
                })
            })
            .collect();
        return output::print_json(&list);
    }
    let lines = presets().iter().map(|preset| {
        let usable = preset.not_enforced().is_empty();
        let remark = if usable { "" } else { " (not usable in this version)" };
        format!("{:<14}{}{remark}\n", preset.name, preset.description())
    });
    output::print(&lines.collect::<String>())
}

fn export(args: &PolicyArgs, format: DocumentFormat) -> anyhow::Result<()> {
    let caller = Caller::here()?;
    let loaded = config::load(&caller, &policy_request(&caller, args)?)?;
    let document = palisade_policy::export(&loaded.merged);
    match format {
        DocumentFormat::Json => output::print_json(&document),
        DocumentFormat::Yaml => output::print(&serde_saphyr::to_string(&document)?),
    }
}
