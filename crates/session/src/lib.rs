//! The lifecycle of one run: reads the policy, makes the plan, launches the sandbox, supervises it, records and cleans
//! up.
//!
//! This is the Rust API of our own programs; `crates/api` is the one for other programs. It must never print or start a thread. The process that calls [`run::run`] hands over its
//! signals and its terminal.
#![forbid(unsafe_code)]

pub mod answers;
mod app_dirs;
pub mod background;
pub mod caches;
mod caller;
pub mod check_path;
mod complaint;
pub mod config;
mod core_file;
mod death;
mod discarded;
mod egress;
mod ending;
mod error;
pub mod escape;
mod familiar;
pub mod files;
pub mod filter;
pub mod foreground;
pub mod given_variables;
pub mod inputs;
mod journal;
mod kept_layer;
#[cfg(feature = "layers-off")]
pub mod layers_off;
pub mod learn;
mod machine_start;
mod offline;
pub mod proxy;
pub mod quarantine;
mod replaced_file;
mod reporting;
pub mod run;
pub mod runs;
mod session_id;
pub mod sessions;
pub mod stores;
pub mod supervise;
mod telemetry;
pub mod tools;
mod trail;
pub mod transaction;
mod tree_locks;
mod trust;
pub mod why;

pub use app_dirs::AppDirs;
pub use caller::Caller;
pub use complaint::Complaint;
pub use death::die_like;
pub use ending::{EndSignals, end_with_parent};
pub use error::{ErrorReason, SessionError};
pub use palisade_plan::{agents, listed_view};
pub use palisade_supervisor::asking::AskIn;
pub use palisade_supervisor::conclusion::outcome_of;
pub use palisade_supervisor::error::SIGNAL_BASE;
pub use palisade_supervisor::peer::shares_user_namespace;
pub use palisade_telemetry::absolute_file;
pub use session_id::new_session_id;
pub use trust::TrustStore;

/// A variable that our own program is started with by our own service: what goes wrong is printed as one line of JSON, with its
/// class, on standard error.
pub const ERRORS_AS_JSON: &str = "PALISADE_ERRORS_AS_JSON";
