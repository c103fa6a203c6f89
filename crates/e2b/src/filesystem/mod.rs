//! The service `filesystem.Filesystem` of E2B's server in a sandbox: what is known about paths, what is done with names, and what
//! happens in directories. All of it is done by a process of the sandbox, under the plan that its commands obey.

mod model;
mod names;
mod watch;
mod watchers;

use crate::face::Shared;
use axum::Router;
use axum::routing::post;

pub(crate) fn routes(face: Shared) -> Router {
    let path = |procedure: &str| format!("/filesystem.Filesystem/{procedure}");
    Router::new()
        .route(&path("Stat"), post(names::stat))
        .route(&path("ListDir"), post(names::list_directory))
        .route(&path("MakeDir"), post(names::make_directory))
        .route(&path("Move"), post(names::rename))
        .route(&path("Remove"), post(names::remove))
        .route(&path("WatchDir"), post(watch::watch))
        .route(&path("CreateWatcher"), post(watchers::create))
        .route(&path("GetWatcherEvents"), post(watchers::events))
        .route(&path("RemoveWatcher"), post(watchers::remove))
        .with_state(face)
}
