//! What is known about a path, and what is done with names.

use super::model::Entry;
use crate::connect::{Call, unary};
use crate::error::{Code, RpcError};
use crate::face::Shared;
use crate::paths::resolve;
use axum::extract::State;
use axum::response::Response;
use palisade_service::Problem;
use palisade_session::files::{Client, FileInfo, FileType};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// Entries of one answer.
const MAX_ENTRIES: usize = 50_000;

#[derive(Debug, Deserialize)]
pub(super) struct PathMessage {
    #[serde(default)]
    path: String,
}

#[derive(Debug, Serialize)]
struct OneEntry {
    entry: Entry,
}

/// None: there is nothing.
fn look(files: &mut Client, path: &Path) -> Result<Option<FileInfo>, Problem> {
    match files.info(path, false).map_err(Problem::from) {
        Ok(info) => Ok(Some(info)),
        Err(problem) if problem.is_not_found() => Ok(None),
        Err(problem) => Err(problem),
    }
}

pub(super) async fn stat(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: PathMessage| async move {
        let id = sandbox.id.clone();
        let path = resolve(&sandbox, &message.path);
        let entry = face.host.with_files(&id, move |files| {
            Ok(Entry::new(&sandbox, &path, &files.info(&path, false)?))
        });
        Ok(OneEntry { entry: entry.await? })
    })
    .await
}

#[derive(Debug, Deserialize)]
pub(super) struct ListMessage {
    #[serde(default)]
    path: String,
    #[serde(default)]
    depth: u32,
}

pub(super) async fn list_directory(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: ListMessage| async move {
        let id = sandbox.id.clone();
        let path = resolve(&sandbox, &message.path);
        let entries = face.host.with_files(&id, move |files| {
            let listed = files.list(&path, message.depth.max(1), MAX_ENTRIES)?;
            let entry = |it: &palisade_session::files::Listing| {
                Entry::new(&sandbox, &path.join(&it.path), &it.info)
            };
            Ok(listed.iter().map(entry).collect::<Vec<_>>())
        });
        Ok(json!({ "entries": entries.await? }))
    })
    .await
}

pub(super) async fn make_directory(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: PathMessage| async move {
        let id = sandbox.id.clone();
        let path = resolve(&sandbox, &message.path);
        let shown = path.clone();
        let made = face.host.with_files(&id, move |files| {
            if let Some(found) = look(files, &path)? {
                return Ok(Err(found.file_type));
            }
            Ok(Ok(Entry::new(&sandbox, &path, &files.make_directory(&path, true)?)))
        });
        match made.await? {
            Ok(entry) => Ok(OneEntry { entry }),
            Err(FileType::Directory) => Err(RpcError::new(
                Code::AlreadyExists,
                format!("directory already exists: {}", shown.display()),
            )),
            Err(_) => Err(RpcError::invalid(format!(
                "path already exists but it is not a directory: {}",
                shown.display()
            ))),
        }
    })
    .await
}

#[derive(Debug, Deserialize)]
pub(super) struct MoveMessage {
    #[serde(default)]
    source: String,
    #[serde(default)]
    destination: String,
}

/// Missing directories on the way to the new name are made, and a file that has it is replaced, as E2B does.
pub(super) async fn rename(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: MoveMessage| async move {
        let id = sandbox.id.clone();
        let from = resolve(&sandbox, &message.source);
        let to = resolve(&sandbox, &message.destination);
        let entry = face.host.with_files(&id, move |files| {
            files.info(&from, false)?;
            if let Some(parent) = to.parent() {
                files.make_directory(parent, true)?;
            }
            Ok(Entry::new(&sandbox, &to, &files.rename(&from, &to, true)?))
        });
        Ok(OneEntry { entry: entry.await? })
    })
    .await
}

/// A directory goes with everything in it. What is not there need not be removed.
pub(super) async fn remove(State(face): State<Shared>, call: Call) -> Response {
    unary(call, |sandbox, message: PathMessage| async move {
        let id = sandbox.id.clone();
        let path = resolve(&sandbox, &message.path);
        let removed = face.host.with_files(&id, move |files| Ok(files.remove(&path, true)?));
        match removed.await {
            Err(problem) if !problem.is_not_found() => Err(problem.into()),
            _ => Ok(json!({})),
        }
    })
    .await
}
