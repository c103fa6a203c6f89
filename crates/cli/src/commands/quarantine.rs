//! `sandbox quarantine`: tools that do not run until somebody has looked at what they did.
//!
//! What is kept of an incident was said or named inside a sandbox: it is escaped when it is printed.

use crate::output;
use clap::Subcommand;
use palisade_record::Severity;
use palisade_session::quarantine::{self, QuarantineEntry};
use palisade_session::sessions::short_id;
use palisade_session::{AppDirs, Caller, escape};
use serde_json::{Value, json};
use std::process::ExitCode;

const DETAILS: &str = "\
A run that is ended for an attempt to break out leaves its tool here, if the policy says `quarantine` for an attempt of
that severity (escape.onCritical and others) or escape.strict is set. The same command is then refused with exit code 126, and
every command of a tool that was declared with --tool. `docs/escape-response.md` lists the indicators.

Examples:
  sandbox quarantine ls
  sandbox quarantine show 1c9e0a55         what happened, and the files that were kept
  sandbox quarantine release 1c9e0a55      let it run again";

#[derive(Debug, Subcommand)]
#[command(after_help = DETAILS)]
pub(crate) enum Quarantine {
    /// List the tools that do not run
    Ls {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what a tool was quarantined for, and what was kept of it
    Show {
        /// Its id, the beginning or the end of it, or the name of the tool
        #[arg(value_name = "ID|TOOL")]
        quarantined: String,
        /// Print one JSON document with the kept files
        #[arg(long)]
        json: bool,
    },
    /// Let a tool run again
    Release {
        /// Its id, the beginning or the end of it, or the name of the tool
        #[arg(value_name = "ID|TOOL")]
        quarantined: String,
    },
}

impl Quarantine {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = AppDirs::here()?;
        match self {
            Self::Ls { json } => list(&places, json)?,
            Self::Show { quarantined, json } => show(&places, &quarantined, json)?,
            Self::Release { quarantined } => {
                let entries = quarantine::find(&places, &quarantined)?;
                quarantine::release(&places, &entries, Caller::here()?.facts.uid)?;
                for entry in &entries {
                    output::note(&format!("released {} ({})", entry.tool, entry.command));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(places: &AppDirs, json: bool) -> anyhow::Result<()> {
    let entries = quarantine::list(places)?;
    if json {
        return output::print_json(&json!({ "quarantined": entries }));
    }
    if entries.is_empty() {
        output::note("no tool is quarantined");
    }
    output::print_lines(entries.iter().map(line))
}

fn line(entry: &QuarantineEntry) -> String {
    let declared = if entry.is_declared { " (all commands of this tool)" } else { "" };
    format!(
        "{}  {}{declared}  {}  {} {}  {}",
        short_id(&entry.id),
        entry.tool,
        entry.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        word(entry.severity),
        entry.indicator,
        entry.command
    )
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
        Severity::Critical => "critical",
    }
}

fn show(places: &AppDirs, named: &str, json: bool) -> anyhow::Result<()> {
    let entries = quarantine::find(places, named)?;
    let mut documents = Vec::new();
    for entry in &entries {
        let files = escape::read_bundle(places, &entry.session)?;
        if json {
            let kept: serde_json::Map<String, Value> =
                files.iter().map(|file| (file.name.to_owned(), parsed(&file.text))).collect();
            documents.push(json!({ "entry": entry, "bundle": kept }));
            continue;
        }
        let mut lines = vec![
            line(entry),
            format!("  {}", entry.description),
            format!("  session {}, command hash {}", entry.session, entry.command_hash),
        ];
        if files.is_empty() {
            lines.push("  nothing of the incident was kept".to_owned());
        }
        lines.extend(files.iter().map(|file| format!("  {}", file.path.display())));
        output::print_lines(lines)?;
    }
    if json { output::print_json(&json!({ "quarantined": documents })) } else { Ok(()) }
}

/// As a document, or line by line where it is one a line.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| {
        text.lines().map(|line| serde_json::from_str(line).unwrap_or(json!(line))).collect()
    })
}
