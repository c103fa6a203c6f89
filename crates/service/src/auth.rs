//! Who may ask: the same user at a UNIX socket, who knows the token at a TCP socket, and there only by a name that is ours
//! and from no other site's page.
//!
//! A browser sends what any page tells it to a loopback address, with the page's name in `Origin` and, after a name was made to
//! lead here (DNS rebinding), that name in `Host`.

use crate::error::ServiceError;
use crate::problem::Problem;
use axum::http::{HeaderMap, Method, Uri, header};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Bytes of a new token; it is written with twice as many characters.
const TOKEN_BYTES: usize = 32;
const MIN_TOKEN_CHARACTERS: usize = 32;
const MAX_TOKEN_FILE: u64 = 4096;

/// Known to whoever looks whether the server is there.
const OPEN_PATHS: &[&str] = &["/healthz", "/readyz"];

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The process at the other end of a UNIX socket.
    Process {
        uid: u32,
        /// Whether it is in our user namespace: in a sandbox it is not.
        is_outside: bool,
    },
    Network,
}

/// What is accepted.
#[derive(Debug)]
pub(crate) enum Access {
    SameUser { uid: u32 },
    Token { digest: [u8; 32], hosts: Hosts },
}

/// The names by which a TCP socket is ours.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    scheme: &'static str,
}

impl Hosts {
    /// `more` are names that somebody gave.
    pub(crate) fn of(address: SocketAddr, more: &[String], has_tls: bool) -> Self {
        let port = address.port();
        let mut hosts = vec![address.ip().to_string()];
        if address.ip().is_ipv6() {
            hosts = vec![format!("[{}]", address.ip())];
        }
        if address.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        hosts.extend(more.iter().map(|name| name.to_ascii_lowercase()));
        let mut names: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
        // The port of the scheme is left out.
        if port == if has_tls { 443 } else { 80 } {
            names.extend(hosts);
        }
        Self { names, scheme: if has_tls { "https://" } else { "http://" } }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).is_some_and(|name| self.has(name))
    }
}

impl Access {
    pub(crate) fn by_token(token: &str, hosts: Hosts) -> Self {
        Self::Token { digest: digest(token), hosts }
    }

    /// Whether this request is accepted.
    pub(crate) fn check(
        &self,
        peer: Peer,
        (method, uri): (&Method, &Uri),
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        match (self, peer) {
            (Self::SameUser { uid }, Peer::Process { uid: theirs, is_outside }) => {
                match (*uid == theirs, is_outside) {
                    (true, true) => Ok(()),
                    (false, _) => Err(Problem::forbidden(format!(
                        "this server answers user {uid}, and the other end of the socket is user {theirs}"
                    ))),
                    (true, false) => {
                        Err(Problem::forbidden("no process in a sandbox may command sandboxes"))
                    }
                }
            }
            (Self::Token { digest, hosts }, Peer::Network) => {
                check_names(hosts, uri, headers)?;
                let is_open = method == Method::GET && OPEN_PATHS.contains(&uri.path());
                if is_open { Ok(()) } else { check_token(digest, headers) }
            }
            _ => Err(Problem::forbidden("the request came from somewhere else")),
        }
    }
}

/// For a face with other ways to prove who asks.
impl Access {
    /// Whether a request comes from where it may, whoever sends it.
    pub(crate) fn check_place(
        &self,
        peer: Peer,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        match (self, peer) {
            (Self::Token { hosts, .. }, Peer::Network) => check_names(hosts, uri, headers),
            _ => Err(Problem::forbidden("this is served at a TCP socket only")),
        }
    }

    /// Whether this is the token. None: there is none.
    pub(crate) fn is_token(&self, given: &str) -> Option<bool> {
        match self {
            Self::SameUser { .. } => None,
            Self::Token { digest, .. } => Some(is_of(digest, given)),
        }
    }

    /// A secret that belongs to the token and this purpose: who knows it knows neither the token nor that of another purpose.
    pub(crate) fn secret_for(&self, purpose: &str) -> Option<String> {
        let Self::Token { digest, .. } = self else { return None };
        // Twice, so that nobody can go on from one hash to that of a longer purpose.
        let inner = Sha256::new().chain_update(digest).chain_update(purpose).finalize();
        let outer = Sha256::new().chain_update(digest).chain_update(inner).finalize();
        Some(outer.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn check_names(hosts: &Hosts, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let mut named = headers.get_all(header::HOST).iter();
    let host = named.next().and_then(|host| host.to_str().ok());
    let is_one = named.next().is_none();
    // A whole URL in the first line counts before the header (RFC 9112, 3.2.2).
    let authority = uri.authority().map(|authority| authority.as_str());
    let is_ours = host.is_some_and(|host| hosts.has(host))
        && authority.is_none_or(|authority| hosts.has(authority));
    if !is_one || !is_ours {
        return Err(Problem::forbidden(
            "the Host header does not name this server; `sandbox serve --host NAME` adds a name",
        ));
    }
    for origin in headers.get_all(header::ORIGIN) {
        if !origin.to_str().is_ok_and(|origin| hosts.is_own_origin(origin)) {
            return Err(Problem::forbidden("the Origin header names another site"));
        }
    }
    Ok(())
}

fn check_token(digest_of_token: &[u8; 32], headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let Some(token) = token else {
        return Err(Problem::unauthorised("send the header `Authorization: Bearer TOKEN`"));
    };
    if is_of(digest_of_token, token) {
        Ok(())
    } else {
        Err(Problem::unauthorised("the token is not that of this server"))
    }
}

/// Of hashes, whose bytes nobody can choose, and without stopping at the first difference: neither says how much of a guess was right.
fn is_of(digest_of_token: &[u8; 32], given: &str) -> bool {
    let differs = digest(given).iter().zip(digest_of_token).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differs) == 0
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The token in this file, which only its owner can read. It is made if there is none.
pub(crate) fn token(path: &Path) -> Result<String, ServiceError> {
    let failed = |action, errno: Errno| ServiceError::io(action, path, errno);
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, read, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return make_token(path),
        Err(errno) => return Err(failed("open", errno)),
    };
    let found = file.metadata().map_err(|error| ServiceError::io("read", path, error))?;
    let is_own = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    let mode = found.mode() & 0o777;
    if !is_own || mode & 0o077 != 0 {
        return Err(ServiceError::TokenReadable { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE)
        .read_to_string(&mut text)
        .map_err(|error| ServiceError::io("read", path, error))?;
    let token = text.trim();
    if token.len() < MIN_TOKEN_CHARACTERS {
        let (length, least) = (token.len(), MIN_TOKEN_CHARACTERS);
        return Err(ServiceError::TokenShort { path: path.to_owned(), length, least });
    }
    Ok(token.to_owned())
}

fn make_token(path: &Path) -> Result<String, ServiceError> {
    let failed = |error: std::io::Error| ServiceError::io("make", path, error);
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(failed)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|errno| failed(errno.into()))?);
    file.write_all(format!("{token}\n").as_bytes()).map_err(failed)?;
    Ok(token)
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
