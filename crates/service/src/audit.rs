//! The audit log, asked and followed.

use crate::documents::AuditRecord;
use crate::extract::{Json, Parameters};
use crate::own_program::{Invocation, Lines};
use crate::problem::Problem;
use crate::service::Shared;
use crate::stream;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only of this sandbox or run.
    sandbox: Option<String>,
    /// From a time (`2026-11-18T09:30`), an age (`10m`), or after the record with this number (`seq`).
    since: Option<String>,
    /// Only events of these names, separated by commas.
    event: Option<String>,
    /// Only events of this level and above: info, warn, error or critical.
    level: Option<String>,
    /// How many at most, up to 1000; 100 if nothing is said. Not for the stream.
    limit: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// Oldest first, as they are in the log.
    #[schema(value_type = Vec<AuditRecord>)]
    records: Vec<Value>,
    /// What to give as `since` to get the next ones. None: these were all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

impl AuditQuery {
    fn invocation(&self, follow: bool) -> Invocation {
        let show = Invocation::new(["audit", "show", "--json"])
            .flag("follow", follow)
            .option_if("since", self.since.as_ref())
            .option_if("event", self.event.as_ref())
            .option_if("level", self.level.as_ref());
        match &self.sandbox {
            Some(sandbox) => show.word("--").word(sandbox),
            None => show,
        }
    }
}

fn number(record: &Value) -> Option<u64> {
    record.get("seq").and_then(Value::as_u64)
}

/// Read the audit log
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(AuditQuery), responses((status = 200, body = AuditPage)))]
pub(crate) async fn read_audit(
    State(service): State<Shared>,
    Parameters(query): Parameters<AuditQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("limit: 1 to {MAX_LIMIT}")));
    }
    let _place = service.program.place().await?;
    let lines = service.program.lines(&query.invocation(false))?;
    let page = timeout(PATIENCE, page(lines, limit)).await;
    page.map_err(|_| Problem::timed_out("the log was not read in time"))?.map(Json)
}

async fn page(mut lines: Lines, limit: usize) -> Result<AuditPage, Problem> {
    let mut records = Vec::new();
    loop {
        let line = lines.next().await.map_err(|error| Problem::internal(error.to_string()))?;
        let Some(line) = line else { break };
        if records.len() == limit {
            let next = records.last().and_then(number);
            return Ok(AuditPage { records, next });
        }
        let record = serde_json::from_slice(&line);
        records.push(record.map_err(|error| Problem::internal(error.to_string()))?);
    }
    match lines.problem().await {
        Some(problem) => Err(problem),
        None => Ok(AuditPage { records, next: None }),
    }
}

/// Follow the audit log
///
/// Server-sent events with the names of the log; their ids are the numbers of the records. With `sandbox` it ends when that one has ended.
#[utoipa::path(get, path = "/v1/audit/stream", tag = "audit", params(AuditQuery), responses((status = 200, body = AuditRecord, content_type = "text/event-stream")))]
pub(crate) async fn follow_audit(
    State(service): State<Shared>,
    Parameters(mut query): Parameters<AuditQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if query.limit.is_some() {
        return Err(Problem::invalid("limit: not for the stream"));
    }
    if let Some(last) = headers.get("last-event-id").and_then(|value| value.to_str().ok()) {
        query.since = Some(last.to_owned());
    }
    stream::respond_with_lines(&service, &query.invocation(true), |record| {
        let name = record.get("event").and_then(Value::as_str).unwrap_or("record");
        (name.to_owned(), number(record))
    })
}
