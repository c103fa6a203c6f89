//! The kernel's protocol for file systems served by a process (FUSE, protocol 7.31 and later): a codec without I/O, and
//! a connection over a descriptor of `/dev/fuse`. It knows no file system and keeps no state about inodes.
//!
//! Why not the `fuser` crate: our server polls `/dev/fuse` beside another socket in one thread, leaves requests
//! unanswered for minutes while a person decides, runs under a tight system call filter, and must not mount: it gets a
//! descriptor that another process mounted.
//!
//! The structures are those of `include/uapi/linux/fuse.h`; see also fuse(4). A server reads with
//! [`Connection::receive`], answers `Init` by [`Offer::agree`], and every other request by a [`Reply`], now or later.
//! Requests of which [`Operation::expects_reply`] is false must not be answered.
#![forbid(unsafe_code)]

mod attributes;
mod connection;
mod entry;
mod error;
mod fields;
mod handshake;
mod ids;
mod listing;
mod opcode;
mod operation;
mod reply;
mod request;

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod layout;

pub use attributes::{Attributes, Timestamp};
pub use connection::{Buffer, Connection, Delivery, Received};
pub use entry::Entry;
pub use error::{Malformation, ProtocolError};
pub use handshake::{Agreement, Handshake, InitFlags, Offer, OldKernel, Terms};
pub use ids::{FileHandle, NodeId, Unique};
pub use listing::{DirectoryEntry, Listing, ListingPlus, Room};
pub use operation::{Changes, Forgotten, ForgottenList, NewTime, Operation};
pub use reply::{FileSystemStats, OpenFlags, Opened, Reply};
pub use request::Request;
