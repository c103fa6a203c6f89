//! Sandboxes for programs in Rust: an agent framework, an editor, a build server.
//!
//! [`Sandbox::create`] starts a sandbox through the `sandbox` program, [`Sandbox::command`] runs commands in it, and
//! [`Sandbox::files`] reads and writes the files that these commands see. What they change can wait:
//! [`Sandbox::diff`] shows it, and [`Sandbox::apply`] brings it to the project. Nothing here needs an async runtime, and no
//! server has to run. All methods block.
//!
//! ```no_run
//! use palisade::{Apply, Sandbox, Transaction};
//!
//! fn main() -> palisade::Result<()> {
//!     let sandbox = Sandbox::create().project("/home/me/project").transaction(Transaction::Overlay).start()?;
//!     let output = sandbox.command("make test").run()?;
//!     println!("{} {}", output.exit_code(), output.stdout_text());
//!     for change in &sandbox.diff()?.changes {
//!         println!("{:?} {}", change.kind, change.path.display());
//!     }
//!     sandbox.apply(&Apply::all())?;
//!     Ok(())
//! }
//! ```
//!
//! A sandbox that a program made ends when its [`Sandbox`] is dropped, also if the program is killed, unless
//! [`Sandbox::keep`] was called. Changes that were not applied wait then; `sandbox diff` shows them.
//!
//! This crate must never make a sandbox in the process that calls it: that would need a process without threads. It must not print.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod builder;
mod change_set;
mod changes;
mod checkpoints;
mod command;
mod connection;
mod core;
mod error;
mod files;
mod held;
mod info;
mod output;
mod program;
mod questions;
mod running;
mod sandbox;
mod usage;
mod violations;

pub use builder::{Ask, Builder, Network, Transaction};
pub use change_set::{
    Applied, Change, ChangeKind, Changes, Conflict, ConflictReason, Entry, EntryKind, FileTime,
    Held, Objection, Refused, RefusedReason, Rename,
};
pub use changes::{Apply, OnConflict};
pub use checkpoints::{Checkpoint, CheckpointReason, Fork, RolledBack};
pub use command::Command;
pub use error::{Error, ErrorKind, Result};
pub use files::{FileInfo, FileType, Files, IfExists, Listed, Write};
pub use info::{Info, State, Status};
pub use output::{Chunk, Exit, Output, Stream, TransactionState};
pub use palisade_session::tools::{Violation, ViolationKind};
pub use questions::{Access, Answer, Lifetime, Question, Questions, Scope, Store, Subject};
pub use running::{Reader, Running};
pub use sandbox::Sandbox;
pub use usage::Usage;

/// The page about this crate: its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust-api.md")]
struct Page;
