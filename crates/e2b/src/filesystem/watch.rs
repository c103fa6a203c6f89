//! What happens in a directory, as an answer that goes on.

use super::model::{Entry, FileEvent};
use crate::connect::{Answer, Call, WriteAnswer, stream};
use crate::error::{Code, RpcError};
use crate::face::{Face, Shared};
use crate::paths::resolve;
use crate::store::KeptSandbox;
use axum::extract::State;
use axum::response::Response;
use palisade_service::{GivenUp, Problem};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Changes that wait for the client. Then the sandbox's own queue fills.
const WAITING_CHANGES: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WatchMessage {
    path: String,
    recursive: bool,
    include_entry: bool,
}

/// A directory that is watched, until this is dropped.
pub(super) struct Watching {
    pub(super) changes: mpsc::Receiver<FileEvent>,
    work: JoinHandle<Result<(), Problem>>,
    _given_up: GivenUp,
}

impl Watching {
    pub(super) async fn begin(
        face: &Face,
        sandbox: &KeptSandbox,
        message: &WatchMessage,
    ) -> Result<Self, RpcError> {
        let path = resolve(sandbox, &message.path);
        let of = sandbox.clone();
        let (recursive, include_entry) = (message.recursive, message.include_entry);
        let (begun, has_begun) = oneshot::channel();
        let (to, changes) = mpsc::channel(WAITING_CHANGES);
        let (work, given_up) = face
            .host
            .start_with_files(&sandbox.id, move |files| {
                files.watch(&path, recursive)?;
                // Nobody may wait for it any more.
                let _ = begun.send(());
                loop {
                    let (_, change) = files.next_change()?;
                    let Some(mut event) = FileEvent::of(&change) else { continue };
                    if include_entry {
                        let place = path.join(&change.path);
                        // It may be gone already.
                        event.entry =
                            files.info(&place, false).ok().map(|it| Entry::new(&of, &place, &it));
                    }
                    if to.blocking_send(event).is_err() {
                        return Ok(());
                    }
                }
            })
            .await?;
        if has_begun.await.is_err() {
            let failed = work.await.map_err(|error| Problem::internal(error.to_string()))?;
            let failed = failed.err().unwrap_or_else(|| Problem::internal("nothing was watched"));
            return Err(failed.into());
        }
        Ok(Self { changes, work, _given_up: given_up })
    }

    /// After the last change: why there are no more.
    pub(super) async fn problem(self) -> RpcError {
        match self.work.await {
            Ok(Err(problem)) => RpcError::new(Code::Unavailable, problem.detail()),
            _ => RpcError::new(Code::Unavailable, "the directory is watched no more"),
        }
    }
}

struct WatchStream {
    face: Shared,
    watching: Watching,
}

impl WriteAnswer for WatchStream {
    async fn write(self, answer: Answer) {
        let Self { face, mut watching } = self;
        let mut is_there = answer.send(&json!({ "start": {} })).await;
        let outcome = loop {
            if !is_there {
                return;
            }
            tokio::select! {
                change = timeout(answer.keepalive, watching.changes.recv()) => match change {
                    Ok(Some(event)) => is_there = answer.send(&json!({ "filesystem": event })).await,
                    Ok(None) => break Err(watching.problem().await),
                    Err(_) => is_there = answer.send(&json!({ "keepalive": {} })).await,
                },
                () = answer.to.closed() => return,
                () = until(answer.deadline) => {
                    break Err(RpcError::new(Code::DeadlineExceeded, "the time of the watch is over"));
                }
                () = face.host.stopping() => {
                    break Err(RpcError::new(Code::Unavailable, "the server ends"));
                }
            }
        };
        answer.end(outcome).await;
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) async fn watch(State(face): State<Shared>, call: Call) -> Response {
    let shared = Arc::clone(&face);
    stream(&face, call, |sandbox, message: WatchMessage| async move {
        let watching = Watching::begin(&shared, &sandbox, &message).await?;
        Ok(WatchStream { face: shared, watching })
    })
    .await
}
