//! `sandbox policy trust`: shows what a file that commands could have written would loosen, asks, and remembers its
//! content.

use super::changes;
use crate::output;
use anyhow::{Context, bail};
use clap::Args;
use palisade_policy::{Trust as Standing, diff};
use palisade_record::escape;
use palisade_session::config::{self, DocumentFile, PolicyRequest, Supposing};
use palisade_session::{Caller, SessionError, TrustStore};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// A project's directory, or a policy file in it [default: the current project]
    project: Option<PathBuf>,
    /// Stop trusting it
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["revoke", "yes", "project"])]
    list: bool,
    /// Do not ask; for scripts
    #[arg(long, short)]
    yes: bool,
    /// With --list: print JSON
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
        let trusted = Trusted::of(&caller, self.project)?;
        let file = trusted.read(&caller)?;
        let shown = file.path.display();
        if self.revoke {
            if !store.revoke(&file.path) {
                bail!("{shown} was not trusted");
            }
            store.save(&caller.places)?;
            return output::print_lines([format!("{shown} is no longer trusted")]);
        }
        if store.is_trusted(&file.path, &file.text) {
            return output::print_lines([format!("{shown} is already trusted")]);
        }
        output::print(&trusted.what_it_does(&caller)?)?;
        if !self.yes && !confirmed(&file)? {
            bail!("{shown} is still not trusted");
        }
        // What was shown is what is trusted: the file may have changed while the question stood.
        if trusted.read(&caller).map_or(true, |now| now.text != file.text) {
            bail!("{shown} changed in the meantime; read it again");
        }
        store.trust(&file.path, &file.text);
        store.save(&caller.places)?;
        output::print_lines([format!("{shown} is trusted until it changes")])
    }
}

/// What is to be trusted.
enum Trusted {
    /// The project's own policy.
    Project(PolicyRequest),
    /// One in the user's place.
    File(PathBuf, PolicyRequest),
}

impl Trusted {
    fn of(caller: &Caller, named: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = named.as_ref().filter(|path| path.is_file()) else {
            return Ok(Self::Project(PolicyRequest { project: named, ..PolicyRequest::default() }));
        };
        let path = std::path::absolute(path)?;
        let is_projects = config::project_document(caller, &PolicyRequest::default())
            .ok()
            .flatten()
            .is_some_and(|file| path.canonicalize().is_ok_and(|path| path == file.path));
        if is_projects {
            return Ok(Self::Project(PolicyRequest::default()));
        }
        if !config::could_be_written(caller, &path) {
            bail!("{} needs no trust: no sandbox can write to it", path.display());
        }
        // The user's own is read anyway.
        let is_own = path.starts_with(&caller.places.user);
        let files = if is_own { Vec::new() } else { vec![path.clone()] };
        Ok(Self::File(path, PolicyRequest { files, ..PolicyRequest::default() }))
    }

    fn read(&self, caller: &Caller) -> anyhow::Result<DocumentFile> {
        match self {
            Self::File(path, _) => Ok(config::read(path)?),
            Self::Project(request) => match config::project_document(caller, request)? {
                Some(file) => Ok(file),
                None => bail!("this project has no policy file (.palisade/policy.yaml)"),
            },
        }
    }

    fn what_it_does(&self, caller: &Caller) -> anyhow::Result<String> {
        let load = |standing| {
            let (request, supposing) = match self {
                Self::Project(request) => (request, Supposing::Project(standing)),
                Self::File(_, request) => (request, Supposing::Writable(standing)),
            };
            config::load_supposing(caller, request, Some(&supposing))
        };
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
            "trusting it changes nothing: it only tightens the policy\n".to_owned()
        } else {
            format!("trusting it would change:\n{changes}")
        })
    }
}

fn confirmed(file: &DocumentFile) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("cannot ask: standard input is not a terminal; use --yes");
    }
    let path = file.path.to_string_lossy();
    output::question(&format!("trust {}? [y/N] ", escape::text(&path)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
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
    let entries = store.entries().map(|(path, digest)| format!("{digest}  {}", path.display()));
    let lines: Vec<String> = entries.collect();
    if lines.is_empty() { output::print("nothing is trusted") } else { output::print_lines(lines) }
}
