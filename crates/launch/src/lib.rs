//! Carries out a plan: processes, namespaces, mounts and filters, in numbered steps.
//!
//! Decides nothing: every choice is already in the [`palisade_plan::model::Plan`]. If a step cannot be done,
//! the run stops before the command starts.
#![forbid(unsafe_code)]

mod broker;
mod command;
mod egress;
mod error;
mod exec;
mod filter;
mod first_child;
mod fuse_root;
mod gatefs;
mod helper;
mod home;
mod idle_init;
mod idmap;
mod inherited;
mod init;
mod keeper;
mod landlock;
#[cfg(feature = "layers-off")]
mod layers_off;
mod maker;
pub mod message;
mod mounts;
mod nat;
mod network;
mod parent;
pub mod probe;
mod remedy;
mod selfcheck;
mod setup;
mod sources;
mod spawner;
mod streams;
mod worker;

pub use egress::{EgressMessage, EgressProcess, confine_alone};
pub use error::{FailureKind, LaunchError};
pub use helper::{Death, HelperKind, Helpers, Watched};
pub use home::PrivateHome;
pub use inherited::Inherited;
pub use keeper::Keeper;
pub use message::{Checked, ExitCause, FromInit};
pub use network::{Front, Handed, InsideNetwork};
pub use palisade_cgroup::{CgroupError, GroupUsage, Hits, RunGroup};
pub use parent::{RunUsage, Running, TO_END_EVERYBODY, launch};
pub use selfcheck::Observation;
pub use spawner::{CommandId, CommandKind, CommandStart, Spawner, SpawnerEvent, SpawnerStage};
pub use streams::{OutputPipe, StreamOutput, Streams};
pub use worker::Worker;
