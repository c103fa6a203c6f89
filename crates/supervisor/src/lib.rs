//! Watches one sandbox from outside: one thread, one event loop.
//!
//! Every source of events (pid 1, the broker, the gate's keeper, the egress process, terminals, captured output, limits,
//! deadlines, signals, approvals) is a module in [`sources`] that registers its descriptors and handles what comes. Nothing
//! here reads a policy, knows where files of ours lie, or waits for anything but in the loop.
#![forbid(unsafe_code)]

pub mod answers;
pub mod asking;
pub mod conclusion;
pub mod control;
mod deadlines;
mod draining;
pub mod egress;
pub mod error;
pub mod escape;
mod expiry;
mod file_operations;
pub mod gate;
mod incidents;
mod job_control;
pub mod limits;
mod log_budget;
pub mod normalize;
pub mod output;
pub mod peer;
mod poll_set;
mod process;
pub mod project_work;
mod reading;
pub mod recording;
mod relay;
mod screen;
pub mod signals;
mod start;
mod supervisor;
mod terminal;

pub use error::SupervisorError;
pub use expiry::Expired;
pub use start::{StartRequest, start};
pub use supervisor::{
    ClaimRecord, ExitState, Killed, Observers, Reply, RunRegistration, Supervisor,
};
