//! Recordings of terminals: listed and read.

use crate::extract::{Json, Parameters};
use crate::problem::Problem;
use crate::service::{Service, Shared};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::poll_fn;
use jiff::Timestamp;
use palisade_record::cast::CastReader;
use palisade_session::SessionError;
use palisade_session::run::kept_recordings;
use palisade_session::sessions;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// Those that began last.
const MAX_LISTED: usize = 500;
/// Of a file, read at once.
const PART: usize = 64 << 10;
/// Parts on the way.
const PARTS: usize = 4;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordingsQuery {
    /// Only of this sandbox, by its id.
    sandbox: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordingList {
    /// Newest first, the last 500.
    recordings: Vec<Recording>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recording {
    /// Of the sandbox or the run.
    id: String,
    /// The number of the command; a run has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<u64>,
    /// The name of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The command, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    columns: u16,
    rows: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    bytes: u64,
}

/// One that was found.
struct Kept {
    id: String,
    command: Option<u64>,
    name: Option<String>,
    path: PathBuf,
}

fn kept(service: &Service) -> Result<Vec<Kept>, SessionError> {
    let mut all = Vec::new();
    for (directory, record) in sessions::list(&service.places)? {
        // A session may be removed meanwhile.
        for (command, path) in directory.recorded_commands().unwrap_or_default() {
            let (id, name) = (record.id.clone(), record.name.clone());
            all.push(Kept { id, command: Some(command.0), name, path });
        }
    }
    let of_run = |(path, id)| Kept { id, command: None, name: None, path };
    all.extend(kept_recordings(&service.places)?.into_iter().map(of_run));
    Ok(all)
}

impl Kept {
    /// None: it is not there any more, or it is no recording.
    fn describe(self) -> Option<Recording> {
        let bytes = std::fs::symlink_metadata(&self.path).ok()?.len();
        let header = CastReader::open(&self.path).ok()?.header;
        Some(Recording {
            id: self.id,
            command: self.command,
            name: self.name,
            title: header.title,
            columns: header.width,
            rows: header.height,
            started_at: header.timestamp.and_then(|second| Timestamp::from_second(second).ok()),
            bytes,
        })
    }
}

/// List recordings of terminals
///
/// Of sandboxes and of runs, if they were recorded.
#[utoipa::path(get, path = "/v1/recordings", tag = "recordings", params(RecordingsQuery), responses((status = 200, body = RecordingList)))]
pub(crate) async fn list_recordings(
    State(service): State<Shared>,
    Parameters(query): Parameters<RecordingsQuery>,
) -> Result<Json<RecordingList>, Problem> {
    let recordings = service
        .blocking(move |service| {
            let mut all = kept(service)?;
            all.retain(|kept| query.sandbox.as_ref().is_none_or(|wanted| kept.id == *wanted));
            // Ids sort by time.
            all.sort_by(|a, b| (&b.id, b.command).cmp(&(&a.id, a.command)));
            Ok(all.into_iter().take(MAX_LISTED).filter_map(Kept::describe).collect())
        })
        .await?;
    Ok(Json(RecordingList { recordings }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordingQuery {
    /// The number of the command; a run has none.
    command: Option<u64>,
}

/// Read a recording of a terminal
///
/// An asciicast file, version 2, as it was recorded: it holds whatever the command wrote.
#[utoipa::path(get, path = "/v1/recordings/{id}", tag = "recordings", params(("id" = String, Path, description = "Of the sandbox or the run"), RecordingQuery), responses((status = 200, body = String, content_type = "application/x-asciicast")))]
pub(crate) async fn read_recording(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<RecordingQuery>,
) -> Result<Response, Problem> {
    let place = service.stream_place()?;
    // Only what is listed is opened: the request names no file.
    let found = service
        .blocking(move |service| {
            let is_meant = |kept: &Kept| kept.id == id && kept.command == query.command;
            Ok(kept(service)?.into_iter().find(is_meant))
        })
        .await?;
    let found = found.ok_or_else(|| Problem::not_found("there is no such recording"))?;
    let (to, mut parts) = mpsc::channel::<io::Result<Bytes>>(PARTS);
    // A thread of its own: a client may be slow, and those of the runtime are for what is done at once.
    let sending = std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
        let sent = send_parts(&found.path, &to);
        if let Err(error) = sent {
            // The client sees an answer that ends too early.
            let _ = to.blocking_send(Err(error));
        }
        drop(place);
    });
    sending.map_err(|error| Problem::busy(format!("no thread can be started: {error}")))?;
    let body = poll_fn(move |cx| parts.poll_recv(cx));
    let mut response = Response::new(Body::from_stream(body));
    let content_type = HeaderValue::from_static("application/x-asciicast");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}

fn send_parts(path: &std::path::Path, to: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut file = File::open(path)?;
    loop {
        let mut part = vec![0; PART];
        let count = file.read(&mut part)?;
        part.truncate(count);
        if count == 0 || to.blocking_send(Ok(part.into())).is_err() {
            return Ok(());
        }
    }
}
