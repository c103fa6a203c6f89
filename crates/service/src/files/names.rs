//! What is known about a path, and what is done with names.

use super::model::FileDocument;
use super::serving::with_files;
use crate::extract::{Json, Parameters};
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use utoipa::{IntoParams, ToSchema};

/// Entries of one answer.
const MAX_ENTRIES: usize = 50_000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct StatQuery {
    /// From the sandbox's project, unless it begins with a slash.
    path: String,
    /// Say what a link leads to, instead of the link.
    #[serde(default)]
    follow_links: bool,
}

/// Show what is at a path of a sandbox
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files", tag = "files", params(("id" = String, Path, description = "The sandbox"), StatQuery), responses((status = 200, body = FileDocument)))]
pub(crate) async fn stat_file(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<StatQuery>,
) -> Result<Json<FileDocument>, Problem> {
    with_files(&service, &id, move |files| {
        let path = PathBuf::from(query.path);
        let info = files.info(&path, query.follow_links)?;
        Ok(Json(FileDocument::new(&path, &info)))
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// From the sandbox's project, unless it begins with a slash.
    path: String,
    /// How many levels of directories; 1 is the entries of the directory itself.
    #[serde(default = "one")]
    depth: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Entries {
    /// With paths from the directory that was asked for.
    entries: Vec<FileDocument>,
}

/// List a directory of a sandbox
///
/// Links are not followed. More than 50,000 entries are a problem, and so is a path that is no directory.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/entries", tag = "files", params(("id" = String, Path, description = "The sandbox"), ListQuery), responses((status = 200, body = Entries)))]
pub(crate) async fn list_directory(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<ListQuery>,
) -> Result<Json<Entries>, Problem> {
    with_files(&service, &id, move |files| {
        let listed = files.list(query.path.as_ref(), query.depth, MAX_ENTRIES)?;
        Ok(Json(Entries { entries: listed.iter().map(FileDocument::listed).collect() }))
    })
    .await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewDirectory {
    path: String,
    /// Make missing directories on the way, and take one that is there already.
    #[serde(default)]
    make_parents: bool,
}

/// Make a directory in a sandbox
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files/directories", tag = "files", params(("id" = String, Path, description = "The sandbox")), request_body = NewDirectory, responses((status = 201, body = FileDocument)))]
pub(crate) async fn make_directory(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Json(wanted): Json<NewDirectory>,
) -> Result<(StatusCode, Json<FileDocument>), Problem> {
    with_files(&service, &id, move |files| {
        let path = PathBuf::from(wanted.path);
        let info = files.make_directory(&path, wanted.make_parents)?;
        Ok((StatusCode::CREATED, Json(FileDocument::new(&path, &info))))
    })
    .await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renaming {
    from: String,
    to: String,
    /// Replace a file that is there.
    #[serde(default)]
    replace: bool,
}

/// Rename a file or directory of a sandbox
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files/rename", tag = "files", params(("id" = String, Path, description = "The sandbox")), request_body = Renaming, responses((status = 200, body = FileDocument)))]
pub(crate) async fn rename_file(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Json(wanted): Json<Renaming>,
) -> Result<Json<FileDocument>, Problem> {
    with_files(&service, &id, move |files| {
        let to = PathBuf::from(wanted.to);
        let info = files.rename(wanted.from.as_ref(), &to, wanted.replace)?;
        Ok(Json(FileDocument::new(&to, &info)))
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// From the sandbox's project, unless it begins with a slash.
    path: String,
    /// Remove a directory with what is in it.
    #[serde(default)]
    recursive: bool,
}

/// Remove a file or directory of a sandbox
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/files", tag = "files", params(("id" = String, Path, description = "The sandbox"), RemoveQuery), responses((status = 204)))]
pub(crate) async fn remove_file(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<RemoveQuery>,
) -> Result<StatusCode, Problem> {
    with_files(&service, &id, move |files| {
        files.remove(query.path.as_ref(), query.recursive)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
