//! What is done about an attempt to break out (ESC-1).

use serde::{Deserialize, Serialize, Serializer};

/// From the mildest to the hardest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscapeAction {
    /// Not even recorded as an attempt.
    Ignore,
    Warn,
    /// Ends the run.
    Kill,
    /// Ends it, discards its transaction, and keeps the tool from running again.
    Quarantine,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Escape {
    pub on_low: EscapeAction,
    pub on_medium: EscapeAction,
    pub on_high: EscapeAction,
    pub on_critical: EscapeAction,
    /// The first indicator is enough for a quarantine.
    pub strict: bool,
    /// Whether a desktop notification alerts.
    pub desktop: bool,
    /// Where alerts are posted; serialized without path and login, which are usually secret.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "without_path")]
    pub webhook: Option<String>,
}

/// For serde: a serialized policy or plan must not reveal the secret part.
fn without_path<S: Serializer>(webhook: &Option<String>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_some(&webhook.as_deref().map(shown_webhook))
}

/// The address of a webhook without what is secret in it.
pub fn shown_webhook(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let place = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, place)| place);
    format!("{scheme}://{place}/…")
}

/// The parts of a URL that alerts may be posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// With the query.
    pub path: String,
}

impl WebhookUrl {
    /// None if it is no such URL: `https` is needed for anything but a loopback address, and there is no login in it.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let is_plain = url.len() <= 2048 && url.bytes().all(|byte| byte.is_ascii_graphic());
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        if !is_plain || place.contains('@') || path.contains('#') {
            return None;
        }
        let has_port = place.rsplit_once(':').filter(|(host, _)| {
            !host.contains(':') || (host.starts_with('[') && host.ends_with(']'))
        });
        let (host, port) = match has_port {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)?),
            None => (place, if is_tls { 443 } else { 80 }),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_loopback = host
            .parse::<std::net::IpAddr>()
            .map_or(host == "localhost", |address| address.is_loopback());
        let is_host = palisade_hosts::Host::parse(host).is_ok();
        let is_allowed = is_loopback || (is_tls && is_host);
        if !is_allowed {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { is_tls, host: host.to_owned(), port, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_or_loopback_and_the_secret_part_is_not_shown() {
        let parsed = |url| WebhookUrl::parse(url).map(|it| (it.is_tls, it.host, it.port, it.path));
        let some = |tls, host: &str, port, path: &str| Some((tls, host.into(), port, path.into()));
        assert_eq!(parsed("https://a.example/x?y"), some(true, "a.example", 443, "/x?y"));
        assert_eq!(parsed("http://127.0.0.1:8080"), some(false, "127.0.0.1", 8080, "/"));
        assert_eq!(parsed("http://[::1]:81/a"), some(false, "::1", 81, "/a"));
        assert_eq!(parsed("http://localhost/"), some(false, "localhost", 80, "/"));
        for bad in [
            "http://a.example/",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
            "https://u:p@a.example/",
            "https://a.example/\r\nX: y",
            "https://a.example:0/",
            "https://",
            "http://127.0.0.1@evil.example/",
            "http://localhost.evil.example/",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        assert_eq!(shown_webhook("https://a.example/hooks/T0KEN?x"), "https://a.example/…");
        assert_eq!(shown_webhook("https://u:p@a.example"), "https://a.example/…");
    }
}
