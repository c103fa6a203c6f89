//! The life of one run: policy read, plan made, sandbox launched, watched, recorded, gone.
//!
//! This is the Rust API. It prints nothing and starts no thread; the process that calls
//! [`run::run`] hands over its signals and its terminal.
#![forbid(unsafe_code)]

pub mod answers;
mod caller;
pub mod check_path;
pub mod config;
mod deadlines;
mod error;
pub mod filter;
mod gate;
mod incidents;
mod journal;
#[cfg(feature = "layers-off")]
pub mod layers_off;
pub mod learn;
mod places;
mod relay;
mod reporting;
pub mod run;
mod screen;
mod signals;
pub mod stores;
mod supervise;
mod terminal;
mod trust;
pub mod why;

pub use caller::Caller;
pub use error::SessionError;
pub use places::Places;
pub use trust::TrustStore;
