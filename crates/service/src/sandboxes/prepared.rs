//! Sandboxes that are prepared for requests (`sandbox serve --warm`): which request gets one, and who makes the next.

use super::new_sandbox::NewSandbox;
use crate::caller_span::CallerSpan;
use crate::service::Shared;
use crate::warm::{ClaimedSandbox, PreparedSandbox, Step};
use palisade_session::supervise::interface::ClaimSandbox;
use std::time::Duration;
use tokio::time::{sleep, sleep_until};

/// The request that took one uses the processor first.
const REFILL_DELAY: Duration = Duration::from_millis(20);

/// Keeps as many prepared as there are places, one after the other, for as long as the server runs.
pub(crate) async fn keep_prepared(service: Shared) {
    let Some(warm) = &service.warm else { return };
    let plain = NewSandbox::default();
    if let (Some(kind), Ok(create)) = (plain.kind(), plain.invocation(&service)) {
        warm.begin_with(kind, create);
    }
    loop {
        match warm.step() {
            Step::Prepare(kind, create) => {
                sleep(REFILL_DELAY).await;
                let made = PreparedSandbox::make(&service.program, create).await;
                if made.is_err() {
                    service.counters.warm_failed();
                }
                warm.prepared(kind, made.ok());
            }
            Step::Wait(None) => warm.changed().await,
            Step::Wait(Some(until)) => {
                tokio::select! {
                    () = warm.changed() => {}
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
    caller: CallerSpan,
) -> Option<ClaimedSandbox> {
    let warm = service.warm.as_ref()?;
    let kind = wanted.kind()?;
    let name = wanted.name.clone();
    let mut claim = ClaimSandbox { name, is_temporary, ..ClaimSandbox::default() };
    caller.put_in_claim(&mut claim);
    let mut claimed = None;
    while let Some(mut prepared) = warm.take(&kind) {
        // What is not current, or has died, is dropped.
        if !prepared.is_current(wanted.project.as_deref()).await {
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
    service.counters.warm_asked(claimed.is_some());
    if claimed.is_some() {
        warm.hit(&kind);
    } else if let Ok(create) = wanted.unnamed().invocation(service) {
        warm.missed(&kind, &create);
    }
    claimed
}
