//! The head of a request from inside, parsed strictly by RFC 9112.
//!
//! General parsers accept bare line feeds, folded lines or two lengths; a server that reads those differently
//! would see a request that was never judged (N10). A head that is not plain is refused, never repaired.

use super::fields::{Fields, is_token};
use palisade_hosts::Host;
use std::fmt;

/// For the request line and all fields together.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
pub const MAX_FIELDS: usize = 128;
const MAX_METHOD_BYTES: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Valid so far, but incomplete.
    NeedMore,
    Head(Box<RequestHead>),
    Bad(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the head is longer than 64 KiB or has more than 128 fields")]
    TooLarge,
    #[error("only HTTP/1.0 and HTTP/1.1 are supported")]
    Version,
    #[error("lines must end with CR LF, which may not occur elsewhere")]
    LineEnd,
    #[error("the head contains a control character")]
    Control,
    #[error("the request line is not `METHOD TARGET VERSION`")]
    RequestLine,
    #[error("the target is neither a path nor a URL, or not in the form that its method needs")]
    Target,
    #[error("the target has an invalid host, or names a user")]
    Authority,
    #[error("a field's name is not a token followed by a colon")]
    FieldName,
    #[error("a field continues on the next line")]
    Folded,
    #[error("there must be one Host field, and it must name a host")]
    Host,
    #[error("the target and the Host field name different hosts")]
    Disagree,
    #[error("Content-Length is not one number")]
    Length,
    #[error("Transfer-Encoding may only be `chunked`, once, and not in HTTP/1.0")]
    Encoding,
    #[error("both Content-Length and Transfer-Encoding are present")]
    TwoLengths,
}

impl Fault {
    pub fn status(self) -> u16 {
        match self {
            Self::TooLarge => 431,
            Self::Version => 505,
            _ => 400,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    /// Until the connection closes; only in responses.
    UntilClose,
}

impl Framing {
    pub const NONE: Self = Self::Length(0);
}

/// A host and an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

impl Authority {
    /// `HOST[:PORT]` and nothing else: no user, no empty port.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port_number(port)?)),
            _ => (text, None),
        };
        if host.contains(':') != (host.starts_with('[') && host.ends_with(']')) {
            return None;
        }
        Some(Self { host: Host::parse(host).ok()?, port })
    }

