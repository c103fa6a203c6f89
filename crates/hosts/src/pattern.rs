//! Patterns that select the hosts a rule applies to.
//!
//! A pattern for names never matches an address, and a pattern for addresses never matches a name. Only `*`
//! matches both.

use crate::text::is_text_in_documents;
use crate::{Host, HostError, Name};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// Two patterns are equal if they match the same hosts, however they are written.
#[derive(Clone, Debug)]
pub struct HostPattern {
    written: String,
    shape: Shape,
}

impl PartialEq for HostPattern {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
    }
}

impl Eq for HostPattern {}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Everything,
    Exactly(Name),
    /// At any depth.
    Below(Name),
    BelowAndApex(Name),
    Range(IpNet),
}

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        Ok(Self { written: text.to_owned(), shape: Shape::parse(text)? })
    }

    pub fn matches(&self, host: &Host) -> bool {
        match (&self.shape, host) {
            (Shape::Everything, _) => true,
            (Shape::Exactly(exact), Host::Name(name)) => exact == name,
            (Shape::Below(apex), Host::Name(name)) => is_below(name, apex),
            (Shape::BelowAndApex(apex), Host::Name(name)) => name == apex || is_below(name, apex),
            (Shape::Range(range), Host::Address(address)) => {
                range.contains(&address.to_canonical())
            }
            _ => false,
        }
    }

    /// The range of addresses that it matches, if it is a pattern for addresses.
    pub fn range(&self) -> Option<IpNet> {
        match self.shape {
            Shape::Range(range) => Some(range),
            _ => None,
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }
}

fn is_below(name: &Name, apex: &Name) -> bool {
    let above = name.as_str().strip_suffix(apex.as_str());
    above.is_some_and(|labels| labels.ends_with('.'))
}

impl Shape {
    fn parse(text: &str) -> Result<Self, HostError> {
        if text == "*" {
            return Ok(Self::Everything);
        }
        if text.contains("://") {
            return Err(HostError::Url(text.to_owned()));
        }
        if text.contains('/') {
            return parse_range(text).map(Self::Range);
        }
        let apex = |rest: &str| match rest.contains('*') {
            true => Err(HostError::Wildcard(text.to_owned())),
            false => Name::parse(rest),
        };
        if let Some(rest) = text.strip_prefix("**.") {
            return apex(rest).map(Self::BelowAndApex);
        }
        if let Some(rest) = text.strip_prefix("*.") {
            return apex(rest).map(Self::Below);
        }
        if text.contains('*') {
            return Err(HostError::Wildcard(text.to_owned()));
        }
        Ok(match Host::parse(text)? {
            Host::Name(name) => Self::Exactly(name),
            Host::Address(address) => Self::Range(address.into()),
        })
    }
}

fn parse_range(text: &str) -> Result<IpNet, HostError> {
    let invalid = || HostError::Range(text.to_owned());
    let (base, length) = text.split_once('/').ok_or_else(invalid)?;
    let base = base.strip_prefix('[').and_then(|open| open.strip_suffix(']')).unwrap_or(base);
    let base: IpAddr = base.parse().map_err(|_| invalid())?;
    // `parse` accepts a leading `+`.
    let length = length.parse::<u8>().ok().filter(|_| !length.starts_with('+'));
    let length = length.ok_or_else(invalid)?;
    let range = canonical_range(base, length).ok_or_else(invalid)?;
    if range.addr() != range.network() {
        let meant = range.trunc().to_string();
        return Err(HostError::RangeBits { written: text.to_owned(), meant });
    }
    Ok(range)
}

/// A range of IPv4-mapped addresses becomes an IPv4 range, because hosts are never in mapped form.
fn canonical_range(base: IpAddr, length: u8) -> Option<IpNet> {
    let is_mapped = base.is_ipv6() && base.to_canonical().is_ipv4();
    match is_mapped {
        true if length >= 96 => IpNet::new(base.to_canonical(), length - 96).ok(),
        true => None,
        false => IpNet::new(base, length).ok(),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

is_text_in_documents!(HostPattern);

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
