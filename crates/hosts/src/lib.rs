//! Network hosts and the rules about them: names, addresses, patterns, ports and ranges that are always
//! blocked.
//!
//! Pure: nothing here resolves a name, opens a file or asks a person. Every host has one normal form, so two
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
