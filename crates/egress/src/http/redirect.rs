//! The target of a redirect. Whether to follow it is decided like any other outgoing connection (N08).

use super::head::{Authority, Scheme, Target};
use super::response::ResponseHead;

/// Loops must end. Browsers stop at twenty.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// A URL of HTTP without a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebAddress {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    /// Starts with `/` and includes the query.
    pub(crate) path: String,
}

impl WebAddress {
    pub(crate) fn port(&self) -> u16 {
        self.authority.port.unwrap_or(self.scheme.port())
    }

    pub(crate) fn of(target: &Target) -> Option<Self> {
        match target {
            Target::Absolute { scheme, authority, path } => {
                Some(Self { scheme: *scheme, authority: authority.clone(), path: path.clone() })
            }
            _ => None,
        }
    }

    pub(crate) fn target(&self) -> Target {
        let Self { scheme, authority, path } = self.clone();
        Target::Absolute { scheme, authority, path }
    }

    /// Resolves `location` relative to this URL. `None` if it is not a URL of HTTP.
    pub(crate) fn join(&self, location: &str) -> Option<Self> {
        let location = location.split('#').next().unwrap_or_default();
        if location.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return None;
        }
        if let Some((scheme, rest)) = split_scheme(location) {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                _ => return None,
            };
            return Self::with(scheme, rest.strip_prefix("//")?);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::with(self.scheme, rest);
        }
        let (own_path, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let path = match location.chars().next() {
            None => self.path.clone(),
            Some('/') => without_dots(location),
            Some('?') => format!("{own_path}{location}"),
            Some(_) => {
                let directory = &own_path[..=own_path.rfind('/').unwrap_or(0)];
                without_dots(&format!("{directory}{location}"))
            }
        };
        Some(Self { path, ..self.clone() })
    }

    fn with(scheme: Scheme, rest: &str) -> Option<Self> {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A user in the URL makes it invalid: no credentials are sent, and a browser would ask first.
        let authority = Authority::parse(authority)?;
        let path = if path.starts_with('/') { without_dots(path) } else { format!("/{path}") };
        Some(Self { scheme, authority, path })
    }
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let own = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (scheme.starts_with(|one: char| one.is_ascii_alphabetic()) && scheme.bytes().all(own))
        .then_some((scheme, rest))
}

/// RFC 3986, 5.2.4. The query is not changed.
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

/// The URL that a response redirects to.
pub(crate) fn leads_to(answer: &ResponseHead, from: &WebAddress) -> Option<WebAddress> {
    let redirects = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
    let location = redirects.then(|| answer.fields.only("location")).flatten()?;
    from.join(location)
}

#[cfg(test)]
#[path = "redirect_tests.rs"]
mod tests;
