//! Decides how the sandbox reaches the network (NET-1, NET-3, NET-8, NET-9), and which files it needs in the
//! view: name resolution, the certificate authority.

mod choose;
mod files;
mod names;
#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;

pub use choose::proxy_alone;
pub(crate) use choose::{Chosen, PROXY_VARIABLES, choose, credentials};
pub(crate) use files::{AUTHORITY, add_authority};
pub(crate) use names::{Naming, add_name_files};

use std::net::Ipv4Addr;

/// The resolver of slirp4netns, according to its manual page.
pub(crate) const SLIRP_RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
