//! One run's control group: where it can be created ([`find`]), and the group itself ([`RunGroup`]), in the unified
//! hierarchy (v2) or in the separate ones of v1. Must never touch a group that is not ours, and never accept a limit
//! that is looser than requested.
#![forbid(unsafe_code)]

mod bus;
mod controllers;
mod directory;
mod disks;
mod entry;
mod error;
mod find;
mod group;
mod hierarchy;
mod home;
mod run_group;
mod setting;
mod sweep;
mod text;
mod v1;
mod v1_settings;
mod v2;
mod v2_settings;

#[cfg(test)]
mod test_support;

pub use entry::{Birth, GroupEntry, ToJoin};
pub use error::CgroupError;
pub use find::find;
pub use group::{GroupUsage, Hits, Watched};
pub use run_group::RunGroup;
