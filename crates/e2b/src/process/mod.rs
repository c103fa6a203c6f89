//! The service `process.Process` of E2B's server in a sandbox: commands that are started, followed, typed into and ended.
//!
//! What E2B calls the pid of a command is its number in the session. It is unique there and stays the same whichever server is asked,
//! but no process has it inside.

mod input;
mod model;
mod relay;
mod signal;
mod start;

use crate::face::Shared;
use axum::Router;
use axum::routing::post;

pub(crate) fn routes(face: Shared) -> Router {
    let path = |procedure: &str| format!("/process.Process/{procedure}");
    Router::new()
        .route(&path("Start"), post(start::start))
        .route(&path("Connect"), post(start::connect))
        .route(&path("List"), post(signal::list))
        .route(&path("SendSignal"), post(signal::send_signal))
        .route(&path("Update"), post(signal::update))
        .route(&path("SendInput"), post(input::send_input))
        .route(&path("StreamInput"), post(input::stream_input))
        .route(&path("CloseStdin"), post(input::close_input))
        .with_state(face)
}
