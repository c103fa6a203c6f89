//! Calls that wait for a client to come back with a person's answer (revision 2026-07-28: a server sends no requests; it answers that input
//! is required, and the client repeats the call with it).
//!
//! The client gets a text back that names the call. It is signed and bound to the tool and its arguments, so that no client can name
//! another call, or go on with other arguments than a person was shown.

use crate::call::RunningCall;
use crate::context::Confirmation;
use crate::elicitation::ElicitationMode;
use palisade_service::random;
use rmcp::model::{
    CallToolRequestParams, JsonObject, RequestStateCodec, RequestStateError, SealOptions,
};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a call waits for its client. A question is denied after 5 minutes anyway.
const PATIENCE: Duration = Duration::from_secs(600);
const MAX_PARKED: usize = 64;

/// What the person is asked.
#[derive(Debug)]
pub(crate) enum Asked {
    /// About something that a command waits for.
    Question(u64, ElicitationMode),
    Confirmation(Confirmation),
    /// By the page with this elicitation id, which has what waits.
    Page(String),
}

#[derive(Debug)]
pub(crate) struct ParkedCall {
    pub(crate) call: RunningCall,
    pub(crate) asked: Asked,
    since: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct ParkedCalls(Mutex<HashMap<String, ParkedCall>>);

impl ParkedCalls {
    /// Keeps it, and returns its name. None: too many wait already, and the call is given up.
    pub(crate) fn park(&self, call: RunningCall, asked: Asked) -> Option<String> {
        let name = random::hex(16).ok()?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.retain(|_, it| it.since.elapsed() < PATIENCE);
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(name.clone(), ParkedCall { call, asked, since: Instant::now() });
        Some(name)
    }

    /// Once: whoever comes a second time finds nothing.
    pub(crate) fn take(&self, name: &str) -> Option<ParkedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// Gives up those whose clients did not come back.
    pub(crate) fn sweep(&self) {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.retain(|_, it| it.since.elapsed() < PATIENCE);
    }
}

/// What a call is bound to.
fn binding(name: &str, arguments: Option<&JsonObject>) -> Vec<u8> {
    let arguments = arguments.map(|it| serde_json::to_vec(it).unwrap_or_default());
    let mut hash = Sha256::new();
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name.as_bytes());
    hash.update(arguments.unwrap_or_default());
    hash.finalize().to_vec()
}

pub(crate) fn seal(
    codec: &RequestStateCodec,
    name: &str,
    request: &CallToolRequestParams,
) -> String {
    let bound = binding(&request.name, request.arguments.as_ref());
    let options = SealOptions::new().associated_data(&bound).ttl(PATIENCE);
    codec.seal_with(name.as_bytes(), &options)
}

pub(crate) fn open(
    codec: &RequestStateCodec,
    sealed: &str,
    request: &CallToolRequestParams,
) -> Result<String, RequestStateError> {
    let bound = binding(&request.name, request.arguments.as_ref());
    let name = codec.open_with(sealed, &bound)?;
    Ok(String::from_utf8_lossy(&name).into_owned())
}
