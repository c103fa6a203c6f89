//! One line of an allow or deny list: `HOST[:PORT[,PORT]]`.

use crate::text::is_text_in_documents;
use crate::{Host, HostError, HostPattern};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    pub pattern: HostPattern,
    /// Sorted. `None`: the default ports of the list that contains the entry.
    pub ports: Option<Vec<u16>>,
    /// As the user wrote it, for the log.
    pub written: String,
}

impl HostEntry {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let (host, ports) = split_ports(text)?;
        let ports = ports.map(|list| parse_ports(text, list)).transpose()?;
        Ok(Self { pattern: HostPattern::parse(host)?, ports, written: text.to_owned() })
    }

    /// Whether the entry matches this host on this port. An entry without ports matches every port.
    pub fn is_about(&self, host: &Host, port: u16) -> bool {
        self.pattern.matches(host) && self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }
}

/// An IPv6 address without brackets contains colons itself, so it cannot have a port.
fn split_ports(text: &str) -> Result<(&str, Option<&str>), HostError> {
    if text.contains("://") {
        return Err(HostError::Url(text.to_owned()));
    }
    let host_end = match (text.find('/'), text.find(']')) {
        (Some(slash), _) => slash,
        (None, Some(bracket)) => bracket,
        (None, None) if text.matches(':').count() > 1 => return Ok((text, None)),
        (None, None) => 0,
    };
    Ok(match text[host_end..].find(':') {
        Some(colon) => (&text[..host_end + colon], Some(&text[host_end + colon + 1..])),
        None => (text, None),
    })
}

fn parse_ports(entry: &str, list: &str) -> Result<Vec<u16>, HostError> {
    let parse_port = |port: &str| match port.parse::<u16>() {
        // `parse` accepts a leading `+`.
        Ok(number) if number > 0 && !port.starts_with('+') => Ok(number),
        _ => Err(HostError::Port { entry: entry.to_owned(), port: port.to_owned() }),
    };
    let mut ports = list.split(',').map(parse_port).collect::<Result<Vec<_>, _>>()?;
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

is_text_in_documents!(HostEntry);

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
