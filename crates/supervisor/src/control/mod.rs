//! How commands in one sandbox are started, watched and ended, by this process or by another: [`interface`] is what can be
//! said, `outbox` where it goes, `commands` what is running, [`client`] the other side of the socket. The supervisor
//! carries requests out (`supervisor/requests.rs`).

pub mod client;
pub(crate) mod commands;
pub mod connection;
pub(crate) mod defaults;
pub mod handshake;
pub mod interface;
pub(crate) mod outbox;
