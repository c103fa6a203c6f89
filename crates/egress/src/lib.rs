//! The way out of a sandbox's network namespace, judged by rules (NET-3 to NET-7).
//!
//! Runs as a process of its own beside the supervisor, or alone as `sandbox proxy`. One thread, one runtime.
//! It must never connect to an address that [`engine::Engine`] did not check, and never look up a name that
//! no rule allows.
#![forbid(unsafe_code)]

pub mod config;
pub mod wire;
