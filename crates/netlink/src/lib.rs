//! The few netlink messages that set up a network namespace: addresses, routes, links, packet rules.
//!
//! Messages apply to the namespace that their socket was created in. This must never be the host's, except
//! where a privileged caller explicitly requests it ([`veth`]). A request that the kernel refuses is an error
//! with its errno.
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
