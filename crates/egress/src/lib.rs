//! Outgoing network access of a sandbox, filtered by rules (NET-3 to NET-7).
//!
//! Runs as a helper process of the supervisor, or standalone as `sandbox proxy`. One thread, one runtime. It
//! must never connect to an address that [`engine::Engine`] did not check, and never look up a name that no
//! rule allows.
#![forbid(unsafe_code)]

mod accept;
pub mod alone;
mod asks;
pub mod config;
mod credentials;
mod datagrams;
pub mod engine;
pub mod error;
pub mod events;
pub mod explicit;
pub mod http;
mod http_server;
pub mod intercept;
mod limits;
mod line;
pub mod lookup;
mod opening;
pub mod passage;
pub mod peek;
mod pipes;
mod ports;
pub mod post;
mod publish;
mod rate;
mod refused;
mod serve;
pub mod sni;
mod socks;
#[cfg(test)]
mod test_support;
mod transparent;
mod turned_away;
pub mod wire;

pub use config::Config;
pub use engine::{certificates, dns};
pub use publish::{FILES_A_CONNECTION, Published};
pub use serve::{EgressStartup, MAX_SHUTDOWN_TIME, serve};
