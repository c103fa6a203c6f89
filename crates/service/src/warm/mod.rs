//! Sandboxes that are prepared before a request asks for them (`sandbox serve --warm`). A request whose sandbox would be made with the
//! same words, from the same files, gets one; any other request gets one that is made for it.
//!
//! Must never give a sandbox twice: whoever takes one has it out of the list. One that is not claimed ends with its connection.

mod kinds;
mod prepared;

pub(crate) use prepared::{ClaimTime, ClaimedSandbox, PreparedSandbox};

use crate::sandboxes::NewSandbox;
use crate::service::Shared;
use kinds::{Kind, Kinds};
use palisade_session::supervise::interface::ClaimSandbox;
use prepared::MAX_AGE;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

/// Each has a descriptor of ours.
pub const MAX_WARM: usize = 64;
/// The request that took one uses the processor first.
const REFILL_DELAY: Duration = Duration::from_millis(20);

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
enum Step {
    Prepare(Kind, NewSandbox),
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

    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// The oldest of this kind, which nobody else gets from then on.
    fn take(&self, kind: &Kind) -> Option<PreparedSandbox> {
        let mut state = self.state();
        let at = state.waiting.iter().position(|(of, _)| of == kind)?;
        Some(state.waiting.remove(at).1)
    }

    /// Drops what is not wanted any more, which ends it, and says what is to be done.
    fn step(&self) -> Step {
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
            Some((kind, wanted, _)) => Step::Prepare(kind.clone(), wanted.clone()),
            None => Step::Wait(waiting.iter().map(|(_, prepared)| prepared.made() + MAX_AGE).min()),
        }
    }
}

/// Keeps as many prepared as there are places, one after the other, for as long as the server runs.
pub(crate) async fn keep(service: Shared) {
    let Some(warm) = &service.warm else { return };
    loop {
        match warm.step() {
            Step::Prepare(kind, wanted) => {
                sleep(REFILL_DELAY).await;
                let made = match wanted.invocation(&service) {
                    Ok(create) => PreparedSandbox::make(&service, create, ClaimTime::Later).await,
                    Err(problem) => Err(problem),
                };
                match made {
                    Ok(prepared) => warm.state().waiting.push((kind, prepared)),
                    Err(_) => {
                        service.counters.warm_failed();
                        warm.state().kinds.failed(&kind);
                    }
                }
            }
            Step::Wait(None) => warm.changed.notified().await,
            Step::Wait(Some(until)) => {
                tokio::select! {
                    () = warm.changed.notified() => {}
                    () = sleep_until(until.into()) => {}
                }
            }
        }
    }
}

/// One that was prepared, if there is one like what is wanted.
pub(crate) async fn claim(
    service: &Shared,
    wanted: &NewSandbox,
    is_temporary: bool,
) -> Option<ClaimedSandbox> {
    let warm = service.warm.as_ref()?;
    let kind = Kind::of(wanted)?;
    let claim = ClaimSandbox { name: wanted.name.clone(), is_temporary };
    let mut claimed = None;
    while let Some(mut prepared) = warm.take(&kind) {
        // What is not current, or has died, is dropped.
        if !prepared.is_current().await {
            continue;
        }
        match prepared.claim(&claim).await {
            Ok(()) => {
                claimed = Some(prepared.into_claimed());
                break;
            }
            // A name that cannot be had: making the sandbox in the usual way says why.
            Err(_) if claim.name.is_some() => break,
            Err(_) => {}
        }
    }
    {
        let kinds = &mut warm.state().kinds;
        match claimed {
            Some(_) => kinds.hit(&kind),
            None => kinds.missed(&kind, wanted),
        }
    }
    service.counters.warm_asked(claimed.is_some());
    warm.changed.notify_one();
    claimed
}
