//! The content of files, and whether a sandbox is there: the endpoints of E2B's server in a sandbox that are no procedures.

use crate::access;
use crate::error::ApiError;
use crate::face::Shared;
use crate::multipart::{self, Form};
use crate::paths::{self, resolve};
use crate::store::KeptSandbox;
use axum::Router;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use palisade_service::{Content, NEW_FILE, Problem, drain_later};
use palisade_session::files::{Client, IfExists, WriteOptions};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Of one form.
const MAX_FILES: usize = 1000;

pub(crate) fn routes(face: Shared) -> Router {
    Router::new()
        .route("/files", get(read).post(write))
        .route("/health", get(health))
        .with_state(face)
}

async fn health(State(face): State<Shared>, request: Request) -> Result<StatusCode, ApiError> {
    face.living_or_gone(access::sandbox_of(&face, &request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize)]
struct FileQuery {
    path: Option<String>,
    #[serde(default)]
    username: String,
}

impl FileQuery {
    async fn of(parts: &mut Parts) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, &()).await;
        let Query(query): Query<Self> =
            query.map_err(|error| ApiError::invalid(error.body_text()))?;
        access::check_user(&query.username)?;
        Ok(query)
    }
}

async fn read(State(face): State<Shared>, request: Request) -> Result<Response, ApiError> {
    let sandbox = face.living_or_gone(access::sandbox_of(&face, &request)).await?;
    let (mut parts, _) = request.into_parts();
    let query = FileQuery::of(&mut parts).await?;
    let path = resolve(&sandbox, &query.path.unwrap_or_default());
    let range = parts.headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    Ok(face.host.read_content(&sandbox.id, path, range.map(str::to_owned)).await?)
}

/// How the content of files comes.
enum Upload {
    /// As it is.
    One(PathBuf),
    /// In a form. The path of the request counts before the names in it.
    Form { boundary: String, path: Option<PathBuf> },
}

fn upload(
    sandbox: &KeptSandbox,
    query: &FileQuery,
    headers: &HeaderMap,
) -> Result<Upload, ApiError> {
    if headers.keys().any(|name| name.as_str().starts_with("x-metadata-")) {
        return Err(ApiError::unsupported("metadata of files"));
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::unsupported("compressed content"));
    }
    let path = query.path.as_deref().map(|path| resolve(sandbox, path));
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let given = given.unwrap_or_default();
    if let Some(boundary) = multipart::boundary(given) {
        return Ok(Upload::Form { boundary, path });
    }
    match path {
        Some(path) if given.starts_with("application/octet-stream") => Ok(Upload::One(path)),
        Some(_) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send multipart/form-data or application/octet-stream",
        )),
        None => Err(ApiError::invalid("path: missing")),
    }
}

async fn write(State(face): State<Shared>, request: Request) -> Result<Response, ApiError> {
    let id = access::sandbox_of(&face, &request);
    let (mut parts, body) = request.into_parts();
    let begun = async {
        let sandbox = face.living_or_gone(id).await?;
        let query = FileQuery::of(&mut parts).await?;
        let upload = upload(&sandbox, &query, &parts.headers)?;
        Ok::<_, ApiError>((sandbox, upload))
    };
    let (sandbox, upload) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            drain_later(body.into_data_stream());
            return Err(error);
        }
    };
    let content = Content::of(body, face.host.client_timeout());
    let id = sandbox.id.clone();
    let written = face.host.with_files(&id, move |files| match upload {
        Upload::One(path) => {
            let mut content = content;
            let written = write_one(files, &sandbox, &path, &mut content);
            match content.problem {
                Some(problem) => Err(problem),
                None => Ok(vec![written?]),
            }
        }
        Upload::Form { boundary, path } => {
            let mut form = Form::new(content, &boundary);
            let written = write_form(files, &sandbox, &mut form, path.as_deref());
            match form.into_inner().problem {
                Some(problem) => Err(problem),
                None => written,
            }
        }
    });
    let body = Value::from(written.await?).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn write_one(
    files: &mut Client,
    sandbox: &KeptSandbox,
    path: &Path,
    content: &mut dyn Read,
) -> Result<Value, Problem> {
    let options = WriteOptions { if_exists: IfExists::Replace, make_parents: true, mode: NEW_FILE };
    files.write(path, content, options)?;
    Ok(json!({ "name": paths::name(path), "path": paths::shown(sandbox, path), "type": "file" }))
}

fn write_form(
    files: &mut Client,
    sandbox: &KeptSandbox,
    form: &mut Form<Content>,
    path: Option<&Path>,
) -> Result<Vec<Value>, Problem> {
    let malformed = |error: std::io::Error| Problem::malformed(format!("the form: {error}"));
    let mut written = Vec::new();
    while let Some((head, mut content)) = form.next_part().map_err(malformed)? {
        if head.name != "file" {
            continue;
        }
        let named = head.file_name.filter(|name| !name.is_empty());
        let place = match (path, named) {
            // One path is for one file.
            (Some(_), _) if !written.is_empty() => {
                return Err(Problem::malformed("path: there are several files in the form"));
            }
            (Some(path), _) => path.to_owned(),
            (None, Some(name)) => resolve(sandbox, &name),
            (None, None) => return Err(Problem::malformed("a file has no name")),
        };
        if written.len() == MAX_FILES {
            return Err(Problem::too_large(format!("at most {MAX_FILES} files at once")));
        }
        written.push(write_one(files, sandbox, &place, &mut content)?);
    }
    match written.is_empty() {
        true => Err(Problem::malformed("there is no file in the form")),
        false => Ok(written),
    }
}
