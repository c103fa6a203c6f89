//! `sandbox diff`: what a session changed in its project.

use super::state_range::StateRange;
use super::waiting;
use crate::closing::counted;
use crate::output;
use clap::Args;
use palisade_session::transaction::changes::{
    self, ChangesError, RenderOptions, Selection, write_name_status, write_names, write_stat,
    write_unified,
};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

const DETAILS: &str = "\
Without a session, the newest one is meant that has changes in this directory's project. The output is that of `git diff`,
and can be applied with `git apply`. Changes in `.git` are counted and not shown.

With STATES, what changed between two checkpoints: 2..5, or 2.. for everything since checkpoint 2 (2 means the same), or ..5 for
everything up to checkpoint 5. 0 is the project without changes.

Examples:
  sandbox diff
  sandbox diff --stat work
  sandbox diff work -- src          only what is below src
  sandbox diff work 2..             what changed since checkpoint 2";

/// What git keeps for itself says little to people, and there is much of it.
const GIT: &str = ".git";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Diff {
    /// Show how many lines of each file changed
    #[arg(long, conflicts_with_all = ["name_only", "name_status", "json"])]
    stat: bool,

    /// Show changes in .git as well
    #[arg(long)]
    git: bool,

    /// Show only the names of changed files
    #[arg(long, conflicts_with_all = ["name_status", "json"])]
    name_only: bool,

    /// Show the names, and what became of each
    #[arg(long, conflicts_with = "json")]
    name_status: bool,

    /// Print the changes as JSON
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: Option<String>,

    /// Two checkpoints, such as 2..5; by default, what the session changed so far
    #[arg(value_name = "STATES")]
    states: Option<StateRange>,

    /// Only these paths of the project, and what is below them
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<PathBuf>,
}

impl Diff {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let waiting = waiting(self.sid.as_deref())?;
        let compared;
        let (layers, mut set) = match self.states {
            None => (waiting.layers(), waiting.scan()?),
            Some(StateRange { from, to }) => {
                let (layers, set) = waiting.between(from, to)?;
                compared = layers;
                (&compared, set)
            }
        };
        if !self.paths.is_empty() {
            set = Selection::paths(&self.paths).select(set);
        }
        let is_chosen = self.git || self.json || !self.paths.is_empty();
        let all = set.changes().len();
        if !is_chosen {
            set.retain(|change| !change.path.starts_with(GIT));
        }
        let in_git = all - set.changes().len();
        if self.json {
            output::print_json(&set)?;
            return Ok(ExitCode::SUCCESS);
        }
        let is_terminal = io::stdout().is_terminal();
        let colour = is_terminal && output::colour_wanted();
        let options = RenderOptions { colour, to_terminal: is_terminal };
        let mut out = BufWriter::new(io::stdout().lock());
        let written = if self.stat {
            write_stat(layers, &set, colour, &mut out)
        } else if self.name_only {
            write_names(&set, &mut out)
        } else if self.name_status {
            write_name_status(&set, &mut out)
        } else {
            write_unified(layers, &set, options, &mut out)
        };
        match written.and_then(|()| Ok(out.flush()?)) {
            // A reader that has gone away (`| head`) is not an error.
            Err(ChangesError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
        drop(out);
        if in_git > 0 {
            let changes = counted(in_git as u64, "change");
            output::note(&format!("{changes} in .git not shown; show with --git"));
        }
        for directory in set.too_deep() {
            let directory = changes::quoted(directory);
            output::note(&format!("{directory} is too deep to be looked into"));
        }
        Ok(ExitCode::SUCCESS)
    }
}
