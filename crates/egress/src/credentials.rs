//! Secrets that are put into requests outside, so that nobody inside ever has them.
//!
//! Only for the hosts that a credential names, and only as the value of its field. A placeholder anywhere else
//! goes out as it is: it is worth nothing. Where TLS can be opened, a secret must never go out in clear.

use crate::config::{Config, Credential};
use crate::http::fields::Fields;
use crate::http::head::Scheme;
use palisade_hosts::Host;

fn of<'a>(config: &'a Config, host: &'a Host) -> impl Iterator<Item = &'a Credential> {
    let names = move |one: &&Credential| one.hosts.iter().any(|pattern| pattern.matches(host));
    config.credentials.iter().filter(names)
}

/// Whether there is one for this host.
pub(crate) fn exist(config: &Config, host: &Host) -> bool {
    of(config, host).next().is_some()
}

/// Whether a request to this host gets one.
pub(crate) fn are_due(config: &Config, host: &Host, scheme: Scheme) -> bool {
    exist(config, host) && (scheme == Scheme::Https || config.authority.is_none())
}

/// What the client itself said in those fields does not go out.
pub(crate) fn add(config: &Config, host: &Host, fields: &mut Fields) {
    for credential in of(config, host) {
        fields.set(&credential.header, credential.value.reveal().as_bytes());
    }
}