    /// Whether both name the same host and port; `default` is the port where none is given.
    pub fn agrees(&self, other: &Self, default: u16) -> bool {
        self.host == other.host && self.port.unwrap_or(default) == other.port.unwrap_or(default)
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(std::net::IpAddr::V6(address)) => write!(f, "[{address}]")?,
            host => write!(f, "{host}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn port_number(text: &str) -> Option<u16> {
    let plain = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|port| *port != 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/path?query`.
    Origin(String),
    /// An absolute URL, as in requests to a proxy. The path is never empty.
    Absolute { scheme: Scheme, authority: Authority, path: String },
    /// `HOST:PORT`, for `CONNECT`.
    Authority(Authority),
    /// `*`, for `OPTIONS`.
    Asterisk,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: Target,
    pub version: Version,
    pub fields: Fields,
    /// The value of `Host`, which every HTTP/1.1 request except `CONNECT` has.
    pub host: Option<Authority>,
    pub body: Framing,
    /// Whether no other request may follow it on its connection to the server.
    pub is_last: bool,
    /// Length of the head, including the empty line.
    pub size: usize,
}

impl RequestHead {
    /// Whether the client wants to keep the connection open, and may.
    pub fn keeps_alive(&self) -> bool {
        let asks = |what| {
            self.fields.lists("connection", what) || self.fields.lists("proxy-connection", what)
        };
        !self.is_last && !asks("close") && self.version == Version::Http11
    }

    /// A body is forwarded without inspection, and some servers do not read it either (Python's `http.server`).
    /// Such a server would take the body for the next request, which was never judged. Or it would take the
    /// next request, which may contain a secret, for the rest of the body (N10).
    pub(crate) fn end_connection_if_it_has_a_body(&mut self) {
        self.is_last = self.body != Framing::NONE;
    }

    /// The protocol that the client wants to upgrade to, if it is allowed. Not `h2c`: it could carry requests
    /// for other hosts that are not inspected.
    pub fn upgrade(&self) -> Option<&'static str> {
        let wanted = self.fields.lists("connection", "upgrade");
        let websocket =
            self.fields.only("upgrade").is_some_and(|name| name.eq_ignore_ascii_case("websocket"));
        (wanted && websocket && self.body == Framing::NONE && self.version == Version::Http11)
            .then_some("websocket")
    }
}

/// Parses one head at the start of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed {
    read(bytes).unwrap_or_else(Parsed::Bad)
}

fn read(bytes: &[u8]) -> Result<Parsed, Fault> {
    let mut lines = Lines { bytes, at: 0 };
    let Some(first) = lines.next()? else { return Ok(Parsed::NeedMore) };
    let (method, target, version) = request_line(first)?;
    let mut fields = Fields::default();
    loop {
        let Some(line) = lines.next()? else { return Ok(Parsed::NeedMore) };
        if line.is_empty() {
            break;
        }
        if fields.len() == MAX_FIELDS {
            return Err(Fault::TooLarge);
        }
        let (name, value) = field(line)?;
        fields.push(name, value);
    }
    let host = host(&method, &target, version, &fields)?;
    let body = framing(version, &fields)?;
    let size = lines.at;
    let head = RequestHead { method, target, version, fields, host, body, is_last: false, size };
    Ok(Parsed::Head(Box::new(head)))
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its end, once it is complete. Incomplete lines are checked too: a client with
    /// other line endings would otherwise wait for a response that never comes.
    fn next(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let rest = &self.bytes[self.at..];
        for (index, byte) in rest.iter().enumerate() {
            if self.at + index >= MAX_HEAD_BYTES {
                return Err(Fault::TooLarge);
            }
            match (byte, rest.get(index + 1)) {
                (b'\r', Some(b'\n')) => {
                    self.at += index + 2;
                    return Ok(Some(&rest[..index]));
                }
                (b'\r', None) => return Ok(None),
                (b'\r' | b'\n', _) => return Err(Fault::LineEnd),
                (b'\t', _) => {}
                (byte, _) if byte.is_ascii_control() => return Err(Fault::Control),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn request_line(line: &[u8]) -> Result<(String, Target, Version), Fault> {
    let text = std::str::from_utf8(line).map_err(|_| Fault::RequestLine)?;
    let mut words = text.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Fault::RequestLine);
    };
    let version = match version {
        "HTTP/1.1" => Version::Http11,
        "HTTP/1.0" => Version::Http10,
        other if other.starts_with("HTTP/") => return Err(Fault::Version),
        _ => return Err(Fault::RequestLine),
    };
    if !is_token(method) || method.len() > MAX_METHOD_BYTES {
        return Err(Fault::RequestLine);
    }
    Ok((method.to_owned(), target_of(method, target)?, version))
}

fn target_of(method: &str, text: &str) -> Result<Target, Fault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(Fault::Target);
    }
    if method == "CONNECT" {
        let authority = Authority::parse(text).ok_or(Fault::Authority)?;
        return if authority.port.is_some() {
            Ok(Target::Authority(authority))
        } else {
            Err(Fault::Authority)
        };
    }
    if text.starts_with('/') {
        return Ok(Target::Origin(text.to_owned()));
    }
    if text == "*" {
        return if method == "OPTIONS" { Ok(Target::Asterisk) } else { Err(Fault::Target) };
    }
    let (scheme, rest) = text.split_once("://").ok_or(Fault::Target)?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(Fault::Target),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = Authority::parse(authority).ok_or(Fault::Authority)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Target::Absolute { scheme, authority, path })
}

fn field(line: &[u8]) -> Result<(&str, &[u8]), Fault> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(Fault::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Fault::FieldName)?;
    let name = std::str::from_utf8(&line[..colon]).map_err(|_| Fault::FieldName)?;
    if !is_token(name) {
        return Err(Fault::FieldName);
    }
    Ok((name, line[colon + 1..].trim_ascii()))
}

fn host(
    method: &str,
    target: &Target,
    version: Version,
    fields: &Fields,
) -> Result<Option<Authority>, Fault> {
    let mut values = fields.all("host");
    let named = match (values.next(), values.next()) {
        (Some(value), None) => {
            let text = std::str::from_utf8(value).map_err(|_| Fault::Host)?;
            Some(Authority::parse(text).ok_or(Fault::Host)?)
        }
        (Some(_), Some(_)) => return Err(Fault::Host),
        // The head of a CONNECT is not forwarded, so no server can interpret it differently.
        (None, _) if version == Version::Http10 || method == "CONNECT" => None,
        (None, _) => return Err(Fault::Host),
    };
    let (meant, default) = match target {
        Target::Absolute { scheme, authority, .. } => (authority, scheme.port()),
        // Some clients omit the port here.
        Target::Authority(authority) => (authority, authority.port.unwrap_or(443)),
        Target::Origin(_) | Target::Asterisk => return Ok(named),
    };
    match &named {
        Some(named) if !named.agrees(meant, default) => Err(Fault::Disagree),
        _ => Ok(named),
    }
}

fn framing(version: Version, fields: &Fields) -> Result<Framing, Fault> {
    let mut encodings = fields.all("transfer-encoding");
    let encoding = encodings.next();
    if let Some(encoding) = encoding {
        let chunked = encoding.eq_ignore_ascii_case(b"chunked");
        if !chunked || encodings.next().is_some() || version == Version::Http10 {
            return Err(Fault::Encoding);
        }
    }
    let mut length = None;
    for value in fields.all("content-length") {
        let number = number(value).ok_or(Fault::Length)?;
        if length.is_some_and(|before| before != number) {
            return Err(Fault::Length);
        }
        length = Some(number);
    }
    match (encoding, length) {
        (Some(_), Some(_)) => Err(Fault::TwoLengths),
        (Some(_), None) => Ok(Framing::Chunked),
        (None, Some(length)) => Ok(Framing::Length(length)),
        (None, None) => Ok(Framing::NONE),
    }
}

/// Digits only: no sign, list or space.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    let plain = !value.is_empty() && value.len() <= 19 && value.iter().all(u8::is_ascii_digit);
    plain.then(|| std::str::from_utf8(value).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
