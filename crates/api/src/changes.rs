//! What a sandbox with a transaction changed: shown, applied, discarded. The `sandbox` program does it, as it may be as much as a
//! command liked; this reads what it prints.

use crate::change_set::{Applied, Changes, Held};
use crate::error::{Error, Result};
use crate::program::{Call, WORK_PATIENCE};
use crate::sandbox::Sandbox;
use std::path::PathBuf;

/// What `sandbox apply` ends with if something stands in the way.
const HELD: i32 = 1;

/// What happens where a file changed in the project, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// Nothing is applied.
    #[default]
    Refuse,
    /// The sandbox's version is taken.
    TakeSandbox,
    /// The project's version is kept.
    KeepProject,
    /// Both are merged by the version in git.
    Merge,
}

/// What is applied, and how.
///
/// ```
/// use palisade::{Apply, OnConflict};
///
/// let shown = Apply::checkpoint(2);
/// let part = Apply::all().only(["src", "Makefile"]).on_conflict(OnConflict::Merge);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it describes an apply; `Sandbox::apply` does it"]
pub struct Apply {
    checkpoint: Option<u32>,
    paths: Vec<PathBuf>,
    on_conflict: OnConflict,
    skip_refused: bool,
}

impl Apply {
    /// Everything that the sandbox has changed so far.
    pub fn all() -> Self {
        let (paths, on_conflict) = (Vec::new(), OnConflict::Refuse);
        Self { checkpoint: None, paths, on_conflict, skip_refused: false }
    }

    /// The state that was kept as this checkpoint, whatever the sandbox has changed since. What somebody was shown
    /// ([`Sandbox::diff_between`] 0 and this one) is exactly what is applied.
    pub fn checkpoint(number: u32) -> Self {
        Self { checkpoint: Some(number), ..Self::all() }
    }

    /// Only these paths of the project, and what is below them.
    pub fn only<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// What happens where a file changed in the project, too.
    pub fn on_conflict(mut self, what: OnConflict) -> Self {
        self.on_conflict = what;
        self
    }

    /// Applies the rest if something is refused.
    pub fn skip_refused(mut self) -> Self {
        self.skip_refused = true;
        self
    }

    fn call(&self, sandbox: &str, dry_run: bool) -> Call {
        let call = Call::new(["apply", "--json"])
            .flag("force", self.on_conflict == OnConflict::TakeSandbox)
            .flag("ours", self.on_conflict == OnConflict::KeepProject)
            .flag("merge", self.on_conflict == OnConflict::Merge)
            .flag("skip-refused", self.skip_refused)
            .flag("dry-run", dry_run)
            .option_if("checkpoint", self.checkpoint.map(|number| number.to_string()))
            .word(sandbox)
            .within(WORK_PATIENCE);
        match self.paths.is_empty() {
            true => call,
            false => self.paths.iter().fold(call.word("--"), Call::word),
        }
    }
}

impl Sandbox {
    /// What it changed in its project so far.
    pub fn diff(&self) -> Result<Changes> {
        self.core.changes()
    }

    /// What changed between two checkpoints. 0 is the project without changes.
    pub fn diff_between(&self, from: u32, to: u32) -> Result<Changes> {
        let states = format!("{from}..{to}");
        self.core.look(Call::new(["diff", "--json", self.id(), &states]))?.json()
    }

    /// What it changed in its project so far, as `git diff` shows it. The text has whatever its commands wrote: escape it for a terminal.
    pub fn patch(&self) -> Result<Vec<u8>> {
        self.core.look(Call::new(["diff", self.id()])).map(|answer| answer.stdout)
    }

    /// The same between two checkpoints.
    pub fn patch_between(&self, from: u32, to: u32) -> Result<Vec<u8>> {
        let states = format!("{from}..{to}");
        self.core.look(Call::new(["diff", self.id(), &states])).map(|answer| answer.stdout)
    }

    /// Brings changes to the project: all that are meant, or none. [`Error::Held`] says what stands in the way.
    pub fn apply(&self, what: &Apply) -> Result<Applied> {
        let answer = self.core.program.ask(&what.call(self.id(), false))?;
        match answer.code {
            Some(0) => answer.json(),
            Some(HELD) => Err(Error::Held(Box::new(answer.json()?))),
            _ => Err(answer.error().into_conflict()),
        }
    }

    /// What would stand in the way of an apply. Nothing is applied.
    pub fn preview_apply(&self, what: &Apply) -> Result<Held> {
        let answer = self.core.program.ask(&what.call(self.id(), true))?;
        match answer.code {
            Some(0 | HELD) => answer.json(),
            _ => Err(answer.error().into_conflict()),
        }
    }

    /// Forgets what it changed, and its checkpoints. Only when it has ended; [`Sandbox::rollback`] to 0 does it to one that runs.
    pub fn discard(&self) -> Result<()> {
        let call = Call::new(["discard", self.id()]).within(WORK_PATIENCE);
        self.core.program.done(&call).map(drop).map_err(Error::into_conflict)
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
