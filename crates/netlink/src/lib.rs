//! The few netlink messages that set up a network namespace: addresses, routes, links, packet rules.
//!
//! It speaks to the namespace that its sockets were made in, and must never be used in the host's but for
//! what a privileged caller asked for by name ([`veth`]). What the kernel refuses is an error with its errno.
#![forbid(unsafe_code)]

mod attributes;
mod fence;
mod message;
mod nft;
mod refusals;
mod route;
mod socket;
pub mod veth;

pub use fence::{Fence, block, fence};
pub use refusals::{Refusal, Refusals, refusals};
pub use route::{Families, is_local, link_addresses, loopback_for_everything};
pub use socket::Socket;
