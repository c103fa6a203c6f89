//! What this user's sandboxes use, measured from outside: those of sessions, and runs that are none.

use crate::control::ControlConnection;
use crate::extract::Json;
use crate::problem::Problem;
use crate::sandboxes::SandboxStatus;
use crate::service::{Service, Shared};
use axum::extract::State;
use futures_util::future::join_all;
use jiff::Timestamp;
use palisade_session::SessionError;
use palisade_session::runs::{self, Announced, AnnouncedLimit, Meter};
use palisade_session::sessions::{self, SessionDirectory};
use palisade_session::supervise::interface::{Request, Response};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::ToSchema;

/// A supervisor that was stopped does not hold up what is known of the others.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageList {
    /// Oldest first.
    sandboxes: Vec<SandboxUsage>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxUsage {
    id: String,
    /// Whether it is a session, and the requests about sandboxes know it. Otherwise it is a run of `sandbox run`.
    is_session: bool,
    /// The beginning of its command line, with secrets masked.
    command: String,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// Processor time so far.
    cpu_ms: u64,
    memory_bytes: u64,
    processes: u64,
    threads: u64,
    /// None where the kernel does not count it.
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    limits: Vec<UsageLimit>,
    /// What a session does. None if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<SandboxStatus>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageLimit {
    /// As the option is called: `memory`, `pids` and so on.
    name: String,
    /// Bytes, milliseconds, thousandths of a processor, or a count.
    value: u64,
}

impl From<AnnouncedLimit> for UsageLimit {
    fn from(AnnouncedLimit { name, value, .. }: AnnouncedLimit) -> Self {
        Self { name, value }
    }
}

/// Measure what sandboxes use
///
/// All sandboxes of this user that run, also those of `sandbox run`. Counters such as `cpuMs` only grow: ask twice to know what is used now.
#[utoipa::path(get, path = "/v1/usage", tag = "sandboxes", responses((status = 200, body = UsageList)))]
pub(crate) async fn read_usage(State(service): State<Shared>) -> Result<Json<UsageList>, Problem> {
    let measured = service.blocking(measure).await?;
    let all = measured.into_iter().map(|(mut usage, session)| async move {
        if let Some(session) = session {
            usage.status = timeout(STATUS_PATIENCE, status(session)).await.ok().flatten();
        }
        usage
    });
    Ok(Json(UsageList { sandboxes: join_all(all).await }))
}

type Measured = (SandboxUsage, Option<Arc<SessionDirectory>>);

fn measure(service: &Service) -> Result<Vec<Measured>, SessionError> {
    let mut sessions: BTreeMap<String, SessionDirectory> = sessions::list(&service.places)?
        .into_iter()
        .map(|(directory, record)| (record.id, directory))
        .collect();
    let runs = runs::list(&service.places)?;
    let measured = runs.into_iter().filter_map(|run| {
        let session = sessions.remove(&run.session).map(Arc::new);
        Some((usage_of(run, session.is_some())?, session))
    });
    Ok(measured.collect())
}

/// None: it has ended.
fn usage_of(run: Announced, is_session: bool) -> Option<SandboxUsage> {
    let reading = Meter::of(&run).ok()??.read().ok()??;
    Some(SandboxUsage {
        id: run.session,
        is_session,
        command: run.command,
        started_at: run.started_at,
        cpu_ms: u64::try_from(reading.cpu.as_millis()).unwrap_or(u64::MAX),
        memory_bytes: reading.memory_bytes,
        processes: reading.processes,
        threads: reading.threads,
        read_bytes: reading.io.map(|io| io.read_bytes),
        written_bytes: reading.io.map(|io| io.written_bytes),
        limits: run.limits.into_iter().map(UsageLimit::from).collect(),
        status: None,
    })
}

async fn status(session: Arc<SessionDirectory>) -> Option<SandboxStatus> {
    let mut connection = ControlConnection::open(&session).await.ok()?;
    match connection.ask(&Request::Inspect, &[]).await.ok()? {
        Response::Inspected(status) => Some(status.into()),
        _ => None,
    }
}
