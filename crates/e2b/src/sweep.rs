//! Removes what is left of sandboxes whose time is over. E2B's are gone then; a session would stay to be looked at.

use crate::face::{Face, Shared};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const PAUSE: Duration = Duration::from_secs(5);
/// A home without a sandbox is one whose sandbox is being made, or was not made.
const UNCLAIMED: Duration = Duration::from_secs(3600);

/// Until the server ends.
pub(crate) async fn sweep_on(face: Shared) {
    loop {
        sweep(&face).await;
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = face.host.stopping() => return,
        }
    }
}

async fn sweep(face: &Face) {
    let all = face.store.list();
    let known: BTreeSet<PathBuf> = all.iter().map(|kept| kept.home.clone()).collect();
    for kept in all {
        // What cannot be looked at or removed now is tried again.
        if let Ok(false) = face.is_alive(&kept.id).await {
            let _ = face.remove(&kept.id).await;
        }
    }
    for home in face.homes.list() {
        if !known.contains(&home) && is_old(&home) {
            let _ = face.homes.remove(&home).await;
        }
    }
}

fn is_old(home: &std::path::Path) -> bool {
    let made = home.parent().unwrap_or(home).symlink_metadata().and_then(|found| found.modified());
    let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
    age.is_some_and(|age| age > UNCLAIMED)
}
