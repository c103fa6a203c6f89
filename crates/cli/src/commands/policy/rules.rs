//! `sandbox policy rules` and `forget`: what was decided for good, and how to take it back.

use crate::output;
use clap::Args;
use palisade_session::Caller;
use palisade_session::stores::{SavedRule, Stores};

#[derive(Args, Debug)]
pub(crate) struct Rules {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Forget {
    /// The number that `sandbox policy rules` shows
    #[arg(value_parser = rule_number)]
    number: usize,
    /// Print what was removed as JSON
    #[arg(long)]
    json: bool,
}

fn rule_number(text: &str) -> Result<usize, String> {
    let why = "not the number of a rule; `sandbox policy rules` lists them";
    text.parse().map_err(|_| why.to_owned())
}

impl Rules {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let rules = Stores::new(&Caller::here()?).rules()?;
        if self.json {
            return output::print_json(&rules);
        }
        if rules.is_empty() {
            return output::print("no rule is saved");
        }
        let width = rules.len().to_string().len();
        let lines = rules.iter().map(|rule| format!("{:>width$}  {}", rule.number, line(rule)));
        output::print_lines(lines)
    }
}

impl Forget {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let forgotten = Stores::new(&Caller::here()?).forget(self.number)?;
        if self.json {
            return output::print_json(&forgotten);
        }
        output::print_lines([format!("forgotten: {}", line(&forgotten))])
    }
}

/// `allow /srv/x  (user, FILE:3, 2026-01-31 by terminal)`.
fn line(rule: &SavedRule) -> String {
    let SavedRule { layer, file, entry, counts, .. } = rule;
    let at = entry.at.map(|at| format!(", {}", at.strftime("%Y-%m-%d %H:%M"))).unwrap_or_default();
    let by = entry.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let by = if at.is_empty() && !by.is_empty() { format!(",{by}") } else { by };
    let counts = if *counts { "" } else { ", not trusted: does not count" };
    format!("{}  ({layer}, {}:{}{at}{by}{counts})", entry.what, file.display(), entry.line)
}
