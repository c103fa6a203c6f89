//! `sandbox proxy`: the egress proxy alone, one line an event.

use crate::output;
use clap::Args;
use palisade_record::EventKind;
use palisade_record::network::{ConnectionClosed, NetworkAttempt, one_port};
use palisade_session::Caller;
use palisade_session::proxy::{ProxyEvent, ProxyRequest, serve};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const ABOUT: &str = "\
Supports CONNECT, HTTP/1.1 with absolute URLs, and SOCKS 5, and connects only to what its rules allow: the hosts and \
ports of the file's `network` section, or of an `allowlist` and `blocklist`. Private, loopback and metadata addresses \
are never reached, under any name. Every attempt is printed here and recorded in the audit log.

SIGHUP reloads the file (an invalid one changes nothing), SIGTERM stops the proxy.

Example:
  sandbox proxy --config proxy.json --listen 0.0.0.0:3128";

#[derive(Debug, Args)]
#[command(after_long_help = ABOUT)]
pub(crate) struct Proxy {
    /// The rules: a policy file, in any supported format
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to listen [default: `listenAddr` in the file, or 127.0.0.1:3128]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

impl Proxy {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let request = ProxyRequest { config: self.config, listen: self.listen };
        let mut tell = |heard: ProxyEvent<'_>| {
            if self.json {
                // Standard error may be closed; the audit log has it all the same.
                let line = palisade_ask::to_line(&object(&heard)).unwrap_or_default();
                let _ = io::stderr().write_all(line.as_bytes());
            } else {
                output::note(&line(&heard));
            }
        };
        serve(&caller, &request, &mut tell)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn object(heard: &ProxyEvent<'_>) -> Value {
    match heard {
        ProxyEvent::Listening { address, session } => {
            json!({ "event": "LISTENING", "address": address, "session": session })
        }
        ProxyEvent::Happened(kind) => serde_json::to_value(kind).unwrap_or_default(),
        ProxyEvent::Note(text) => json!({ "event": "NOTE", "text": text }),
        ProxyEvent::Reread => json!({ "event": "REREAD" }),
        ProxyEvent::NotReread(error) => {
            json!({ "event": "NOT_REREAD", "error": error.to_string() })
        }
    }
}

fn line(heard: &ProxyEvent<'_>) -> String {
    match heard {
        ProxyEvent::Listening { address, session } => {
            format!("proxy {session} listens at {address}")
        }
        ProxyEvent::Happened(EventKind::NetworkAttempt(attempt)) => attempted(attempt),
        ProxyEvent::Happened(EventKind::ConnectionClosed(closed)) => ended(closed),
        ProxyEvent::Happened(kind) => format!("{kind:?}"),
        ProxyEvent::Note(text) => text.clone(),
        ProxyEvent::Reread => "the rules were reloaded".to_owned(),
        ProxyEvent::NotReread(error) => format!("the rules were not reloaded: {error}"),
    }
}

fn attempted(attempt: &NetworkAttempt) -> String {
    let verdict = if attempt.action.is_allowed() { "allowed" } else { "denied" };
    let mut text = format!("{verdict} {}", place(&attempt.host, attempt.port));
    if let Some(address) = attempt.address {
        text.push_str(&format!(" at {address}"));
    }
    match (&attempt.reason, &attempt.rule) {
        (Some(reason), _) => text.push_str(&format!(": {reason}")),
        (None, Some(rule)) => text.push_str(&format!(" by {rule}")),
        (None, None) => {}
    }
    if attempt.count > 1 {
        text.push_str(&format!(", {} times", attempt.count));
    }
    text
}

fn ended(closed: &ConnectionClosed) -> String {
    let ConnectionClosed { host, port, sent, received, duration_ms, .. } = closed;
    let place = place(host, *port);
    format!("closed {place} after {duration_ms} ms, {sent} bytes sent, {received} received")
}

fn place(host: &str, port: u16) -> String {
    one_port(port).map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
