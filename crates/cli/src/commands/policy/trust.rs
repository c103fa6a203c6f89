//! `sandbox policy trust`: shows what a project's file would loosen, asks, and remembers its content.

use super::changes;
use crate::output;
use anyhow::{Context, bail};
use clap::Args;
use palisade_policy::{Trust as Standing, diff};
use palisade_session::config::{self, DocumentFile, PolicyRequest, Supposing};
use palisade_session::{Caller, SessionError, TrustStore};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// A project's directory; the one you are in if left out
    project: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["revoke", "yes", "project"])]
    list: bool,
    /// Do not ask; for scripts
    #[arg(long, short)]
    yes: bool,
    /// With --list: print it as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

impl Trust {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        let mut store = TrustStore::load(&caller.places)?;
        if self.list {
            return list(&store, self.json);
        }
        let request = PolicyRequest { project: self.project, ..PolicyRequest::default() };
        let Some(file) = config::project_document(&caller, &request)? else {
            bail!("this project has no policy of its own (.palisade/policy.yaml)");
        };
        let shown = file.path.display();
        if self.revoke {
            if !store.revoke(&file.path) {
                bail!("{shown} was not trusted");
            }
            store.save(&caller.places)?;
            return output::print(&format!("{shown} is not trusted any more"));
        }
        if store.is_trusted(&file.path, &file.text) {
            return output::print(&format!("{shown} is trusted already, as it is now"));
        }
        output::print(&what_it_does(&caller, &request)?)?;
        if !self.yes && !confirmed(&file)? {
            bail!("{shown} stays untrusted");
        }
        // What was shown is what is trusted: the file may have changed while the question stood.
        let now = config::project_document(&caller, &request)?;
        if now.is_none_or(|now| now.text != file.text) {
            bail!("{shown} changed meanwhile; look again");
        }
        store.trust(&file.path, &file.text);
        store.save(&caller.places)?;
        output::print(&format!("{shown} is trusted until it changes"))
    }
}

fn what_it_does(caller: &Caller, request: &PolicyRequest) -> anyhow::Result<String> {
    let load =
        |standing| config::load_supposing(caller, request, Some(&Supposing::Project(standing)));
    let before = load(Standing::Untrusted)?;
    let after = match load(Standing::Trusted) {
        Ok(after) => after,
        Err(SessionError::Policy(complaints)) => {
            return Ok(complaints.iter().map(changes::refusal).collect());
        }
        Err(other) => return Err(other.into()),
    };
    let changes = changes::lines(&diff(&before.merged, &after.merged));
    Ok(if changes.is_empty() {
        "trusting it changes nothing now: it only tightens\n".to_owned()
    } else {
        format!("trusting it would change:\n{changes}")
    })
}

fn confirmed(file: &DocumentFile) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nobody to ask: standard input is not a terminal; pass --yes");
    }
    let mut stderr = io::stderr();
    write!(stderr, "trust {}? [y/N] ", file.path.display())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("can not read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn list(store: &TrustStore, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let entries: Vec<_> = store
            .entries()
            .map(|(path, digest)| json!({ "path": path, "sha256": digest }))
            .collect();
        return output::print_json(&entries);
    }
    let entries = store.entries().map(|(path, digest)| format!("{digest}  {}\n", path.display()));
    let lines: String = entries.collect();
    output::print(if lines.is_empty() { "nothing is trusted" } else { &lines })
}
