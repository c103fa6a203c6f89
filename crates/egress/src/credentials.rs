//! Secrets that are inserted into requests outside the sandbox, so that no process inside ever has them.
//!
//! Only for the hosts that a credential names, and only as the value of its field. A placeholder anywhere else
//! is sent unchanged: it is worthless. Where TLS can be intercepted, a secret must never be sent in clear text.

use crate::config::{Config, Credential};
use crate::http::fields::Fields;
use crate::http::head::Scheme;
use palisade_hosts::Host;

fn of<'a>(config: &'a Config, host: &'a Host, port: u16) -> impl Iterator<Item = &'a Credential> {
    let names = move |one: &&Credential| one.hosts.iter().any(|entry| entry.is_about(host, port));
    config.credentials.iter().filter(names)
}

/// Whether a credential exists for this host and port.
pub(crate) fn exist(config: &Config, host: &Host, port: u16) -> bool {
    of(config, host, port).next().is_some()
}

/// Whether a request to this host and port gets a credential.
pub(crate) fn are_due(config: &Config, host: &Host, port: u16, scheme: Scheme) -> bool {
    exist(config, host, port) && (scheme == Scheme::Https || config.authority.is_none())
}

/// Replaces the client's own values of these fields.
pub(crate) fn add(config: &Config, host: &Host, port: u16, fields: &mut Fields) {
    for credential in of(config, host, port) {
        fields.set(&credential.header, credential.value.reveal().as_bytes());
    }
}
