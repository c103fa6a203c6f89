//! Sandboxes that are prepared before a request asks for them (`sandbox serve --warm`). A request whose sandbox would be made with the
//! same words, from the same files, gets one; any other request gets one that is made for it.
//!
//! Must never give a sandbox twice: one that is taken is in the list no longer. One that is not claimed ends with its connection.

mod kinds;
mod prepared;

pub(crate) use kinds::Kind;
pub(crate) use prepared::{ClaimedSandbox, PreparedSandbox, make_claimed};

use crate::own_program::Invocation;
use kinds::Kinds;
use prepared::MAX_AGE;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// Each has a descriptor of ours.
pub const MAX_WARM: usize = 64;

#[derive(Debug)]
pub(crate) struct WarmSandboxes {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    kinds: Kinds,
    /// Oldest first.
    waiting: Vec<(Kind, PreparedSandbox)>,
}

/// What is to be done next.
pub(crate) enum Step {
    /// By these words.
    Prepare(Kind, Invocation),
    /// Until something changes, or one has waited for too long.
    Wait(Option<Instant>),
}

impl WarmSandboxes {
    /// None: nothing is prepared.
    pub(crate) fn new(places: usize) -> Option<Self> {
        let state = State { kinds: Kinds::new(places.min(MAX_WARM)), waiting: Vec::new() };
        (places > 0).then(|| Self { state: Mutex::new(state), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All places are for this kind until others are asked for.
    pub(crate) fn begin_with(&self, kind: Kind, create: Invocation) {
        self.state().kinds.begin_with(kind, create);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// The oldest of this kind, which nobody else gets from then on.
    pub(crate) fn take(&self, kind: &Kind) -> Option<PreparedSandbox> {
        let mut state = self.state();
        let at = state.waiting.iter().position(|(of, _)| of == kind)?;
        Some(state.waiting.remove(at).1)
    }

    /// A request got one of this kind.
    pub(crate) fn hit(&self, kind: &Kind) {
        self.state().kinds.hit(kind);
        self.changed.notify_one();
    }

    /// A request found none of this kind, which is made by these words.
    pub(crate) fn missed(&self, kind: &Kind, create: &Invocation) {
        self.state().kinds.missed(kind, create);
        self.changed.notify_one();
    }

    /// What became of a step. None: one of this kind cannot be prepared.
    pub(crate) fn prepared(&self, kind: Kind, prepared: Option<PreparedSandbox>) {
        let mut state = self.state();
        match prepared {
            Some(prepared) => state.waiting.push((kind, prepared)),
            None => state.kinds.failed(&kind),
        }
    }

    /// Returns when there may be another step.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Drops what is not wanted any more, which ends it, and says what is to be done.
    pub(crate) fn step(&self) -> Step {
        let mut state = self.state();
        let State { kinds, waiting } = &mut *state;
        waiting.retain(|(_, prepared)| prepared.made().elapsed() < MAX_AGE);
        let count = |waiting: &[(Kind, PreparedSandbox)], kind: &Kind| {
            waiting.iter().filter(|(of, _)| of == kind).count()
        };
        while let Some(at) =
            waiting.iter().position(|(kind, _)| count(waiting, kind) > kinds.places(kind))
        {
            waiting.remove(at);
        }
        let short = kinds.shares().find(|(kind, _, places)| count(waiting, kind) < *places);
        match short {
            Some((kind, create, _)) => Step::Prepare(kind.clone(), create.clone()),
            None => Step::Wait(waiting.iter().map(|(_, prepared)| prepared.made() + MAX_AGE).min()),
        }
    }
}
