//! Serves HTTP between a client inside and the server it was admitted to: requests and responses are parsed,
//! judged and serialised again. Nothing here decides where a request may go.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod follow;
pub(crate) mod loose;
pub(crate) mod serve;

pub(crate) use serve::{refuse, serve_plain};

#[cfg(test)]
pub(crate) mod test_web;
