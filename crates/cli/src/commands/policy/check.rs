//! `sandbox policy check`: everything that is wrong, with file, line and column.

use crate::args::PolicyArgs;
use crate::output;
use crate::request::policy_request;
use clap::Args;
use palisade_policy::{Diagnostic, LayerKind, PolicyLayer, Subject, merge, not_enforced};
use palisade_session::{Caller, SessionError, config};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Files to check, each on its own [default: all that apply here]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is wrong, and what only deserves a look.
#[derive(Default)]
struct Findings {
    problems: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Check {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut findings = Findings::default();
        if self.files.is_empty() {
            findings.layers()?;
        }
        for file in &self.files {
            findings.file(file)?;
        }
        let Findings { problems, warnings } = findings;
        if self.json {
            output::print_json(&json!({ "problems": problems, "warnings": warnings }))?;
        } else {
            let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
            if problems.is_empty() {
                lines.push("the policy is valid".to_owned());
            }
            output::print_lines(lines)?;
        }
        Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Findings {
    fn layers(&mut self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        match config::load(&caller, &policy_request(&caller, &PolicyArgs::default())?) {
            Ok(loaded) => {
                self.problems.extend(not_enforced(&loaded.merged));
                self.warnings.extend(loaded.notes);
            }
            Err(SessionError::Policy(problems)) => self.problems.extend(problems),
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// By itself: as the organisation's, which may use every key.
    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        let file = config::read(path)?;
        let checked = config::decode(&file.text, &path.to_string_lossy()).and_then(|loaded| {
            self.warnings.extend(loaded.warnings);
            let layer = PolicyLayer { kind: LayerKind::Organisation, document: loaded.document };
            merge(&Subject::Run, vec![layer])
        });
        match checked {
            Ok(merged) => self.problems.extend(not_enforced(&merged)),
            Err(problems) => self.problems.extend(problems),
        }
        Ok(())
    }
}
