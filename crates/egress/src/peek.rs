//! What a client says first, read before one byte of it goes on.
//!
//! HTTP and TLS name the host they want, so they are told apart from everything else here. In doubt it is
//! HTTP: what the strict parser refuses does no harm, what a lenient server finds in "something else" could.

use crate::http::fields::is_of_token;
use crate::sni::{self, Hello};
use palisade_hosts::Host;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A greeting that is cut into many records takes more than one in a single record; not this much.
const MOST_BYTES: usize = 2 * sni::LONGEST_HELLO;
const CHUNK: usize = 4 * 1024;
/// A client that has more to say says it by then; longer than it takes to write a line in two pieces.
const PAUSE: Duration = Duration::from_millis(50);

/// What the first bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Http,
    /// TLS, with the host that it names.
    Tls(Option<Host>),
    Other,
    /// A word so far, and then silence. What follows may make a request of it.
    Unclear,
    /// TLS that makes no sense, or bytes that come too slowly to be told.
    Bad(&'static str),
}

/// The first bytes of a client.
#[derive(Debug, Default)]
pub struct First {
    pub bytes: Vec<u8>,
    /// It will send no more.
    ended: bool,
}

impl First {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, ended: false }
    }

    /// Reads until it is clear what they are, or until a client waits for an answer to what is not clear. The
    /// first byte may take as long as it likes, the others that decide must come within `limit`. May be dropped
    /// at any point; what was read stays.
    pub async fn decide(
        &mut self,
        client: &TcpStream,
        limit: Option<Duration>,
    ) -> io::Result<Kind> {
        if self.bytes.is_empty() && !self.ended {
            self.read(client).await?;
        }
        let deciding = async {
            loop {
                match classify(&self.bytes) {
                    Some(kind) => return Ok(kind),
                    // Nothing follows: no request, and no greeting.
                    None if self.ended => return Ok(Kind::Other),
                    None if sni::server_name(&self.bytes) == Hello::NeedMore => {
                        self.read(client).await?;
                    }
                    None => match timeout(PAUSE, self.read(client)).await {
                        Ok(read) => read?,
                        Err(_silence) => return Ok(Kind::Unclear),
                    },
                }
            }
        };
        match limit {
            None => deciding.await,
            Some(limit) => {
                let late = Kind::Bad("first bytes that come too slowly");
                timeout(limit, deciding).await.unwrap_or(Ok(late))
            }
        }
    }

    /// Returns when the client will send no more, keeping what it sends until then as far as that is needed.
    pub async fn end(&mut self, client: &TcpStream) {
        while !self.ended {
            if self.bytes.len() > MOST_BYTES {
                return std::future::pending().await;
            }
            if self.read(client).await.is_err() {
                return;
            }
        }
    }

    /// Waits for more of them, or for the end.
    pub async fn read(&mut self, client: &TcpStream) -> io::Result<()> {
        self.bytes.reserve(CHUNK);
        loop {
            client.readable().await?;
            match client.try_read_buf(&mut self.bytes) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// `None`: more bytes must come before it can be told.
pub fn classify(bytes: &[u8]) -> Option<Kind> {
    let kind = match sni::server_name(bytes) {
        Hello::NeedMore => None,
        Hello::Name(host) => Some(Kind::Tls(host)),
        Hello::Bad(why) => Some(Kind::Bad(why)),
        Hello::NotTls => request(bytes).map(|http| if http { Kind::Http } else { Kind::Other }),
    };
    let endless = bytes.len() > MOST_BYTES;
    kind.or(endless.then_some(Kind::Bad("a beginning without an end")))
}

/// Whether it is the beginning of an HTTP request: a word, blanks, and something that can be asked for; or any line
/// that names a version of HTTP.
///
/// Methods can be any word, and servers pass on words they do not know. Empty lines before it are skipped, for
/// servers skip them (RFC 9112, 2.2), and so are blanks that only some of them take for such.
fn request(bytes: &[u8]) -> Option<bool> {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let line = bytes.get(start..).unwrap_or_default();
    let word = line.iter().position(|byte| !is_of_token(*byte))?;
    let (method, rest) = line.split_at(word);
    if method.is_empty() || !rest.first().is_some_and(is_blank) {
        return names_http(line);
    }
    let target = rest.iter().position(|byte| !is_blank(byte))?;
    let target = rest.get(target..).unwrap_or_default();
    if method.eq_ignore_ascii_case(b"connect") {
        return Some(true);
    }
    match target.first()? {
        b'/' if is_git(method) => is_http_despite_git(target),
        b'/' | b'*' => Some(true),
        _ => names_http(line),
    }
}

/// Whether a line that does not look like a request is one to a lenient server: its end says so, `HTTP/1.1`. The end
/// has to be waited for; a NUL is one as well, for it is in nobody's text and soon in everything that is none.
fn names_http(line: &[u8]) -> Option<bool> {
    const LONGEST_LINE: usize = 8 * 1024;
    match line.iter().position(|byte| matches!(byte, b'\n' | 0)) {
        Some(end) => {
            let (line, _) = line.split_at(end);
            Some(line.windows(VERSION.len()).any(|part| part.eq_ignore_ascii_case(VERSION)))
        }
        None if line.len() > LONGEST_LINE => Some(true),
        None => None,
    }
}

const VERSION: &[u8] = b"HTTP/";

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// `git://` begins with a length in hexadecimal digits, the name of a service and a path (gitprotocol-pack(5)).
fn is_git(method: &[u8]) -> bool {
    method.split_at_checked(4).is_some_and(|(length, service)| {
        length.iter().all(u8::is_ascii_hexdigit) && service.starts_with(b"git-")
    })
}

/// Its path ends in a NUL, which no server of HTTP takes.
fn is_http_despite_git(target: &[u8]) -> Option<bool> {
    target.iter().find(|byte| matches!(byte, 0 | b'\n')).map(|end| *end == b'\n')
}

#[cfg(test)]
#[path = "peek_tests.rs"]
mod tests;
