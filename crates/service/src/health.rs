//! Whether the server is there, and whether it can do its work.

use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::State;
use palisade_session::sessions;

/// Whether the server is there
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, body = String)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server can do its work
#[utoipa::path(get, path = "/readyz", tag = "server", responses((status = 200, body = String), (status = 503, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn readyz(State(service): State<Shared>) -> Result<&'static str, Problem> {
    if *service.stopping.borrow() {
        return Err(Problem::busy("the server is ending"));
    }
    let listed = service.blocking(|service| sessions::list(&service.places)).await;
    listed.map(|_| "ok\n").map_err(|_| Problem::busy("the sessions cannot be listed"))
}
