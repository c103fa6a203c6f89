//! The content of files, in both directions as it comes: no more than a few parts of it are in memory.

use super::model::{FileDocument, PathQuery, etag, version_of};
use super::serving::{start, with_files};
use crate::documents::FileContent;
use crate::extract::{Json, Parameters};
use crate::limits::{MAX_FILE_BYTES, drain};
use crate::problem::Problem;
use crate::service::Shared;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use palisade_session::files::{FileInfo, IfExists, MAX_CONTENT, WriteOptions};
use serde::Deserialize;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

/// Parts on the way.
const PARTS: usize = 4;
/// Permissions of a new file, less the umask of the sandbox.
pub const NEW_FILE: u32 = 0o666;

/// Read a file of a sandbox
///
/// `Range` takes one range of bytes.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/content", tag = "files", params(("id" = String, Path, description = "The sandbox"), PathQuery), responses((status = 200, body = FileContent, content_type = "application/octet-stream"), (status = 206, body = FileContent, content_type = "application/octet-stream", description = "The range")))]
pub(crate) async fn read_file(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<PathQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted =
        headers.get(header::RANGE).and_then(|range| range.to_str().ok()).map(str::to_owned);
    read_content(&service, &id, query.path.into(), wanted).await
}

/// The content of a file, or the range of it that the header asks for.
pub(crate) async fn read_content(
    service: &Shared,
    id: &str,
    path: PathBuf,
    wanted: Option<String>,
) -> Result<Response, Problem> {
    let (head, has_head) = oneshot::channel::<(FileInfo, Option<ByteRange>)>();
    let (to, mut parts) = mpsc::channel::<io::Result<Bytes>>(PARTS);
    let (work, given_up) = start(service, id, move |files| {
        let (handle, info) = files.open_for_reading(&path)?;
        let range = wanted.and_then(|text| ByteRange::parse(&text, info.size)).transpose()?;
        let ByteRange { mut from, to: end } = range.unwrap_or(ByteRange { from: 0, to: info.size });
        // Nobody may wait for it any more.
        let _ = head.send((info, range));
        while from < end {
            let length = usize::try_from(end - from).unwrap_or(MAX_CONTENT).min(MAX_CONTENT);
            let part = files.read_part(handle, from, length).map_err(io::Error::other);
            let is_last = part.as_ref().is_ok_and(Vec::is_empty) || part.is_err();
            from += part.as_ref().map_or(0, |part| u64::try_from(part.len()).unwrap_or(u64::MAX));
            // A file that has become shorter ends the answer too early, which the client notices.
            if to.blocking_send(part.map(Bytes::from)).is_err() || is_last {
                break;
            }
        }
        Ok(())
    })
    .await?;
    let Ok((info, range)) = has_head.await else {
        let failed = work.await.map_err(|error| Problem::internal(error.to_string()))?;
        return Err(failed.err().unwrap_or_else(|| Problem::internal("nothing was read")));
    };
    let body = poll_fn(move |cx| {
        let _ = &given_up;
        parts.poll_recv(cx)
    });
    let mut response = Response::new(Body::from_stream(body));
    let whole = ByteRange { from: 0, to: info.size };
    let ByteRange { from, to } = range.unwrap_or(whole);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(to - from));
    if let Ok(etag) = HeaderValue::from_str(&etag(&info.version)) {
        headers.insert(header::ETAG, etag);
    }
    if range.is_some()
        && let Ok(text) = HeaderValue::from_str(&format!("bytes {from}-{}/{}", to - 1, info.size))
    {
        headers.insert(header::CONTENT_RANGE, text);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// Bytes from one number to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRange {
    from: u64,
    to: u64,
}

