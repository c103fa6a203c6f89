//! `sandbox policy init`: a policy file to start from, with the line by which editors find its schema.
//!
//! Everything in it is a comment but the version, so that it changes nothing until somebody edits it.

use crate::output;
use anyhow::Context;
use clap::Args;
use palisade_policy::schema;
use palisade_session::Caller;
use palisade_session::config::{self, PolicyTarget};
use std::process::ExitCode;

/// Beside the policy: a project's file is read on machines that are not on the network.
const SCHEMA: &str = "policy.schema.json";

const STARTER: &str = "\
# yaml-language-server: $schema=./policy.schema.json
# What `sandbox run` allows here. Every key: `sandbox policy schema`; current values: `sandbox policy show`.
version: 1

# preset: agent                      # start from a built-in policy; `sandbox policy presets` lists them

# filesystem:
#   readOnlyPaths: [~/data]          # may be read
#   readWritePaths: [~/scratch]      # may be written
#   deniedPaths: [secrets]           # hidden, also in the project

# network:
#   mode: proxy                      # none (the default), proxy, nat or host
#   allowedHosts: [api.example]
#   allowedFor: [npm, git]           # hosts that these tools are configured to use

# resources:
#   timeout: 10m
#   maxMemory: 2g
";

#[derive(Args, Debug)]
pub(crate) struct Init {
    /// Write the policy of the project, not your own
    #[arg(long)]
    project: bool,
}

impl Init {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let target = if self.project { PolicyTarget::Project } else { PolicyTarget::User };
        let policy = config::free_place(&caller, target)?.with_extension("yaml");
        let directory = policy.parent().context("the policy has no directory")?;
        let schema_text = serde_json::to_string_pretty(&schema())?;
        config::write(&directory.join(SCHEMA), &schema_text)?;
        config::write(&policy, STARTER)?;
        output::print_lines([format!(
            "created {}; it changes nothing until you edit it",
            policy.display()
        )])?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::{SCHEMA, STARTER};

    fn uncommented() -> String {
        let lines = STARTER.lines().skip(2);
        lines.map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect()
    }

    /// Proves: POL-5 init
    #[test]
    fn the_starter_changes_nothing_and_is_right_without_its_marks() {
        let starter = palisade_policy::load(STARTER, "starter").unwrap();
        assert!(starter.warnings.is_empty());
        palisade_policy::load(&uncommented(), "starter").unwrap();
        assert_eq!(
            STARTER.lines().next().unwrap(),
            format!("# yaml-language-server: $schema=./{SCHEMA}")
        );
    }
}
