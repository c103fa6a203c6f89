//! The life of one run: policy read, plan made, sandbox launched, watched, recorded, gone.
//!
//! This is the Rust API. It prints nothing and starts no thread; the process that calls
//! [`run::run`] hands over its signals and its terminal.
#![forbid(unsafe_code)]

pub mod answers;
mod asking;
mod caller;
pub mod check_path;
mod conclusion;
pub mod config;
mod core_file;
mod deadlines;
mod death;
mod discarded;
mod egress;
mod ending;
mod error;
mod familiar;
pub mod filter;
mod gate;
mod incidents;
mod journal;
#[cfg(feature = "layers-off")]
pub mod layers_off;
pub mod learn;
mod limits;
mod log_budget;
mod normalize;
mod offline;
mod output;
mod places;
mod poll_set;
mod process;
pub mod proxy;
mod relay;
mod reporting;
pub mod run;
pub mod runs;
mod screen;
mod signals;
pub mod stores;
mod supervise;
mod terminal;
mod tree_locks;
mod trust;
pub mod why;

pub use asking::AskIn;
pub use caller::Caller;
pub use death::die_like;
pub use ending::Ending;
pub use error::SessionError;
pub use palisade_plan::agents;
pub use places::Places;
pub use trust::TrustStore;
