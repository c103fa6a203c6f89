//! `sandbox apply`: brings what a session changed to its project.

use super::{patch, waiting};
use crate::closing::counted;
use crate::output;
use clap::Args;
use palisade_session::Caller;
use palisade_session::config::PolicyRequest;
use palisade_session::transaction::changes::{
    Applied, Held, OnConflict, OnRefused, Outcome, Recovery, Selection, quoted,
};
use palisade_session::transaction::{ApplyOptions, SessionProcesses, WaitingChanges};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
All changes are applied, or none. Nothing is applied if a file changed on the host meanwhile, or if the host would later run
what was written: git hooks, editor and shell settings. Set-user-id bits are removed. Devices, FIFOs, sockets, and links that
leave the project are refused. An apply that is interrupted is finished or undone by the next one.

Without a session, the newest one is meant that has changes in this directory's project. The exit code is 1 if something
stands in the way.

Examples:
  sandbox apply
  sandbox apply --dry-run work
  sandbox apply work -- src Makefile        only these
  sandbox apply --patch                     choose parts one by one
  sandbox apply --checkpoint 2 work         the state that was kept as number 2
  sandbox apply --merge work                where a file changed on the host, too
  sandbox apply --skip-refused work         everything but what is refused";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Apply {
    /// Apply nothing; say what stands in the way
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Choose files and parts of files one by one
    #[arg(long, short, conflicts_with_all = ["paths", "json", "dry_run"])]
    patch: bool,

    /// Where a file changed on the host, too, take the session's version
    #[arg(long)]
    force: bool,

    /// Where a file changed on the host, too, keep that version
    #[arg(long, conflicts_with = "force")]
    ours: bool,

    /// Where a file changed on the host, too, merge both by the version in git
    ///
    /// The common version is the one in the commit that was checked out when the transaction started. Nothing is applied if
    /// both changed the same lines, or if the file was not in that commit.
    #[arg(long, conflicts_with_all = ["force", "ours"])]
    merge: bool,

    /// Apply the rest if something is refused
    #[arg(long)]
    skip_refused: bool,

    /// Apply a checkpoint, whatever the session has changed since
    ///
    /// A session that runs goes on changing its files. `sandbox diff SESSION 0..N` shows what a checkpoint has, and this
    /// applies exactly that.
    #[arg(long, value_name = "N")]
    checkpoint: Option<u32>,

    /// Print what was applied, or what stands in the way, as JSON
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: Option<String>,

    /// Only these paths of the project, and what is below them
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<PathBuf>,
}

impl Apply {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let waiting = waiting(self.sid.as_deref())?;
        match waiting.recover()? {
            Recovery::Nothing => {}
            Recovery::Finished => output::note("an interrupted apply was finished"),
            Recovery::Undone => output::note("an interrupted apply was undone"),
        }
        let waiting = match self.checkpoint {
            Some(number) => waiting.at_checkpoint(number)?,
            None => waiting,
        };
        let caller = Caller::here()?;
        let judge = waiting.judge(&caller, &PolicyRequest::default())?;
        let selection = match self.patch {
            true => match patch::choose(&waiting)? {
                Some(chosen) => chosen,
                None => {
                    output::note("nothing was chosen, and nothing applied");
                    return Ok(ExitCode::SUCCESS);
                }
            },
            false if self.paths.is_empty() => Selection::all(),
            false => Selection::paths(&self.paths),
        };
        let committed = waiting.committed();
        let options = ApplyOptions {
            selection,
            is_all: !self.patch && self.paths.is_empty(),
            on_conflict: match (self.force, self.ours, self.merge) {
                (true, ..) => OnConflict::Force,
                (_, true, _) => OnConflict::KeepHost,
                (.., true) => OnConflict::Merge(&committed),
                _ => OnConflict::Refuse,
            },
            on_refused: match self.skip_refused {
                true => OnRefused::ApplyRest,
                false => OnRefused::ApplyNothing,
            },
            ..ApplyOptions::all(&*judge)
        };
        if self.dry_run {
            let held = waiting.preview(&options)?;
            return self.tell_of_held(&held);
        }
        let is_alive = waiting.directory().is_alive();
        let processes = if is_alive { SessionProcesses::MayRemain } else { SessionProcesses::Gone };
        match waiting.apply(&caller.places, &options, processes)? {
            Outcome::Held(held) => self.tell_of_held(&held),
            Outcome::Applied(applied) => {
                self.tell_of_applied(&applied)?;
                clean_up(waiting, is_alive, self.checkpoint)?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn tell_of_held(&self, held: &Held) -> anyhow::Result<ExitCode> {
        let is_held =
            !held.conflicts.is_empty() || (!held.refused.is_empty() && !self.skip_refused);
        let code = ExitCode::from(u8::from(is_held));
        if self.json {
            output::print_json(held)?;
            return Ok(code);
        }
        let refused = held.refused.iter().map(|it| line(&it.path, &it.reason.to_string()));
        let conflicts = held.conflicts.iter().map(|it| line(&it.path, &it.reason.to_string()));
        output::print_lines(conflicts.chain(refused))?;
        if is_held {
            output::note("nothing was applied");
        }
        if !held.conflicts.is_empty() {
            output::note(
                "--force takes the session's version of such files, --ours the host's, --merge both where they fit together",
            );
        }
        if is_held && !held.refused.is_empty() {
            output::note("--skip-refused applies everything but what is refused");
        }
        Ok(code)
    }

    fn tell_of_applied(&self, applied: &Applied) -> anyhow::Result<()> {
        if self.json {
            let path = |path: &PathBuf| path.to_string_lossy().into_owned();
            return output::print_json(&AppliedJson {
                applied: applied.paths.iter().map(|(it, _)| path(it)).collect(),
                refused: applied.refused.iter().map(|it| path(&it.path)).collect(),
                kept: applied.kept.iter().map(|it| path(&it.path)).collect(),
            });
        }
        let refused = applied.refused.iter().map(|it| line(&it.path, &it.reason.to_string()));
        let kept = applied.kept.iter().map(|it| line(&it.path, &it.reason.to_string()));
        output::print_lines(refused.chain(kept))?;
        let changes = counted(applied.paths.len() as u64, "change");
        let left = applied.refused.len() + applied.kept.len();
        output::note(&match left {
            0 => format!("applied {changes}"),
            left => format!("applied {changes}; {left} were left out"),
        });
        Ok(())
    }
}

#[derive(Serialize)]
struct AppliedJson {
    applied: Vec<String>,
    refused: Vec<String>,
    kept: Vec<String>,
}

fn line(path: &Path, reason: &str) -> String {
    format!("{}: {reason}", quoted(path))
}

/// Nothing is kept of a session that has nothing left to apply. After a checkpoint was applied, other checkpoints and the rest
/// of that one count as well, as for `sandbox rm`.
fn clean_up(
    waiting: WaitingChanges,
    is_alive: bool,
    checkpoint: Option<u32>,
) -> anyhow::Result<()> {
    if is_alive {
        return Ok(());
    }
    // What was moved is not seen through what was opened before.
    let Some(waiting) = waiting.reopen()? else { return Ok(()) };
    let is_done = waiting.scan()?.is_empty()
        && (checkpoint.is_none() || waiting.unapplied_checkpoints()? == 0);
    match is_done {
        true => Ok(waiting.remove()?),
        false => Ok(()),
    }
}
