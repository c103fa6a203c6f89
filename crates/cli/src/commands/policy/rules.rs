//! `sandbox policy rules` and `forget`: permanent rules, and how to remove them.

use crate::output;
use clap::Args;
use palisade_session::Caller;
use palisade_session::stores::{SavedRule, Stores};

#[derive(Args, Debug)]
pub(crate) struct Rules {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const DETAILS: &str = "\
Write a path or host as `sandbox policy rules` shows it; `~/` is the home directory. Numbers refer to the list before \
anything is removed. If an argument matches no rule, or more than one, nothing is removed. Everything else in the files \
stays unchanged.

Examples:
  sandbox policy forget ~/data/x
  sandbox policy forget '/srv/data/**' example.org:443
  sandbox policy forget 2 5";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Forget {
    /// Rules to remove: each a path, a host, or a number in `sandbox policy rules`
    #[arg(id = "rules", value_name = "RULE", required = true)]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Rules {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let rules = Stores::new(&Caller::here()?).rules()?;
        if self.json {
            return output::print_json(&rules);
        }
        if rules.is_empty() {
            return output::print("no rules are saved");
        }
        let width = rules.len().to_string().len();
        let lines = rules.iter().map(|rule| format!("{:>width$}  {}", rule.number, line(rule)));
        output::print_lines(lines)
    }
}

impl Forget {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let forgotten = Stores::new(&Caller::here()?).forget(&self.names)?;
        if self.json {
            return output::print_json(&forgotten);
        }
        output::print_lines(forgotten.iter().map(|rule| format!("removed: {}", line(rule))))
    }
}

/// `allow /srv/x  (user, FILE:3, 2026-01-31 by terminal)`.
fn line(rule: &SavedRule) -> String {
    let SavedRule { layer, file, entry, counts, .. } = rule;
    let at = entry.at.map(|at| format!(", {}", at.strftime("%Y-%m-%d %H:%M"))).unwrap_or_default();
    let by = entry.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let by = if at.is_empty() && !by.is_empty() { format!(",{by}") } else { by };
    let counts = if *counts { "" } else { ", not trusted: ignored" };
    format!("{}  ({layer}, {}:{}{at}{by}{counts})", entry.what, file.display(), entry.line)
}
