//! TLS interception, only for hosts that have a credential.
//!
//! Outside, the host's certificate is checked against the roots of this machine, as the client would do.

use crate::config::Config;
use crate::credentials;
use crate::engine::{Admitted, Engine};
use crate::http::head::Scheme;
use crate::http_server::answer::{self, Shape};
use crate::http_server::connection::{Connection, within};
use crate::http_server::serve::serve_requests;
use palisade_hosts::Host;
use std::io::Cursor;
use std::rc::Rc;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Whether TLS to this host and port is intercepted.
pub fn wanted(config: &Config, host: &Host, port: u16) -> bool {
    config.authority.is_some() && credentials::exist(config, host, port)
}

/// Serves a connection that starts with a ClientHello for the host it was admitted for. `first` was already
/// read from the client.
pub async fn serve(
    engine: Rc<Engine>,
    client: TcpStream,
    upstream: TcpStream,
    admitted: Admitted,
    first: Vec<u8>,
) {
    let Some(inside) = &engine.intercept.inside else { return };
    let Ok(config) = inside.config_for(&admitted.host) else { return };
    let (reader, writer) = client.into_split();
    let client = tokio::io::join(Cursor::new(first).chain(reader), writer);
    // A client that does not trust the authority closes the connection.
    let Some(Ok(client)) = within(&engine.config, TlsAcceptor::from(config).accept(client)).await
    else {
        return;
    };
    let client = Connection::of(client);
    let opened = within(&engine.config, engine.intercept.open(upstream, &admitted.host)).await;
    match opened {
        Some(Ok(server)) => {
            serve_requests(&engine, client, Connection::of(server), &admitted, Scheme::Https).await;
        }
        Some(Err(error)) => {
            let reason = format!("TLS with the host failed: {error}");
            client.finish(&answer::bad(502, &reason, Shape::Whole)).await;
        }
        None => {
            client.finish(&answer::bad(504, "the host did not answer in TLS", Shape::Whole)).await;
        }
    }
}

#[cfg(test)]
#[path = "intercept_tests.rs"]
mod tests;
