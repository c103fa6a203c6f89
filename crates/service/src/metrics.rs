//! Counters of the server, and those of the sandboxes that it made, as text that Prometheus reads (TEL-1).

use crate::problem::Problem;
use crate::service::Shared;
use crate::warm::WarmSandboxes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use palisade_session::sessions;
use std::io::{self, Read as _};
use std::path::Path;

/// Of the file that sandboxes count in: it has a bounded number of series.
const MAX_FILE: u64 = 1 << 20;

/// Read the counters
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, body = String, content_type = "text/plain; version=0.0.4")))]
pub(crate) async fn read_metrics(State(service): State<Shared>) -> Result<Response, Problem> {
    let (running, of_sandboxes) = service
        .blocking(|service| {
            let all = sessions::list(&service.places)?;
            let running =
                all.iter().filter(|(directory, record)| !record.is_over() && directory.is_alive());
            Ok((running.count(), read_file(&service.metrics_file()).unwrap_or_default()))
        })
        .await?;
    let prepared = service.warm.as_ref().map_or(0, WarmSandboxes::waiting);
    let text = service.counters.text(running, prepared) + &of_sandboxes;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}
