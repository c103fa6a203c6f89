//! Watched directories whose changes a client comes for: E2B's Python client does when it is not asynchronous. They end with the server, with
//! their sandbox, or when nobody comes.

use super::watch::{WatchMessage, Watching};
use crate::connect::{Call, unary};
use crate::error::{Code, RpcError};
use crate::face::Shared;
use crate::watched::{MAX_WATCHERS, Watcher};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

pub(super) async fn create(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: WatchMessage| async move {
        if face.watchers.lock().len() >= MAX_WATCHERS {
            let what = format!("{MAX_WATCHERS} directories are watched; stop one");
            return Err(RpcError::new(Code::ResourceExhausted, what));
        }
        let watching = Watching::begin(&face, &sandbox, &message).await?;
        let id = Uuid::now_v7().to_string();
        let (end, ended) = oneshot::channel();
        face.watchers.lock().insert(id.clone(), Watcher::new(sandbox.id, end));
        tokio::spawn(collect(Arc::clone(&face), id.clone(), watching, ended));
        Ok(json!({ "watcherId": id }))
    })
    .await
}

async fn collect(
    face: Shared,
    id: String,
    mut watching: Watching,
    mut ended: oneshot::Receiver<()>,
) {
    while let Some(forgotten_at) = face.watchers.forgotten_at(&id) {
        tokio::select! {
            change = watching.changes.recv() => match change {
                Some(event) => face.watchers.push(&id, json!(event)),
                None => break,
            },
            () = sleep_until(forgotten_at) => {
                // Somebody may have come meanwhile.
                if face.watchers.forgotten_at(&id).is_some_and(|at| at <= Instant::now()) {
                    break;
                }
            }
            _ = &mut ended => break,
            () = face.host.stopping() => break,
        }
    }
    face.watchers.lock().remove(&id);
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WatcherMessage {
    #[serde(default)]
    watcher_id: String,
}

fn no_watcher(id: &str) -> RpcError {
    RpcError::new(Code::NotFound, format!("watcher with id {id} not found"))
}

pub(super) async fn events(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: WatcherMessage| async move {
        let events = face.watchers.take_events(&sandbox.id, &message.watcher_id);
        let events = events.ok_or_else(|| no_watcher(&message.watcher_id))?;
        Ok(json!({ "events": events }))
    })
    .await
}

pub(super) async fn remove(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: WatcherMessage| async move {
        let mut all = face.watchers.lock();
        if all.get(&message.watcher_id).is_none_or(|watcher| watcher.sandbox != sandbox.id) {
            return Err(no_watcher(&message.watcher_id));
        }
        all.remove(&message.watcher_id);
        Ok(json!({}))
    })
    .await
}
