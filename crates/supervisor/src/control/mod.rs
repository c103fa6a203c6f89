//! How commands in one sandbox are started, watched and ended, by this process or by another: [`interface`] is what can be
//! said, [`endpoint`] who says it at a socket, `outbox` where the answers go, `commands` what is running, `held` what of it
//! clients attach to, [`client`] the other side of the socket. The supervisor
//! carries requests out (`supervisor/requests.rs`).

pub mod client;
pub(crate) mod command_spans;
pub(crate) mod commands;
pub mod connection;
pub(crate) mod defaults;
pub mod endpoint;
pub mod handshake;
pub(crate) mod held;
pub(crate) mod held_outputs;
pub mod interface;
pub(crate) mod outbox;
pub mod output_log;
pub mod output_runs;
pub(crate) mod replay;
