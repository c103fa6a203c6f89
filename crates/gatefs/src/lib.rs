//! The gate as a file system (GATE-1): a helper process that serves the root of the sandbox's view. Granted trees are
//! mounted on it, so calls on them never leave the kernel. Everything else ends here.
//!
//! What it shows is the union of two trees. The *grounds* are the sandbox's own file systems: its root, the private
//! home directory, frames. They are tmpfs that only our processes hold, and what they contain is passed through. What
//! they do not contain, but the host has, is a *stub*: a node of the same type that says nothing about the file. A
//! call that ends at a stub waits for the supervisor, which asks its rules or a person. If the answer is yes, the
//! keeper mounts the file on the stub, and the call gets `ESTALE`: the kernel walks the path again, and finds the
//! mount.
//!
//! A look-up never waits: the kernel holds locks for it that the mount itself needs.
//!
//! It decides nothing, and must never serve the content of a file that the supervisor did not grant.

#![forbid(unsafe_code)]

mod answers;
mod by_number;
mod callers;
mod changes;
mod grounds;
mod handles;
mod host;
mod identity;
mod listing;
mod message;
mod nodes;
mod serve;
mod server;
mod startup;
mod stubs;
mod waiting;
mod watcher;

pub use identity::ServerIdentity;
pub use message::{FromSetup, GateFsMessage, ToGateFs, ToSetup};
pub use startup::{GateFsStartup, run_gatefs};
