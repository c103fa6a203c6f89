//! HTTP and HTTPS on every address of the lab, on the usual ports and the usual unusual ones.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::certificates::Certificates;
use crate::journal::Journal;
use crate::request::Request;
use crate::{Result, names, pages};

const PLAIN: [u16; 2] = [80, 8080];
const SECURE: [u16; 2] = [443, 8443];

/// What every connection needs.
#[derive(Clone)]
struct Site {
    directory: PathBuf,
    journal: Journal,
    tls: Option<Arc<ServerConfig>>,
}

pub(crate) fn serve(directory: &Path, journal: &Journal, certificates: Certificates) -> Result<()> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    let site = serve_plain(directory, journal, Some(Arc::new(tls)))?;
    for port in SECURE {
        listen(&site, TcpListener::bind((names::EVERYWHERE, port))?, secure);
    }
    Ok(())
}

/// Without TLS.
pub(crate) fn serve_host(directory: &Path, journal: &Journal) -> Result<()> {
    serve_plain(directory, journal, None).map(drop)
}

fn serve_plain(
    directory: &Path,
    journal: &Journal,
    tls: Option<Arc<ServerConfig>>,
) -> Result<Site> {
    let site = Site { directory: directory.to_owned(), journal: journal.clone(), tls };
    for port in PLAIN {
        listen(&site, TcpListener::bind((names::EVERYWHERE, port))?, plain);
    }
    Ok(site)
}

fn listen(site: &Site, listener: TcpListener, talk: fn(&Site, TcpStream) -> io::Result<()>) {
    let site = site.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let site = site.clone();
            // A client that hangs up early is the test's affair.
            thread::spawn(move || talk(&site, stream));
        }
    });
}

fn plain(site: &Site, stream: TcpStream) -> io::Result<()> {
    let local = names::met_at(&stream)?;
    site.journal.note(&json!({"kind": "tcp", "local": local}));
    requests(site, stream, &local, None)
}

fn secure(site: &Site, stream: TcpStream) -> io::Result<()> {
    let local = names::met_at(&stream)?;
    site.journal.note(&json!({"kind": "tcp", "local": local}));
    let Some(tls) = &site.tls else { return Ok(()) };
    let connection = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let name = stream.conn.server_name().unwrap_or_default().to_owned();
    site.journal.note(&json!({"kind": "tls", "local": local, "name": name}));
    requests(site, stream, &local, Some(&name))
}

fn requests(
    site: &Site,
    stream: impl Read + Write,
    local: &str,
    tls: Option<&str>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    // Bytes that are not there yet are waited for; the head of the next request may never come.
    while !stream.fill_buf()?.is_empty() {
        let Some(request) = Request::read(&mut stream)? else { return Ok(()) };
        site.journal.note(&json!({
            "kind": "http",
            "local": local,
            "tls": tls,
            "line": request.line,
            "host": request.host(),
            "headers": request.headers,
            "body": String::from_utf8_lossy(&request.body[..request.body.len().min(4096)]),
        }));
        pages::answer(&site.directory, &request, local, stream.get_mut())?;
        stream.get_mut().flush()?;
        if request.ends_connection() {
            // A socket that is closed with bytes unread resets the connection, and the answer may be lost with it.
            let unread = request.unread();
            io::copy(&mut stream.by_ref().take(unread), &mut io::sink())?;
            return Ok(());
        }
    }
    Ok(())
}
