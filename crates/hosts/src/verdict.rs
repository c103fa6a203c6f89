//! What the rules say of a host and a port.

use crate::BlockedAddress;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed {
        /// As it was written.
        rule: String,
    },
    Denied {
        /// As it was written, if one was.
        rule: Option<String>,
        reason: Reason,
    },
    /// Nobody said anything: denied or asked about, as the caller is set.
    Unknown,
}

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }

    /// Nobody denied it: where people are asked, they are asked about this. A yes for one port of a host says nothing
    /// about its others.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown | Self::Denied { reason: Reason::Port, .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// In a list of denied hosts, or denied by somebody's answer.
    Listed,
    /// The host is allowed on other ports, and nobody said anything about this one.
    Port,
    Address(BlockedAddress),
    /// A name that means this machine or its neighbours.
    LocalName,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("denied by a rule"),
            Self::Port => f.write_str("the port is not allowed"),
            Self::Address(blocked) => write!(f, "blocked address: {blocked}"),
            Self::LocalName => f.write_str("local names are blocked"),
        }
    }
}
