//! How another process starts, watches and ends commands in one sandbox: [`interface`] is what can be said, [`commands`]
//! carries it out in the supervisor, [`client`] speaks it from the other side.

pub mod client;
pub(crate) mod commands;
pub(crate) mod connection;
pub mod handshake;
pub mod interface;
