//! A host: a name or an address. Only this module decides which of the two a text is.
//!
//! An IPv4 address is IPv4 in every notation, including IPv4-mapped IPv6 (`::ffff:192.0.2.1`).

use crate::name::to_ascii;
use crate::number::{ends_in_number, parse_v4};
use crate::text::is_text_in_documents;
use crate::{HostError, Name};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(Name),
    Address(IpAddr),
}

impl Host {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(open) = text.strip_prefix('[') {
            let inner = open.strip_suffix(']').ok_or_else(|| HostError::NotV6(text.to_owned()))?;
            return parse_v6(inner).map(Self::from);
        }
        if text.contains("://") {
            return Err(HostError::Url(text.to_owned()));
        }
        if text.contains(':') {
            return parse_v6(text).map(Self::from);
        }
        let ascii = to_ascii(text)?;
        if ends_in_number(&ascii) {
            let address = parse_v4(&ascii).ok_or_else(|| HostError::Number(text.to_owned()))?;
            return Ok(Self::Address(address.into()));
        }
        Name::from_ascii(ascii).map(Self::Name)
    }
}

fn parse_v6(text: &str) -> Result<IpAddr, HostError> {
    if text.contains('%') {
        return Err(HostError::Zone(text.to_owned()));
    }
    text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| HostError::NotV6(text.to_owned()))
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl From<Name> for Host {
    fn from(name: Name) -> Self {
        Self::Name(name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

is_text_in_documents!(Host);

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
