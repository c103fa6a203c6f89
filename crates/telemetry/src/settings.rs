//! Where to send what: the standard variables of OpenTelemetry, and nothing else.
//!
//! They are read from the environment of the person who starts us. A policy cannot say this, least of all a project's: it would
//! otherwise learn what runs here, and be sent the headers.

use crate::model::Attribute;
use std::time::Duration;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
/// Ours: whether spans have the masked beginning of command lines and the paths of questions.
const COMMAND_LINES: &str = "PALISADE_OTEL_COMMAND_LINES";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// A run that is over must not leave a process behind for long.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_HEADERS: usize = 32;
const MAX_RESOURCE: usize = 64;

/// Sending is off, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "OTLP is off: {variable}={value} is not supported; set it to http/protobuf or http/json, and the endpoint to the HTTP port of the collector, usually 4318"
    )]
    Protocol { variable: String, value: String },
    #[error("OTLP is off: {variable}: {value} is no http or https address")]
    Endpoint { variable: String, value: String },
    #[error("OTLP is off: {variable}: {why}")]
    Headers { variable: String, why: &'static str },
    #[error("OTLP is off: {variable}={value} is not supported; set it to otlp or none")]
    Exporter { variable: String, value: String },
    #[error("OTLP is off: {variable}={value} is no number of milliseconds")]
    Timeout { variable: String, value: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    HttpProtobuf,
    HttpJson,
}

/// Where one of both signals goes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// With the query; begins with a slash.
    pub(crate) path: String,
    pub(crate) protocol: Protocol,
    /// Names and values. They may be secret.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({}:{}{})", self.host, self.port, self.path)
    }
}

/// What the variables say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub(crate) traces: Option<Target>,
    pub(crate) metrics: Option<Target>,
    pub(crate) resource: Vec<Attribute>,
    pub(crate) shows_commands: bool,
    /// Whether a failure is told, for which a run waits until it is known.
    pub(crate) is_told: bool,
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// None: nothing is to be sent. An empty variable counts as one that is not set.
    pub fn of(variable: Variables<'_>) -> Result<Option<Self>, SettingsError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_set = [ENDPOINT, TRACES_ENDPOINT, METRICS_ENDPOINT]
            .iter()
            .any(|name| variable(name).is_some());
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !is_set || is_disabled {
            return Ok(None);
        }
        let traces = target(&variable, "TRACES", "/v1/traces")?;
        let metrics = target(&variable, "METRICS", "/v1/metrics")?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let level = variable("OTEL_LOG_LEVEL").unwrap_or_default().to_lowercase();
        Ok(Some(Self {
            traces,
            metrics,
            resource: resource(&variable),
            shows_commands: variable(COMMAND_LINES).is_some_and(|value| value == "1"),
            is_told: matches!(level.as_str(), "info" | "debug" | "verbose" | "all"),
        }))
    }

    /// Whether spans are sent.
    pub fn has_traces(&self) -> bool {
        self.traces.is_some()
    }

    pub fn has_metrics(&self) -> bool {
        self.metrics.is_some()
    }

    pub fn shows_commands(&self) -> bool {
        self.shows_commands
    }

    /// Whether the person wants to know of what could not be sent.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// The longest that sending what is left may take.
    pub(crate) fn patience(&self) -> Duration {
        let targets = [&self.traces, &self.metrics].into_iter().flatten();
        targets.map(|target| target.timeout).max().unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// One signal: its own variables go before those for all.
fn target(
    variable: Variables<'_>,
    signal: &str,
    path: &str,
) -> Result<Option<Target>, SettingsError> {
    let exporter = format!("OTEL_{signal}_EXPORTER");
    match variable(&exporter).as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(None),
        Some(value) => {
            return Err(SettingsError::Exporter { variable: exporter, value: value.to_owned() });
        }
    }
    let either = |what: &str| {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
        let common = format!("OTEL_EXPORTER_OTLP_{what}");
        let own = variable(&own).map(|value| (own, value));
        own.or_else(|| variable(&common).map(|value| (common, value)))
    };
    let Some((name, endpoint)) = either("ENDPOINT") else { return Ok(None) };
    let protocol = match either("PROTOCOL") {
        None => Protocol::HttpProtobuf,
        Some((_, value)) if value == "http/protobuf" => Protocol::HttpProtobuf,
        Some((_, value)) if value == "http/json" => Protocol::HttpJson,
        Some((variable, value)) => return Err(SettingsError::Protocol { variable, value }),
    };
    let timeout = match either("TIMEOUT") {
        None => DEFAULT_TIMEOUT,
        Some((variable, value)) => match value.parse() {
            Ok(milliseconds) => Duration::from_millis(milliseconds).min(MAX_TIMEOUT),
            Err(_) => return Err(SettingsError::Timeout { variable, value }),
        },
    };
    let headers = match either("HEADERS") {
        None => Vec::new(),
        Some((variable, value)) => {
            headers(&value).map_err(|why| SettingsError::Headers { variable, why })?
        }
    };
    let Some((is_tls, host, port, given)) = address(&endpoint) else {
        return Err(SettingsError::Endpoint { variable: name, value: without_user(&endpoint) });
    };
    // The common endpoint is a base, that of one signal is used as it is.
    let path = match name == ENDPOINT {
        true => format!("{}{path}", given.trim_end_matches('/')),
        false if given.is_empty() => "/".to_owned(),
        false => given,
    };
    Ok(Some(Target { is_tls, host, port, path, protocol, headers, timeout }))
}

