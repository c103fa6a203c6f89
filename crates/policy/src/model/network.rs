//! Structured values of the `network` section: published ports, credentials, the upstream proxy. In their
//! resolved form; `decode` parses them.

use palisade_hosts::HostEntry;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A port of the host that is forwarded to one in the sandbox: `[ADDRESS:]PORT:INNER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublishedPort {
    pub address: IpAddr,
    pub port: u16,
    pub inner: u16,
}

/// A secret that is added to requests to some hosts outside the sandbox. The sandbox never contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// The variable that contains a placeholder in the sandbox.
    pub name: String,
    pub from: SecretSource,
    /// An entry without a port applies to every allowed port.
    pub hosts: Vec<HostEntry>,
    /// Lower case.
    pub header: String,
    /// The header's value; `{}` stands for the secret.
    pub format: String,
}

/// Where the secret is stored outside the sandbox: `env:VARIABLE` or `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum SecretSource {
    Env(String),
    /// As written, with `~` and variables.
    File(String),
}

/// The text does not have the form that its key requires. Contains that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not in the form {0}")]
pub struct WrongForm(&'static str);

pub(crate) const PUBLISH_FORM: &str = "[ADDRESS:]PORT:INNER, such as 8080:80 or 0.0.0.0:8080:80";
pub(crate) const SOURCE_FORM: &str = "env:VARIABLE or file:PATH";

impl FromStr for PublishedPort {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        let parsed = text.rsplit_once(':').and_then(|(outer, inner)| {
            let (address, port) = match outer.rsplit_once(':') {
                Some((address, port)) => (address_of(address)?, port),
                None => (Ipv4Addr::LOCALHOST.into(), outer),
            };
            Some(Self { address, port: port_of(port)?, inner: port_of(inner)? })
        });
        parsed.ok_or(WrongForm(PUBLISH_FORM))
    }
}

fn address_of(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => text.parse().ok().map(IpAddr::V4),
    }
}

pub(crate) fn port_of(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_plain && *port > 0)
}

impl fmt::Display for PublishedPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, port, inner } = self;
        match address {
            IpAddr::V4(address) => write!(out, "{address}:{port}:{inner}"),
            IpAddr::V6(address) => write!(out, "[{address}]:{port}:{inner}"),
        }
    }
}

impl FromStr for SecretSource {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() && !path.contains('\0') => {
                Ok(Self::File(path.to_owned()))
            }
            _ => Err(WrongForm(SOURCE_FORM)),
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(out, "env:{name}"),
            Self::File(path) => write!(out, "file:{path}"),
        }
    }
}

macro_rules! is_text_in_documents {
    ($type:ty) => {
        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = WrongForm;

            fn try_from(text: String) -> Result<Self, WrongForm> {
                text.parse()
            }
        }
    };
}

is_text_in_documents!(PublishedPort);
is_text_in_documents!(SecretSource);

/// A proxy's URL without user and password. Also works for invalid URLs, for use in errors.
pub fn shown_upstream(url: &str) -> String {
    let Some((login, place)) = url.rsplit_once('@') else { return url.to_owned() };
    match login.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://…@{place}"),
        None => format!("…@{place}"),
    }
}

/// For serde: a serialized policy or plan must not reveal the login.
pub fn without_login<S: serde::Serializer>(
    upstream: &Option<String>,
    out: S,
) -> Result<S::Ok, S::Error> {
    out.serialize_some(&upstream.as_deref().map(shown_upstream))
}

pub(crate) fn is_variable(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty()
        && text.chars().all(valid)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}
