//! The server name in a TLS ClientHello (RFC 8446, 4.1.2; RFC 6066, 3). Nothing is decrypted.
//!
//! Strict: what two parsers could read differently is invalid, because the other parser is the server's. With
//! encrypted hellos (RFC 9849) the outer name counts, which is the one the network sees.

use palisade_hosts::Host;

/// The result of parsing the first bytes of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// Incomplete.
    NeedMore,
    NotTls,
    /// The server name, if it has one.
    Name(Option<Host>),
    /// Malformed, with the reason.
    Bad(&'static str),
}

/// A ClientHello with post-quantum keys has about 2,000 bytes; none comes near this.
pub const MAX_HELLO_BYTES: usize = 16 * 1024;

const RECORD_HANDSHAKE: u8 = 22;
/// ChangeCipherSpec, alert, handshake, application data, heartbeat (RFC 8446, 5.1; RFC 6520).
const FIRST_RECORD: u8 = 20;
const LAST_RECORD: u8 = 24;
const RECORD_HEAD: usize = 5;
/// RFC 8446, 5.1.
const MAX_RECORD_BYTES: usize = 1 << 14;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Parses the server name from the first bytes of a connection.
pub fn server_name(bytes: &[u8]) -> Hello {
    match greeting(bytes) {
        Ok(body) => match read_hello(&body) {
            Ok(host) => Hello::Name(host),
            Err(why) => Hello::Bad(why),
        },
        Err(hello) => hello,
    }
}

/// The body of the ClientHello, reassembled from its records.
fn greeting(bytes: &[u8]) -> Result<Vec<u8>, Hello> {
    let mut handshake = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(body) = complete(&handshake)? {
            return Ok(body);
        }
        let first = handshake.is_empty();
        rest = match record(rest, first)? {
            Some((fragment, rest)) => {
                handshake.extend_from_slice(fragment);
                rest
            }
            None => return Err(Hello::NeedMore),
        };
    }
}

/// The handshake message without its header, if it is complete.
fn complete(handshake: &[u8]) -> Result<Option<Vec<u8>>, Hello> {
    let Some(kind) = handshake.first() else { return Ok(None) };
    if *kind != CLIENT_HELLO {
        return Err(Hello::Bad("not a greeting"));
    }
    let Some([_, a, b, c]) = handshake.first_chunk() else { return Ok(None) };
    let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
    if length > MAX_HELLO_BYTES {
        return Err(Hello::Bad("too long a greeting"));
    }
    Ok(handshake.get(4..4 + length).map(<[u8]>::to_vec))
}

/// The content of a record, and the bytes after it.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The first record. `None` if it is incomplete.
fn record(bytes: &[u8], first: bool) -> Result<Option<Record<'_>>, Hello> {
    match bytes {
        [] => return Ok(None),
        [RECORD_HANDSHAKE] => return Ok(None),
        [RECORD_HANDSHAKE, 3, ..] => {}
        // No other record may interrupt a ClientHello.
        _ if !first => return Err(Hello::Bad("a greeting that breaks off")),
        // Some servers ignore alerts before a ClientHello, and accept a first record of any version.
        [FIRST_RECORD..=LAST_RECORD, ..] => {
            return Err(Hello::Bad("TLS that does not begin with a greeting"));
        }
        // The SSL 2 ClientHello, which can request TLS 1.2 and has no server name (RFC 5246, E.2).
        [0x80..=0xff, _, CLIENT_HELLO, 3, ..] => {
            return Err(Hello::Bad("a greeting of SSL 2"));
        }
        [0x80..=0xff] | [0x80..=0xff, _] | [0x80..=0xff, _, CLIENT_HELLO] => return Ok(None),
        _ => return Err(Hello::NotTls),
    }
    let Some([_, _, _, high, low]) = bytes.first_chunk::<RECORD_HEAD>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length == 0 || length > MAX_RECORD_BYTES {
        return Err(Hello::Bad("a record of a length that is not allowed"));
    }
    let record = bytes.get(RECORD_HEAD..).unwrap_or_default();
    Ok(record.split_at_checked(length))
}

/// Reads bytes from the front. Each read fails if too few are left.
struct Reader<'a>(&'a [u8]);

type Read<T> = Result<T, &'static str>;

const CUT: &str = "a greeting that is cut short";

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Read<u8> {
        self.take(1)?.first().copied().ok_or(CUT)
    }

    fn number(&mut self) -> Read<u16> {
        let bytes = self.take(2)?;
        bytes.try_into().map(u16::from_be_bytes).map_err(|_| CUT)
    }

    /// A vector with a length prefix of one byte.
    fn short(&mut self) -> Read<&'a [u8]> {
        let length = self.byte()?;
        self.take(length.into())
    }

    /// A vector with a length prefix of two bytes.
    fn long(&mut self) -> Read<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }

    fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

fn read_hello(body: &[u8]) -> Read<Option<Host>> {
    let mut hello = Reader(body);
    let _version = hello.number()?;
    let _random = hello.take(32)?;
    if hello.short()?.len() > 32 {
        return Err("too long a session");
    }
    let suites = hello.long()?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err("a list of ciphers that makes no sense");
    }
    if hello.short()?.is_empty() {
        return Err("no compression, not even none");
    }
    if hello.is_done() {
        // TLS 1.2 allows a ClientHello without extensions.
        return Ok(None);
    }
    let mut extensions = Reader(hello.long()?);
    if !hello.is_done() {
        return Err("bytes after the greeting");
    }
    let mut name = None;
    while !extensions.is_done() {
        let kind = extensions.number()?;
        let value = extensions.long()?;
        if kind == SERVER_NAME && name.replace(read_name(value)?).is_some() {
            return Err("two server names");
        }
    }
    Ok(name)
}

fn read_name(value: &[u8]) -> Read<Host> {
    let mut value = Reader(value);
    let mut list = Reader(value.long()?);
    let kind = list.byte()?;
    let name = list.long()?;
    // The list may contain one name of each type, and only one type was ever defined.
    if kind != HOST_NAME || !list.is_done() || !value.is_done() {
        return Err("a list of server names that makes no sense");
    }
    let text = std::str::from_utf8(name).map_err(|_| "a server name that is no text")?;
    let host = Host::parse(text).map_err(|_| "a server name that is none")?;
    // The ClientHello is forwarded unchanged. What we would normalise (a trailing dot, a soft hyphen,
    // full-width letters) is a different name for the server. Case is not (RFC 6066, 3; RFC 4343).
    if !host.to_string().eq_ignore_ascii_case(text) {
        return Err("a server name that is not in its normal form");
    }
    Ok(host)
}

#[cfg(test)]
#[path = "sni_tests.rs"]
pub(crate) mod tests;
