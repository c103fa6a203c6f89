//! Places on the network, and rules about them: names, addresses, patterns, ports, and what is never allowed.
//!
//! Pure: nothing here looks a name up, opens a file or asks anybody. Every host has one form, so that two
//! spellings of it can never be judged differently.
#![forbid(unsafe_code)]

mod entry;
mod error;
mod host;
pub mod inside;
mod name;
mod number;
mod pattern;
mod range;
pub mod registry;
mod rules;
mod table;
mod text;
mod verdict;

pub use entry::HostEntry;
pub use error::HostError;
pub use host::Host;
pub use inside::{INSIDE_V4, INSIDE_V6, PROXY_PORT};
/// A range of addresses.
pub use ipnet::IpNet;
pub use name::Name;
pub use pattern::HostPattern;
pub use range::{BlockedAddress, always_blocked, blocked_ranges, private_ranges};
pub use rules::Rules;
pub use verdict::{Reason, Verdict};
