//! `sandbox policy`: read, check, trust, import and export. Nothing here runs a command.

pub(crate) mod changes;
mod check;
mod init;
mod rules;
mod save;
mod transfer;
mod trust;

use crate::args::{HelpArgs, PolicyArgs};
use crate::output;
use crate::request::policy_request;
use clap::{Subcommand, ValueEnum};
use palisade_policy::{presets, schema, show_json, show_lines};
use palisade_session::{Caller, config};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Print the merged policy and where each value comes from
    #[command(disable_help_flag = true)]
    Show {
        #[command(flatten)]
        policy: PolicyArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        help: HelpArgs,
    },
    /// Check policy files, by default all that apply here; exit code 1 if something is wrong
    Check(check::Check),
    /// Write a policy file to start from
    Init(init::Init),
    /// Print the JSON Schema of a policy document
    Schema,
    /// List the built-in policies
    Presets {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a project's policy file, so that it can allow more; a change of the file ends the trust
    Trust(trust::Trust),
    /// Print the merged policy as one policy file
    #[command(disable_help_flag = true)]
    Export {
        #[command(flatten)]
        policy: PolicyArgs,
        /// Format of the document
        #[arg(long, value_enum, default_value_t = DocumentFormat::Yaml)]
        format: DocumentFormat,
        #[command(flatten)]
        help: HelpArgs,
    },
    /// Import a policy of another sandbox
    Import(transfer::Import),
    /// Save the answers given in a session to a policy file
    Save(save::Save),
    /// List saved answers and all other rules, paths and hosts in your policy files
    Rules(rules::Rules),
    /// Remove rules from your policy files, by path, host or number
    Forget(rules::Forget),
    /// Show what a policy file would change
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
            Self::Show { policy, json, .. } => show(&policy, json)?,
            Self::Check(check) => return check.execute(),
            Self::Init(init) => return init.execute(),
            Self::Schema => output::print_json(&schema())?,
            Self::Presets { json } => list_presets(json)?,
            Self::Trust(trust) => trust.execute()?,
            Self::Export { policy, format, .. } => export(&policy, format)?,
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
