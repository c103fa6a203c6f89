//! Requests that are repeated: what was made for a key is made once, and a repetition gets the first answer.
//!
//! Each key has a file in the directory of the service, so that a server that is started anew, or another one beside it, knows it, too.
//! The file is there before anything is done, locked by who does it; the answer is in it before the client has it. A file without an
//! answer that nobody has locked was left by a server that was killed: nobody knows what it did.

use crate::problem::Problem;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The oldest are forgotten first.
const MAX_KEPT: usize = 1000;
/// Of all answers together.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// A larger answer is not kept: a repetition is told that the request was carried out.
const MAX_ANSWER: usize = 1 << 20;
/// With what JSON makes of it.
const MAX_RECORD: u64 = 8 << 20;
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Every so many new keys, old ones are looked for.
const FORGET_EACH: u64 = 32;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKeys {
    directory: Arc<PathBuf>,
    claimed: Arc<AtomicU64>,
}

/// What is written about a key.
#[derive(Debug, Deserialize, Serialize)]
struct KeyRecord {
    /// Of the request, so that another one with the same key is noticed.
    request: String,
    /// None while it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<KeptAnswer>,
}

#[derive(Debug, Deserialize, Serialize)]
struct KeptAnswer {
    status: u16,
    body: String,
}

/// An answer that can be given again.
#[derive(Clone, Debug)]
pub(crate) struct MadeAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl MadeAnswer {
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_vec(body);
        Ok(Self { status, body: body.map_err(|error| Problem::internal(error.to_string()))? })
    }
}

impl IntoResponse for MadeAnswer {
    fn into_response(self) -> Response {
        let headers = [(axum::http::header::CONTENT_TYPE, "application/json")];
        (self.status, headers, self.body).into_response()
    }
}

/// The right to carry a request out. Dropped without an answer, the next one may.
#[derive(Debug)]
pub(crate) struct FirstRequest(Option<ClaimedKey>);

#[derive(Debug)]
struct ClaimedKey {
    path: PathBuf,
    request: String,
    /// Whether something may have been done that must not be done twice.
    is_begun: bool,
    /// Locked for as long as it is open.
    _file: File,
}

/// What is to be done with a request.
pub(crate) enum Claim {
    CarryOut(FirstRequest),
    Repeat(Response),
}

