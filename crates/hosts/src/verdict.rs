//! The verdict of the rules on a host and port.

use crate::BlockedAddress;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed {
        /// As it was written.
        rule: String,
    },
    Denied {
        /// As it was written, if a rule caused the denial.
        rule: Option<String>,
        reason: Reason,
    },
    /// No rule matches. The caller's configuration decides whether to deny it or to ask.
    Unknown,
}

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }

    /// Whether a person may be asked about it, because no rule denies it. A yes for one port of a host does not
    /// cover its other ports.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown | Self::Denied { reason: Reason::Port, .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// In the list of denied hosts, or denied by a person's answer.
    Listed,
    /// The host is allowed on other ports, and no rule covers this one.
    Port,
    Address(BlockedAddress),
    /// A name of this machine or its local network.
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
