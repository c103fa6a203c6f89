//! One HTTP POST to a trusted address, such as a webhook for alerts. Not for the sandbox: what it asks for goes through the
//! engine.
//!
//! Blocks, for at most a few seconds but for the resolver. It follows no redirect and believes nothing that comes back but
//! the status.

use crate::engine::certificates;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// For connecting, and for each wait after that.
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_HEAD: usize = 16 * 1024;

/// Where to, in parts that were checked.
#[derive(Clone, Debug)]
pub struct Destination {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// With the query; begins with a slash.
    pub path: String,
}

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect to {host} port {port}: {source}")]
    Connect { host: String, port: u16, source: io::Error },
    #[error("the connection to {host} failed: {source}")]
    Transfer { host: String, source: io::Error },
    #[error("no TLS with {host}: {why}")]
    Tls { host: String, why: String },
    #[error("{host} answered with status {status}")]
    Status { host: String, status: u16 },
    #[error("{host} did not answer in HTTP")]
    NotHttp { host: String },
}

/// Posts a JSON document. Any status of 200 to 299 is a success.
pub fn post_json(to: &Destination, body: &[u8]) -> Result<(), PostError> {
    let host = || to.host.clone();
    let resolved = (to.host.as_str(), to.port).to_socket_addrs();
    let addresses = resolved.map_err(|source| PostError::Resolve { host: host(), source })?;
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    // The first two families of a name; further addresses would only take more time.
    let connected = addresses.take(2).find_map(|address| {
        TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| refused = error).ok()
    });
    let Some(stream) = connected else {
        return Err(PostError::Connect { host: host(), port: to.port, source: refused });
    };
    let transfer = |source| PostError::Transfer { host: host(), source };
    stream.set_read_timeout(Some(PATIENCE)).map_err(transfer)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(transfer)?;
    let status = match to.is_tls {
        false => exchange(stream, to, body).map_err(transfer)?,
        true => {
            let failed = |why: String| PostError::Tls { host: host(), why };
            let config = certificates::client(certificates::native_roots())
                .map_err(|error| failed(error.to_string()))?;
            let name =
                ServerName::try_from(to.host.clone()).map_err(|error| failed(error.to_string()))?;
            let connection =
                ClientConnection::new(config, name).map_err(|error| failed(error.to_string()))?;
            exchange(StreamOwned::new(connection, stream), to, body).map_err(transfer)?
        }
    };
    match status {
        Some(200..=299) => Ok(()),
        Some(status) => Err(PostError::Status { host: host(), status }),
        None => Err(PostError::NotHttp { host: host() }),
    }
}

/// Sends the request, and gives the status if there is one.
fn exchange(
    mut stream: impl Read + Write,
    to: &Destination,
    body: &[u8],
) -> io::Result<Option<u16>> {
    let name = if to.host.contains(':') { format!("[{}]", to.host) } else { to.host.clone() };
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {name}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         User-Agent: palisade\r\nConnection: close\r\n\r\n",
        to.path,
        to.port,
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    // One read at a time: who sends a byte every second gets no more reads than a head has bytes.
    while answer.len() < MAX_HEAD {
        let read = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..read]);
        let mut headers = [httparse::EMPTY_HEADER; 0];
        let mut response = httparse::Response::new(&mut headers);
        // Too many headers for the room there is: the status is read by then.
        let _ = response.parse(&answer);
        if response.code.is_some() || read == 0 {
            return Ok(response.code);
        }
    }
    Ok(None)
}