impl ByteRange {
    /// None for what is no single range of bytes: a server may answer it with the whole (RFC 9110, 14.2).
    fn parse(text: &str, size: u64) -> Option<Result<Self, Problem>> {
        let (first, last) = text.strip_prefix("bytes=")?.trim().split_once('-')?;
        let number = |text: &str| text.parse::<u64>().ok();
        let (from, to) = match (first, last) {
            ("", last) => (size.saturating_sub(number(last)?), size),
            (first, "") => (number(first)?, size),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return None;
                }
                (first, last.saturating_add(1).min(size))
            }
        };
        if from >= to {
            return Some(Err(Problem::no_such_range(format!("the file has {size} bytes"))));
        }
        Some(Ok(Self { from, to }))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct WriteQuery {
    /// From the sandbox's project, unless it begins with a slash.
    path: String,
    /// What happens to a file that is there.
    #[param(inline)]
    #[serde(default)]
    if_exists: WhatIfExists,
    /// Make missing directories on the way.
    #[serde(default)]
    make_parents: bool,
    /// Permissions of a new file, in octal; a file that is there keeps its own.
    mode: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhatIfExists {
    #[default]
    Replace,
    /// It is a problem, and the file stays as it is.
    Refuse,
    Append,
}

/// Write a file of a sandbox
///
/// The body is the content. Until all of it is there the file stays as it was. `If-Match` with an etag replaces only that version.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files/content", tag = "files", params(("id" = String, Path, description = "The sandbox"), WriteQuery), request_body(content = FileContent, content_type = "application/octet-stream"), responses((status = 200, body = FileDocument)))]
pub(crate) async fn write_file(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<WriteQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let mode = match query.mode.as_deref().map(|text| u32::from_str_radix(text, 8)) {
        None => NEW_FILE,
        Some(Ok(mode)) if mode <= 0o777 => mode,
        Some(_) => return Err(Problem::invalid("mode: permissions in octal, such as 0644")),
    };
    let if_match = headers.get(header::IF_MATCH).map(|value| value.to_str().map(version_of));
    let if_exists = match (if_match, query.if_exists) {
        (Some(Ok(Some(version))), WhatIfExists::Replace) => IfExists::ReplaceVersion(version),
        (Some(_), _) => {
            return Err(Problem::invalid(
                "If-Match takes one etag, and goes with ifExists=replace only",
            ));
        }
        (None, WhatIfExists::Replace) => IfExists::Replace,
        (None, WhatIfExists::Refuse) => IfExists::Refuse,
        (None, WhatIfExists::Append) => IfExists::Append,
    };
    let mut content = Content::of(body, service.client_timeout);
    let document = with_files(&service, &id, move |files| {
        let path = PathBuf::from(query.path);
        let options = WriteOptions { if_exists, make_parents: query.make_parents, mode };
        let written = files.write(&path, &mut content, options);
        match content.problem {
            Some(problem) => Err(problem),
            None => Ok(FileDocument::new(&path, &written?)),
        }
    })
    .await?;
    Ok(Json(document).into_response())
}

/// The parts of a body, until somebody has enough of it.
async fn forward(body: Body, to: mpsc::Sender<Result<Option<Bytes>, Problem>>, patience: Duration) {
    let mut parts = body.into_data_stream();
    let mut size = 0;
    loop {
        let part = match timeout(patience, parts.next()).await {
            Ok(Some(Ok(part))) => {
                size += u64::try_from(part.len()).unwrap_or(u64::MAX);
                match size > MAX_FILE_BYTES {
                    true => Err(Problem::too_large(format!(
                        "a file may have {} MiB",
                        MAX_FILE_BYTES >> 20
                    ))),
                    false => Ok(Some(part)),
                }
            }
            Ok(Some(Err(error))) => {
                Err(Problem::malformed(format!("the body cannot be read: {error}")))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(Problem::slow(format!(
                "nothing of the body came for {} seconds",
                patience.as_secs()
            ))),
        };
        let is_last = !matches!(part, Ok(Some(_)));
        if to.send(part).await.is_err() {
            return drain(parts).await;
        }
        if is_last {
            return;
        }
    }
}

/// A body as something that is read, on a thread of its own.
#[derive(Debug)]
pub struct Content {
    parts: mpsc::Receiver<Result<Option<Bytes>, Problem>>,
    rest: Bytes,
    /// Why there is no more of it.
    pub problem: Option<Problem>,
}

impl Content {
    /// The parts are forwarded by a task, which waits for each of them this long.
    pub fn of(body: Body, patience: Duration) -> Self {
        let (to, parts) = mpsc::channel(PARTS);
        tokio::spawn(forward(body, to, patience));
        Self { parts, rest: Bytes::new(), problem: None }
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.parts.blocking_recv() {
                Some(Ok(Some(part))) => self.rest = part,
                Some(Ok(None)) => return Ok(0),
                Some(Err(problem)) => {
                    self.problem = Some(problem);
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                // The client is gone: a part of a file is no file.
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let length = self.rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.rest.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn ranges_are_those_of_http() {
        let range =
            |text| ByteRange::parse(text, 100).map(|range| range.ok().map(|it| (it.from, it.to)));
        assert_eq!(range("bytes=0-9"), Some(Some((0, 10))));
        assert_eq!(range("bytes=90-"), Some(Some((90, 100))));
        assert_eq!(range("bytes=90-1000"), Some(Some((90, 100))));
        assert_eq!(range("bytes=-10"), Some(Some((90, 100))));
        assert_eq!(range("bytes=-1000"), Some(Some((0, 100))));
        assert_eq!(range("bytes=100-"), Some(None));
        assert_eq!(range("bytes=-0"), Some(None));
        for whole in ["bytes=9-0", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes="] {
            assert_eq!(range(whole), None, "{whole}");
        }
        assert_eq!(ByteRange::parse("bytes=0-", 0).map(|range| range.is_err()), Some(true));
    }
}
