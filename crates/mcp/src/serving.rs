//! A server at standard input and output, or at a socket.

use crate::calls::ServerCalls;
use crate::error::McpError;
use crate::in_flight::{RequestsInFlight, refuse_repeated};
use crate::options::McpOptions;
use crate::pages::QuestionPages;
use crate::server::McpServer;
use crate::spans::CallSpans;
use axum::{Router, middleware};
use palisade_service::{
    Face, ListenAddress, Listening, Operations, ServeOptions, ServiceError, serve_face,
};
use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Of one message. A file that is written is in one.
const MAX_MESSAGE: usize = 16 << 20;
/// Threads for what reads files. They end when they are not needed.
const MAX_BLOCKING_THREADS: usize = 32;
/// What calls may take to end when the server ends.
const CALL_GRACE: Duration = Duration::from_secs(5);
/// Where clients connect to over HTTP.
const PATH: &str = "/mcp";

/// Serves one client at standard input and output until it is gone, or a signal comes. The calling process must have no threads and
/// no sandbox of its own. `note` is told what there is to say at the end.
pub fn serve_streams(options: &McpOptions, note: &mut dyn FnMut(&str)) -> Result<(), McpError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .map_err(|error| McpError::Streams(error.to_string()))?;
    let done = runtime.block_on(async {
        let operations = Operations::open(options.places.clone(), options.directory.clone())?;
        let spans = CallSpans::of_environment("pipe", note);
        let calls = ServerCalls::new(
            operations,
            options,
            spans,
            QuestionPages::new(options.has_pages && !is_over_ssh()),
        )?;
        let served = talk(&calls).await;
        if let Some(said) = calls.state.sandbox.end().await.filter(|said| !said.is_empty()) {
            note(&said);
        }
        if let Some(said) = calls.spans.finish() {
            note(&said);
        }
        served
    });
    // A thread may still read standard input.
    runtime.shutdown_background();
    done
}

/// As the conventions call it.
fn transport(address: &ListenAddress) -> &'static str {
    match address {
        ListenAddress::Tcp(_) => "tcp",
        _ => "unix",
    }
}

/// Whether the person is at another machine, where a page at our loopback cannot be opened.
fn is_over_ssh() -> bool {
    std::env::var_os("SSH_CONNECTION").is_some()
}

/// Whether a page at loopback can be opened where a client is. A server with names of its own is reached by them, through a proxy or a tunnel.
fn are_clients_here(address: Option<&ListenAddress>, names: &[String]) -> bool {
    match address {
        Some(ListenAddress::Tcp(address)) => address.ip().is_loopback() && names.is_empty(),
        Some(ListenAddress::Unix(_)) | None => true,
    }
}

async fn talk(calls: &Arc<ServerCalls>) -> Result<(), McpError> {
    let streams = |error: &dyn std::fmt::Display| McpError::Streams(error.to_string());
    let listen = |kind| signal(kind).map_err(|error| streams(&error));
    let (mut terminated, mut interrupted, mut hung_up) = (
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
        listen(SignalKind::hangup())?,
    );
    let (read, write) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(MAX_MESSAGE);
    let serving = async {
        match McpServer(Arc::clone(calls)).serve(transport).await {
            Ok(running) => match running.waiting().await {
                Ok(QuitReason::JoinError(error)) | Err(error) => Err(streams(&error)),
                Ok(_) => Ok(()),
            },
            // A client that goes before it says something does no harm.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(streams(&error)),
        }
    };
    tokio::select! {
        served = serving => served,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        _ = hung_up.recv() => Ok(()),
    }
}

/// Serves clients over HTTP at a socket until SIGTERM or SIGINT. All of them share one sandbox.
pub fn serve_http(
    options: &McpOptions,
    listen: &ServeOptions,
    tell: &mut dyn FnMut(&Listening),
    note: &mut dyn FnMut(&str),
) -> Result<(), McpError> {
    serve_face(listen, tell, |operations| {
        let stopping = operations.clone();
        let spans =
            CallSpans::of_environment(listen.listen.as_ref().map_or("unix", transport), note);
        let are_here = are_clients_here(listen.listen.as_ref(), &listen.hosts) && !is_over_ssh();
        let pages = QuestionPages::new(options.has_pages && are_here);
        let calls = ServerCalls::new(operations, options, spans, pages)
            .map_err(|error| ServiceError::Face { why: error.to_string() })?;
        let config = StreamableHttpServerConfig::default()
            // Who may ask is checked before: by the token, Host and Origin, or by the user at the other end of a UNIX socket.
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_MESSAGE);
        let stop = config.cancellation_token.clone();
        tokio::spawn(async move {
            stopping.stopping().await;
            stop.cancel();
        });
        let server = McpServer(Arc::clone(&calls));
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let end = async move {
            let ended = tokio::time::timeout(CALL_GRACE * 4, calls.state.sandbox.end()).await;
            if let Ok(Some(said)) = ended
                && !said.is_empty()
            {
                note(&said);
            }
            if let Some(said) = calls.spans.finish() {
                note(&said);
            }
        };
        let in_flight = RequestsInFlight::new(MAX_MESSAGE);
        let once = middleware::from_fn_with_state(in_flight, refuse_repeated);
        Ok(Face { router: Router::new().route_service(PATH, service).layer(once), end })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::are_clients_here;
    use palisade_service::ListenAddress;

    #[test]
    fn a_client_that_may_be_elsewhere_gets_no_page() {
        let tcp = |address: &str| Some(ListenAddress::Tcp(address.parse().unwrap()));
        let name = ["sandboxes.example".to_owned()];
        assert!(are_clients_here(tcp("127.0.0.1:1").as_ref(), &[]));
        assert!(!are_clients_here(tcp("127.0.0.1:1").as_ref(), &name));
        assert!(!are_clients_here(tcp("192.0.2.1:1").as_ref(), &[]));
        assert!(are_clients_here(Some(&ListenAddress::Unix("/x".into())), &[]));
        assert!(are_clients_here(None, &[]));
    }
}
