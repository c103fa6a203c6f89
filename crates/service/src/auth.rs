//! Who may ask: the same user at a UNIX socket; at a TCP socket who knows the token or has logged in, and only by a name that is
//! ours and from no other site's page.
//!
//! A browser sends what any page tells it to a loopback address, with the page's name in `Origin` and, after a name was made to
//! lead here (DNS rebinding), that name in `Host`. A UNIX socket has browsers at its other end, too, if somebody tunnels it.

use crate::error::ServiceError;
use crate::logins::{KEY_HEADER, Logins};
use crate::problem::Problem;
use crate::secret::{SecretDigest, new_secret};
use axum::http::{HeaderMap, Method, Uri, header};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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
    /// A process at the other end of a connection over loopback.
    LocalUser {
        uid: u32,
        /// Whether every process that has the socket is in our user namespace.
        is_outside: bool,
    },
    Network,
}

/// What is accepted.
#[derive(Debug)]
pub(crate) enum Access {
    SameUser { uid: u32 },
    Token { token: SecretDigest, hosts: Hosts, logins: Logins },
}

/// What a path asks of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// A part of the page, in which there is nothing to protect.
    Page,
    /// What a browser does to log in: from the page itself, without a proof yet.
    Login,
    /// Everything else.
    Full,
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

    /// Only the address itself, as a request writes it.
    pub(crate) fn only(address: SocketAddr) -> Self {
        Self { names: vec![address.to_string()], scheme: "http://" }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).is_some_and(|name| self.has(name))
    }

    /// Whether a request names one of them as where it goes to.
    pub(crate) fn are_named_by(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let is_one = named.next().is_none();
        // A whole URL in the first line counts before the header (RFC 9112, 3.2.2).
        let authority = uri.authority().map(|authority| authority.as_str());
        is_one
            && host.is_some_and(|host| self.has(host))
            && authority.is_none_or(|authority| self.has(authority))
    }

    /// Whether a request says no other page as where it comes from.
    pub(crate) fn are_origin_of(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        origins.all(|origin| origin.to_str().is_ok_and(|origin| self.is_own_origin(origin)))
    }
}

impl Access {
    pub(crate) fn by_token(token: &str, hosts: Hosts, logins: Logins) -> Self {
        Self::Token { token: SecretDigest::of(token), hosts, logins }
    }

    /// Whether this is the token. None: there is none, and nobody has to log in.
    pub(crate) fn is_token(&self, given: &str) -> Option<bool> {
        match self {
            Self::SameUser { .. } => None,
            Self::Token { token, .. } => Some(token.is_of(given)),
        }
    }

    /// Browsers that have logged in. None: nobody has to.
    pub(crate) fn logins(&self) -> Option<&Logins> {
        match self {
            Self::SameUser { .. } => None,
            Self::Token { logins, .. } => Some(logins),
        }
    }

    /// Whether this request is accepted.
    pub(crate) fn check(
        &self,
        peer: Peer,
        (method, uri): (&Method, &Uri),
        headers: &HeaderMap,
        protection: Protection,
    ) -> Result<(), Problem> {
        match (self, peer) {
            (Self::SameUser { uid }, Peer::Process { uid: theirs, is_outside }) => {
                match (*uid == theirs, is_outside) {
                    (true, true) => check_tunnel(headers, protection),
                    (false, _) => Err(Problem::forbidden(format!(
                        "this server answers user {uid}, and the other end of the socket is user {theirs}"
                    ))),
                    (true, false) => {
                        Err(Problem::forbidden("no process in a sandbox may command sandboxes"))
                    }
                }
            }
            (Self::Token { token, hosts, logins }, Peer::Network) => {
                check_names(hosts, uri, headers)?;
                let is_open = method == Method::GET && OPEN_PATHS.contains(&uri.path());
                if is_open || protection == Protection::Page {
                    return Ok(());
                }
                check_site(headers)?;
                match protection {
                    Protection::Login => Ok(()),
                    _ if headers.contains_key(header::AUTHORIZATION) => check_token(token, headers),
                    _ => logins.check(headers),
                }
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

    /// A secret that belongs to the token and this purpose: who knows it knows neither the token nor that of another purpose.
    pub(crate) fn secret_for(&self, purpose: &str) -> Option<String> {
        match self {
            Self::SameUser { .. } => None,
            Self::Token { token, .. } => Some(token.secret_for(purpose)),
        }
    }
}

fn check_names(hosts: &Hosts, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    if !hosts.are_named_by(uri, headers) {
        return Err(Problem::forbidden(
            "the Host header does not name this server; `sandbox serve --host NAME` adds a name",
        ));
    }
    if !hosts.are_origin_of(headers) {
        return Err(Problem::forbidden("the Origin header names another site"));
    }
    Ok(())
}

/// What browsers say of the page that a request comes from (Fetch Metadata). Other programs say nothing.
pub(crate) fn check_site(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Problem::forbidden("the request comes from the page of another site")),
    }
}

/// A browser at the other end of a UNIX socket came through a tunnel of its user, to some port of that machine. The socket accepts
/// what comes through, so the page must be our own, under a name that nobody else can give to it.
fn check_tunnel(headers: &HeaderMap, protection: Protection) -> Result<(), Problem> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let is_loopback = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| {
        let port = host.strip_prefix(name).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
        port.is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
    });
    if !is_loopback {
        return Err(Problem::forbidden("at a UNIX socket, the Host header has to be localhost"));
    }
    // What a browser adds by itself, and a page of another site cannot leave out.
    let is_browser = headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"))
        || headers.contains_key(header::ORIGIN)
        || headers.contains_key(header::REFERER)
        || text(header::USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
    if !is_browser {
        return Ok(());
    }
    let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    if headers.contains_key(header::ORIGIN) && !text(header::ORIGIN).is_some_and(is_own) {
        return Err(Problem::forbidden("the Origin header names another site"));
    }
    if protection == Protection::Page {
        return Ok(());
    }
    check_site(headers)?;
    if headers.contains_key(KEY_HEADER) {
        Ok(())
    } else {
        Err(Problem::forbidden(format!(
            "from a browser, a request needs the header {KEY_HEADER}: pages of other sites cannot send it"
        )))
    }
}

fn check_token(expected: &SecretDigest, headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match token {
        None => Err(Problem::unauthorised("send the header `Authorization: Bearer TOKEN`")),
        Some(token) if expected.is_of(token) => Ok(()),
        Some(_) => Err(Problem::unauthorised("the token is not that of this server")),
    }
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
    let token = new_secret().map_err(failed)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|errno| failed(errno.into()))?);
    file.write_all(format!("{token}\n").as_bytes()).map_err(failed)?;
    Ok(token)
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