impl IdempotencyKeys {
    /// Kept in this directory, which is made if it is missing.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let keys = Self { directory: Arc::new(directory), claimed: Arc::default() };
        keys.forget_old();
        Ok(keys)
    }

    /// `scope` is what the key counts for: one kind of request, at one place. Without a key everything is carried out.
    pub(crate) fn claim(
        &self,
        scope: &str,
        key: Option<&str>,
        request: &impl Serialize,
    ) -> Result<Claim, Problem> {
        let Some(key) = key else { return Ok(Claim::CarryOut(FirstRequest(None))) };
        let text =
            serde_json::to_vec(request).map_err(|error| Problem::internal(error.to_string()))?;
        let request = digest(&[&text]);
        let path = self.directory.join(digest(&[scope.as_bytes(), key.as_bytes()]));
        if self.claimed.fetch_add(1, Ordering::Relaxed) % FORGET_EACH == FORGET_EACH - 1 {
            self.forget_old();
        }
        let failed = |error: io::Error| {
            Problem::internal(format!("cannot keep the Idempotency-Key: {error}"))
        };
        loop {
            if let Some(first) = begin(&path, &request).map_err(failed)? {
                return Ok(Claim::CarryOut(first));
            }
            // None: its request has failed meanwhile.
            if let Some(known) = known(&path, &request).map_err(failed)? {
                return known.map(Claim::Repeat);
            }
        }
    }

    /// Files beyond their time, or beyond what is kept. One that is locked stays.
    fn forget_old(&self) {
        let Ok(entries) = fs::read_dir(&*self.directory) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let found = entry.metadata().ok()?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        files.sort_by(|(one, ..), (other, ..)| other.cmp(one));
        let mut bytes = 0;
        for (number, (modified, length, path)) in files.iter().enumerate() {
            bytes += length;
            let is_kept = number < MAX_KEPT
                && bytes <= MAX_KEPT_BYTES
                && modified.elapsed().is_ok_and(|age| age < KEPT_FOR);
            if !is_kept && open(path).is_ok_and(|file| file.try_lock().is_ok()) {
                // Another server may have been first.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// A file of its own beside the one that it is to become.
fn write_beside(path: &Path, record: &KeyRecord) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}", std::process::id()));
    // One of a server that was killed and had our number.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.try_lock()?;
    file.write_all(&serde_json::to_vec(record)?)?;
    Ok((file, beside))
}

/// None if the key is known already.
fn begin(path: &Path, request: &str) -> io::Result<Option<FirstRequest>> {
    let record = KeyRecord { request: request.to_owned(), answer: None };
    let (file, beside) = write_beside(path, &record)?;
    // Whole and locked from the first moment, and only for one of those who try it at once.
    let linked = fs::hard_link(&beside, path);
    let _ = fs::remove_file(&beside);
    match linked {
        Ok(()) => {
            let (path, request) = (path.to_owned(), record.request);
            Ok(Some(FirstRequest(Some(ClaimedKey { path, request, is_begun: false, _file: file }))))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a repetition is answered with. None if the key is not known any more.
fn known(path: &Path, request: &str) -> io::Result<Option<Result<Response, Problem>>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    (&file).take(MAX_RECORD).read_to_end(&mut text)?;
    let record: KeyRecord = serde_json::from_slice(&text)?;
    Ok(Some(match record.answer {
        _ if record.request != request => Err(Problem::invalid(
            "this Idempotency-Key was used for another request; use a new one",
        )),
        Some(KeptAnswer { status, body }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let mut response = MadeAnswer { status, body: body.into_bytes() }.into_response();
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        None if file.try_lock().is_err() => Err(Problem::in_progress(
            "a request with this Idempotency-Key is being carried out; try again",
        )),
        // It may have been answered, or have failed, since the file was opened.
        None if !is_same_file(&file, path) => return Ok(None),
        None => Err(Problem::interrupted(
            "a request with this Idempotency-Key was begun, and its answer is not known any more: the client or the server was gone, or it was too large to be kept. It may have been carried out, in \
             part or not at all. Look at the sandboxes and their commands, and use a new key to do it again",
        )),
    }))
}

fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

impl FirstRequest {
    /// From now on, what is not answered has been interrupted: nobody may do it again under this key.
    pub(crate) fn begun(&mut self) {
        if let Some(claimed) = &mut self.0 {
            claimed.is_begun = true;
        }
    }

    /// Nothing of it was done: whoever repeats it may try.
    pub(crate) fn not_done(&mut self) {
        if let Some(claimed) = &mut self.0 {
            claimed.is_begun = false;
        }
    }

    /// It was done, and this is said whenever it is asked for again.
    pub(crate) fn answered(mut self, answer: &MadeAnswer) {
        let Some(ClaimedKey { path, request, _file: file, .. }) = self.0.take() else { return };
        if answer.body.len() > MAX_ANSWER {
            return;
        }
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let answer = Some(KeptAnswer { status: answer.status.as_u16(), body });
        // If it cannot be kept, what is there says that it was begun, and no more is known.
        if let Ok((_, beside)) = write_beside(&path, &KeyRecord { request, answer }) {
            let _ = fs::rename(&beside, &path);
        }
        drop(file);
    }
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        if let Some(claimed) = self.0.as_ref().filter(|claimed| !claimed.is_begun) {
            // It failed; whoever repeats it may try.
            let _ = fs::remove_file(&claimed.path);
        }
    }
}

/// Of several parts, none of which can be taken for a part of another one. In hexadecimal digits.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "idempotency_tests.rs"]
mod tests;
