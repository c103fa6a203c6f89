//! The API of E2B's hosted sandboxes, so that programs written for them run here: `sandbox serve --e2b`.
//!
//! E2B has two sides, and the unmodified clients use both: a REST API that makes and ends sandboxes ([`api`]), and in each sandbox a
//! server for commands and files, which speaks Connect RPC with JSON and has an endpoint for the content of files. Here one server
//! answers for all of them; a header of each request names the sandbox. What is done is done by the operations of the service:
//! nothing here reaches a sandbox in any other way.
#![forbid(unsafe_code)]

mod access;
mod api;
mod connect;
mod content;
mod envelope;
mod error;
mod face;
mod filesystem;
mod homes;
mod multipart;
mod paths;
mod percent;
mod process;
mod running;
mod store;
mod sweep;
mod watched;

use axum::Router;
use face::Face;
use palisade_service::FaceHost;

/// Where `sandbox serve --e2b` listens if nothing else is said. The port of E2B's own server in a sandbox.
pub const DEFAULT_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 49983);

/// The routes of both sides, each behind its own check of who asks.
pub fn routes(host: &FaceHost) -> Router {
    let face = Face::new(host.clone());
    tokio::spawn(sweep::sweep_on(face.clone()));
    let api = host.guard(api::routes(face.clone()), access::check_key, error::refuse);
    let guarded = face.clone();
    let inside = Router::new()
        .merge(process::routes(face.clone()))
        .merge(filesystem::routes(face.clone()))
        .merge(content::routes(face));
    let inside = host.guard(
        inside,
        move |_, request| access::sandbox_of(&guarded, request).map(drop),
        error::refuse,
    );
    api.merge(inside)
}
