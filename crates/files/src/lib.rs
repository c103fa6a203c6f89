//! Operations on files of a sandbox for clients outside it: read, write, list, watch. A process inside performs them ([`serve`]),
//! started as any other command of the sandbox is, so that the very plan counts that every command obeys (TOOL-3): the mount
//! view, Landlock, the system call filter, the broker and the gate, whose questions make an operation wait as they make a
//! command wait.
//!
//! The process holds nothing that a command does not hold, and other processes inside may trace it. So what comes from it is to the
//! client ([`Client`]) what a command's output is: sizes are limited, and nothing of it is believed.
//! This crate must never open a path outside a sandbox on behalf of a client.

#![forbid(unsafe_code)]

mod client;
mod handles;
mod listing;
mod names;
mod protocol;
mod server;
mod watching;
mod writing;

pub use client::{Client, ClientError};
pub use protocol::{
    Change, ChangeKind, FileError, FileInfo, FileType, FileVersion, Handle, IfExists, Listing,
    MAX_CONTENT, Reply, Request, Response, VERSION, WriteOptions,
};
pub use server::serve;

#[cfg(test)]
mod tests;
