//! The way out of a sandbox's network namespace, judged by rules (NET-3 to NET-7).
//!
//! Runs as a process of its own beside the supervisor, or alone as `sandbox proxy`. One thread, one runtime.
//! It must never connect to an address that [`engine::Engine`] did not check, and never look up a name that
//! no rule allows.
#![forbid(unsafe_code)]

mod accept;
mod admitted;
pub mod alone;
mod asks;
pub mod config;
mod credentials;
mod datagrams;
mod dial;
pub mod dns;
pub mod engine;
pub mod error;
pub mod events;
pub mod explicit;
pub mod http;
pub mod intercept;
mod limits;
mod line;
pub mod lookup;
mod opening;
mod own;
pub mod passage;
pub mod peek;
mod pipes;
mod publish;
mod rate;
mod refused;
mod serve;
pub mod sni;
mod socks;
#[cfg(test)]
mod test_support;
mod transparent;
pub mod tunnel;
mod turned_away;
mod upstream;
pub mod wire;

pub use config::Config;
pub use publish::{FILES_A_CONNECTION, Published};
pub use serve::{EgressStartup, LONGEST_END, serve};
