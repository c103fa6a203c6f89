//! Requests that are repeated: what was made for a key is made once, and a repetition gets the first answer.
//!
//! Kept while the server runs, and for a day.

use crate::problem::Problem;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The oldest are forgotten first.
const MAX_KEPT: usize = 1000;
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

type Digest = [u8; 32];

#[derive(Clone, Default)]
pub(crate) struct IdempotencyKeys {
    entries: Arc<Mutex<HashMap<Digest, Entry>>>,
}

struct Entry {
    /// Of the request, so that another one with the same key is noticed.
    request: Digest,
    since: Instant,
    /// None while the first one is carried out.
    answer: Option<MadeAnswer>,
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
pub(crate) struct FirstRequest {
    keys: IdempotencyKeys,
    key: Option<Digest>,
}

/// What is to be done with a request.
pub(crate) enum Claim {
    CarryOut(FirstRequest),
    Repeat(Response),
}

impl IdempotencyKeys {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `scope` is what the key counts for: one kind of request, at one place. Without a key everything is carried out.
    pub(crate) fn claim(
        &self,
        scope: &str,
        key: Option<&str>,
        request: &impl Serialize,
    ) -> Result<Claim, Problem> {
        let Some(key) = key else {
            return Ok(Claim::CarryOut(FirstRequest { keys: self.clone(), key: None }));
        };
        let key = digest(&[scope.as_bytes(), key.as_bytes()]);
        let text =
            serde_json::to_vec(request).map_err(|error| Problem::internal(error.to_string()))?;
        let request = digest(&[&text]);
        let mut entries = self.lock();
        forget_old(&mut entries);
        match entries.get(&key) {
            Some(entry) if entry.request != request => Err(Problem::invalid(
                "this Idempotency-Key was used for another request; use a new one",
            )),
            Some(Entry { answer: None, .. }) => Err(Problem::conflict(
                "a request with this Idempotency-Key is being carried out; try again",
            )),
            Some(Entry { answer: Some(answer), .. }) => {
                let mut response = answer.clone().into_response();
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                Ok(Claim::Repeat(response))
            }
            None => {
                entries.insert(key, Entry { request, since: Instant::now(), answer: None });
                Ok(Claim::CarryOut(FirstRequest { keys: self.clone(), key: Some(key) }))
            }
        }
    }
}

impl FirstRequest {
    /// It was done, and this is said whenever it is asked for again.
    pub(crate) fn answered(mut self, answer: &MadeAnswer) {
        let Some(key) = self.key.take() else { return };
        if let Some(entry) = self.keys.lock().get_mut(&key) {
            entry.answer = Some(answer.clone());
        }
    }
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.keys.lock().remove(&key);
        }
    }
}

fn forget_old(entries: &mut HashMap<Digest, Entry>) {
    entries.retain(|_, entry| entry.answer.is_none() || entry.since.elapsed() < KEPT_FOR);
    while entries.len() >= MAX_KEPT {
        let answered = entries.iter().filter(|(_, entry)| entry.answer.is_some());
        let Some((oldest, _)) = answered.min_by_key(|(_, entry)| entry.since) else { return };
        let oldest = *oldest;
        entries.remove(&oldest);
    }
}

/// Of several parts, none of which can be taken for a part of another one.
fn digest(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{Claim, IdempotencyKeys, MAX_KEPT, MadeAnswer};
    use axum::http::StatusCode;

    fn answer() -> MadeAnswer {
        MadeAnswer::json(StatusCode::CREATED, &"made").unwrap()
    }

    fn first(keys: &IdempotencyKeys, key: &str) -> super::FirstRequest {
        match keys.claim("s", Some(key), &1).unwrap() {
            Claim::CarryOut(first) => first,
            Claim::Repeat(_) => panic!("{key} was there"),
        }
    }

    #[test]
    fn a_key_is_carried_out_once() {
        let keys = IdempotencyKeys::default();
        let running = first(&keys, "k");
        assert!(keys.claim("s", Some("k"), &1).is_err(), "it is being carried out");
        assert!(matches!(keys.claim("t", Some("k"), &1), Ok(Claim::CarryOut(_))), "elsewhere");
        running.answered(&answer());
        assert!(keys.claim("s", Some("k"), &2).is_err(), "another request");
        let Ok(Claim::Repeat(repeated)) = keys.claim("s", Some("k"), &1) else { panic!() };
        assert_eq!(repeated.status(), StatusCode::CREATED);
        assert_eq!(repeated.headers()["idempotent-replayed"], "true");
        drop(first(&keys, "failed"));
        drop(first(&keys, "failed"));
    }

    #[test]
    fn keys_do_not_pile_up() {
        let keys = IdempotencyKeys::default();
        for number in 0..MAX_KEPT + 10 {
            first(&keys, &number.to_string()).answered(&answer());
        }
        assert_eq!(keys.lock().len(), MAX_KEPT);
        assert!(matches!(keys.claim("s", Some("0"), &1), Ok(Claim::CarryOut(_))), "the oldest");
    }
}
