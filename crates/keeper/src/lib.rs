//! The keeper: a helper process that looks at the host's tree and, on request, shows a part of it in the
//! sandbox (GATE-1).
//!
//! The sandbox's mount view is what isolates it, and this is the only process that adds to it: it reports what
//! a path is on the host, holds what it found, and mounts exactly that file or directory, read-only, at the
//! same path in the running sandbox. It decides nothing: the supervisor says what is granted. It must never
//! show anything but what it reported, whatever the command does to names meanwhile.

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
pub use serve::MAX_HELD;
pub use startup::{KeeperStartup, run_keeper};
