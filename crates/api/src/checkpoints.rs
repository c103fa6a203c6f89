//! Kept states of a sandbox's project: made, listed, brought back, and begun with by another sandbox.

use crate::builder::{Ask, CREATE_PATIENCE};
use crate::error::Result;
use crate::program::Call;
use crate::sandbox::Sandbox;
use serde::Deserialize;

/// A kept state of a sandbox's project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Checkpoint {
    /// Counted from 1. 0 is the project without changes.
    pub number: u32,
    /// As in RFC 3339.
    pub created_at: String,
    /// Why it was kept.
    pub reason: CheckpointReason,
    /// What it is, for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Files, directories and deletions that differ from the project.
    pub entries: u64,
    /// The length of these files.
    pub bytes: u64,
    /// Whether it outlasts a loss of power by now.
    pub is_on_disk: bool,
}

/// Why a state was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CheckpointReason {
    /// Somebody asked for it.
    Asked,
    /// The sandbox keeps a state before each command.
    BeforeCommand,
    /// The state before a rollback.
    BeforeRollback,
    /// Somebody is asked about it ([`Sandbox::checkpoint_for_review`]).
    ForReview,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What a rollback did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolledBack {
    /// The state that is there now.
    pub checkpoint: u32,
    /// The checkpoint that has the state before: a rollback can be taken back.
    pub kept_as: u32,
}

#[derive(Deserialize)]
struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
}

/// A second sandbox that begins with the changes of another one, from [`Sandbox::fork`]. End with [`Fork::start`].
#[derive(Debug)]
#[must_use = "nothing is made before `start`"]
pub struct Fork<'a> {
    of: &'a Sandbox,
    at: Option<u32>,
    name: Option<String>,
    ask: Ask,
}

impl Fork<'_> {
    /// The checkpoint to begin with; 0 is the project without changes. The present state if nothing is said.
    pub fn at(mut self, checkpoint: u32) -> Self {
        self.at = Some(checkpoint);
        self
    }

    /// Another word for it, unique among those that run.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether its questions wait for an answer. It has everything else from the other sandbox.
    pub fn ask(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// Makes it. It ends when the value is dropped, or this process ends in whatever way; see [`Sandbox::keep`].
    pub fn start(self) -> Result<Sandbox> {
        let call = Call::new(["fork", "--json", "--quiet"])
            .option_if("at", self.at.map(|number| number.to_string()))
            .option_if("name", self.name)
            .within(CREATE_PATIENCE);
        self.of.fork_with(call, self.ask)
    }
}

impl Sandbox {
    /// Keeps the present state of the project. Commands go on meanwhile.
    ///
    /// ```no_run
    /// # use palisade::{Sandbox, Transaction};
    /// let sandbox = Sandbox::create().transaction(Transaction::Overlay).start()?;
    /// let before = sandbox.checkpoint(Some("before the experiment"))?;
    /// sandbox.command("rm -r src").run()?;
    /// sandbox.rollback(before.number)?;
    /// # Ok::<(), palisade::Error>(())
    /// ```
    pub fn checkpoint(&self, message: Option<&str>) -> Result<Checkpoint> {
        let call = Call::new(["checkpoint", "--json"]).option_if("message", message);
        self.core.look(call.word(self.id()))?.json()
    }

    /// The same to show it to somebody, and to apply it if they agree ([`Apply::checkpoint`](crate::Apply::checkpoint)). Only the last
    /// four of this kind are kept, and [`Sandbox::remove`] does not wait for them.
    pub fn checkpoint_for_review(&self) -> Result<Checkpoint> {
        let call = Call::new(["checkpoint", "--json", "--for-review"]);
        self.core.look(call.word(self.id()))?.json()
    }

    /// All that were kept, oldest first.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        let found: Checkpoints =
            self.core.look(Call::new(["checkpoints", "--json", self.id()]))?.json()?;
        Ok(found.checkpoints)
    }

    /// Brings a kept state back. The present one is kept first. An error while commands run.
    pub fn rollback(&self, checkpoint: u32) -> Result<RolledBack> {
        let call = Call::new(["rollback", "--json", self.id()]);
        self.core.look(call.word(checkpoint.to_string()))?.json()
    }

    /// The same; commands that run are killed.
    pub fn rollback_killing(&self, checkpoint: u32) -> Result<RolledBack> {
        let call = Call::new(["rollback", "--json", "--kill", self.id()]);
        self.core.look(call.word(checkpoint.to_string()))?.json()
    }

    /// A second sandbox, with the options of this one and a copy of its changes. From then on neither sees what the other one writes.
    /// Of a sandbox that was attached to, variables ([`Builder::env`](crate::Builder::env)) have the values that this process has.
    pub fn fork(&self) -> Fork<'_> {
        Fork { of: self, at: None, name: None, ask: Ask::default() }
    }
}
