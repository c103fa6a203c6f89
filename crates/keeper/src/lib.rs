//! The keeper: a process beside the sandbox that looks at the host's tree and, when told to, shows a part
//! of it inside (GATE-1).
//!
//! The sandbox's mounts are the wall, and this is the only process that makes a hole in it: it says what
//! a path is on the host, holds what it found, and grafts that very file or directory, read-only, at the
//! same path into the running sandbox. It decides nothing: the supervisor says what is granted. It must never show
//! anything else than what it told, whatever the command does to names meanwhile.

#![forbid(unsafe_code)]

mod identity;
mod look;
mod message;
mod needs;
mod own_files;
mod sandbox_mounts;
mod scaffold;
mod serve;
mod startup;
mod survey;

#[cfg(test)]
mod graft_tests;
#[cfg(test)]
mod look_tests;
#[cfg(test)]
mod test_sandbox;

pub use identity::{CallerIdentity, Root};
pub use message::{Change, FileKind, Found, KeeperEvent, KeeperRequest, What};
pub use sandbox_mounts::Layout;
pub use startup::{KeeperStartup, run_keeper};
