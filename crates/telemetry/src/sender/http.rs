//! One HTTP POST to the collector. Follows no redirect, and believes nothing that comes back but the status.

use crate::settings::{Protocol, Target};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

/// Of an answer, as far as it is read.
const MAX_HEAD: usize = 16 << 10;
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Further addresses of a name would only take more time.
const MAX_ADDRESSES: usize = 4;

#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect to {host} port {port}: {source}")]
    Connect { host: String, port: u16, source: io::Error },
    #[error("the connection to {host} failed: {source}")]
    Transfer { host: String, source: io::Error },
    #[error("cannot read the certificates that {host} would be checked against")]
    Certificates { host: String },
    #[error("{host} is no name that TLS could check")]
    Name { host: String },
    #[error("{host} answered with status {status}")]
    Status { host: String, status: u16 },
    #[error("{host} did not answer in HTTP")]
    NotHttp { host: String },
    #[error("{host} did not answer in {} ms", .within.as_millis())]
    Late { host: String, within: Duration },
}

impl PostError {
    /// Whether the specification says to try again.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Transfer { .. } => true,
            Self::Status { status, .. } => matches!(status, 429 | 502 | 503 | 504),
            _ => false,
        }
    }
}

/// A target whose name was resolved.
#[derive(Debug)]
pub(super) struct Destination {
    target: Target,
    addresses: Vec<SocketAddr>,
    tls: Option<Arc<ClientConfig>>,
}

impl Destination {
    /// Looks the name up. `tls` is for a target that has it.
    pub(super) fn resolve(
        target: Target,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Self, PostError> {
        // Never in the clear instead.
        if target.is_tls && tls.is_none() {
            return Err(PostError::Certificates { host: target.host });
        }
        let found = (target.host.as_str(), target.port).to_socket_addrs();
        let resolve = |source| PostError::Resolve { host: target.host.clone(), source };
        let addresses: Vec<SocketAddr> = found.map_err(resolve)?.take(MAX_ADDRESSES).collect();
        Ok(Self { target, addresses, tls })
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.target.protocol
    }

    /// Any status of 200 to 299 is a success. Never takes longer than the settings say.
    pub(super) async fn post(&self, body: &[u8]) -> Result<(), PostError> {
        let within = self.target.timeout;
        let late = PostError::Late { host: self.target.host.clone(), within };
        timeout(within, self.try_often(body)).await.unwrap_or(Err(late))
    }

    async fn try_often(&self, body: &[u8]) -> Result<(), PostError> {
        let mut pause = FIRST_PAUSE;
        let mut tried = 1;
        loop {
            match self.try_once(body).await {
                Err(error) if error.is_temporary() && tried < TRIES => {
                    sleep(pause).await;
                    pause *= 2;
                    tried += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_once(&self, body: &[u8]) -> Result<(), PostError> {
        let host = || self.target.host.clone();
        let stream = self.connect().await?;
        let transfer = |source| PostError::Transfer { host: host(), source };
        let status = match &self.tls {
            None => self.exchange(stream, body).await.map_err(transfer)?,
            Some(config) => {
                let name =
                    ServerName::try_from(host()).map_err(|_| PostError::Name { host: host() })?;
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name, stream).await.map_err(transfer)?;
                self.exchange(stream, body).await.map_err(transfer)?
            }
        };
        match status {
            Some(200..=299) => Ok(()),
            Some(status) => Err(PostError::Status { host: host(), status }),
            None => Err(PostError::NotHttp { host: host() }),
        }
    }

    async fn connect(&self) -> Result<TcpStream, PostError> {
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => refused = error,
            }
        }
        let (host, port) = (self.target.host.clone(), self.target.port);
        Err(PostError::Connect { host, port, source: refused })
    }

    /// Sends the request, and gives the status if there is one.
    async fn exchange(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        body: &[u8],
    ) -> io::Result<Option<u16>> {
        stream.write_all(self.head(body.len()).as_bytes()).await?;
        stream.write_all(body).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        while answer.len() < MAX_HEAD {
            let read = stream.read(&mut buffer).await?;
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

    fn head(&self, length: usize) -> String {
        let Target { host, port, path, protocol, headers, .. } = &self.target;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let kind = match protocol {
            Protocol::HttpProtobuf => "application/x-protobuf",
            Protocol::HttpJson => "application/json",
        };
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("user-agent")) {
            head.push_str(concat!(
                "User-Agent: OTel-OTLP-Exporter-Rust palisade/",
                env!("CARGO_PKG_VERSION"),
                "\r\n"
            ));
        }
        head + "\r\n"
    }
}