/// Whether it is TLS, the host, the port and the path of an address.
fn address(text: &str) -> Option<(bool, String, u16, String)> {
    let (is_tls, rest) = match text.split_once("://")? {
        ("http", rest) => (false, rest),
        ("https", rest) => (true, rest),
        _ => return None,
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => {
            if is_tls {
                443
            } else {
                80
            }
        }
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_host = !host.is_empty() && (host.contains(':') || host.bytes().all(is_name));
    let is_path = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    (is_host && is_path && port > 0).then(|| (is_tls, host.to_owned(), port, path))
}

/// A password in an address must not get into a message.
fn without_user(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => text.to_owned(),
    }
}

/// `name=value,name=value`, with values in percent encoding (W3C Baggage).
fn headers(text: &str) -> Result<Vec<(String, String)>, &'static str> {
    let mut headers = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("write NAME=VALUE,NAME=VALUE")?;
        let (name, value) = (name.trim(), unescaped(value.trim()));
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("a name is no name of a header");
        }
        let Some(value) = value.filter(|value| value.bytes().all(|it| matches!(it, b' '..=b'~')))
        else {
            return Err("a value has a character that no header can have");
        };
        // They would make it another request.
        let is_ours = ["host", "content-length", "content-type", "transfer-encoding", "connection"]
            .iter()
            .any(|ours| name.eq_ignore_ascii_case(ours));
        if is_ours {
            return Err(
                "Host, Content-Length, Content-Type, Transfer-Encoding and Connection are ours to set",
            );
        }
        headers.push((name.to_owned(), value));
    }
    if headers.len() > MAX_HEADERS { Err("more than 32 headers") } else { Ok(headers) }
}

/// None: what it stands for is no text.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()));
        match (first, escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// What all spans have in common. What cannot be read in it is left out, as the specification says.
fn resource(variable: Variables<'_>) -> Vec<Attribute> {
    let given = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let given = given.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), unescaped(value.trim())?);
        (!name.is_empty()).then(|| Attribute::new(name, value))
    });
    let mut resource: Vec<Attribute> = given.take(MAX_RESOURCE).collect();
    let has = |resource: &[Attribute], name: &str| resource.iter().any(|it| it.name == name);
    match variable("OTEL_SERVICE_NAME") {
        Some(name) => {
            resource.retain(|it| it.name != "service.name");
            resource.push(Attribute::new("service.name", name));
        }
        None if !has(&resource, "service.name") => {
            resource.push(Attribute::new("service.name", "palisade"));
        }
        None => {}
    }
    for (name, value) in [
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("telemetry.sdk.name", "palisade"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ] {
        if !has(&resource, name) {
            resource.push(Attribute::new(name, value));
        }
    }
    resource
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
