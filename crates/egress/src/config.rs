//! The configuration of the egress process. The plan determines all of it.

use palisade_hosts::{HostEntry, Rules};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What happens to a host that no rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    Deny,
    /// The connection waits for an answer; the supervisor limits the time.
    Ask,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Open at the same time.
    pub connections: usize,
    /// Sent and received together.
    pub bytes: Option<u64>,
    pub queries_a_second: u32,
    /// For a complete HTTP or SOCKS head to arrive.
    pub head: Duration,
    /// For an outgoing connection to be established.
    pub dial: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            bytes: None,
            queries_a_second: 100,
            head: Duration::from_secs(15),
            dial: Duration::from_secs(20),
        }
    }
}

/// A proxy that all connections must use (`http://HOST:PORT`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub host: String,
    pub port: u16,
    /// The credentials for `Proxy-Authorization: Basic`, already encoded.
    pub authorization: Option<Secret>,
}

impl Upstream {
    /// Parses `http://[USER:PASSWORD@]HOST:PORT[/]`. User and password may contain `%XX`.
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (host, port) = place.rsplit_once(':')?;
        let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
        let authorization = match login {
            Some(login) => Some(Secret::new(base64(&percent_decoded(login)?))),
            None => None,
        };
        Some(Self { host: host.to_owned(), port, authorization })
    }
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push(u8::try_from(high << 4 | low).ok()?);
    }
    Some(decoded)
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| usize::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let is_padding = place > chunk.len();
            let letter = ALPHABET[bits >> (18 - 6 * place) & 0x3f];
            text.push(if is_padding { '=' } else { char::from(letter) });
        }
    }
    text
}

/// Text that must not appear in logs or debug output by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret that is inserted outside the sandbox into requests to these hosts.
#[derive(Clone, Debug)]
pub struct Credential {
    pub name: String,
    /// An entry without ports applies to every port.
    pub hosts: Vec<HostEntry>,
    /// Lower case.
    pub header: String,
    /// The whole value of the header.
    pub value: Secret,
}

/// The certificate authority of one run, trusted only inside.
#[derive(Clone, Debug)]
pub struct Authority {
    pub certificate: String,
    pub key: Secret,
}

/// The sources of name lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    pub servers: Vec<SocketAddr>,
    /// From the host's `/etc/hosts`, with names in normal form.
    pub known: Vec<(String, IpAddr)>,
}

/// Which checks are on. All of them, except in test builds that show which check stops an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Names and ports in connections, lookups and redirects.
    pub rules: bool,
    /// Addresses that names resolve to, or that clients give directly.
    pub addresses: bool,
    /// That the host in TLS and HTTP is the one that was requested.
    pub agreement: bool,
    pub strict_http: bool,
    /// Limits on numbers and on time.
    pub bounded: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { rules: true, addresses: true, agreement: true, strict_http: true, bounded: true }
    }
}

#[derive(Clone, Debug)]
pub struct Config {
    pub checks: Checks,
    pub rules: Rules,
    pub on_unknown: OnUnknown,
    pub limits: Limits,
    /// Whether the explicit proxy follows redirects of plain HTTP.
    pub follow_redirects: bool,
    pub upstream: Option<Upstream>,
    pub credentials: Vec<Credential>,
    /// If set, TLS to hosts with a credential is intercepted.
    pub authority: Option<Authority>,
    pub lookup: Lookup,
}

#[cfg(test)]
mod tests {
    use super::{Upstream, base64};

    #[test]
    fn an_upstream_proxy_is_read_with_and_without_a_login() {
        let parsed = Upstream::parse("http://proxy.example:3128").unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), ("proxy.example", 3128));
        assert_eq!(parsed.authorization, None);
        let parsed = Upstream::parse("http://us%40er:p%3Aw@[2001:db8::1]:8080/").unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), ("[2001:db8::1]", 8080));
        // us@er:p:w
        assert_eq!(parsed.authorization.unwrap().reveal(), "dXNAZXI6cDp3");
        for wrong in ["https://p:1", "http://p", "http://p:0", "http://p:99999", "http://%4:x@p:1"]
        {
            assert_eq!(Upstream::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn base64_is_as_rfc_4648_has_it() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
