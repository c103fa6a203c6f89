//! HTTP/1.1 as the proxy speaks it: strict with what comes from inside, which may want to be read in two
//! ways (N10), and lenient with what servers answer. Nothing here decides where a request may go.

pub(crate) mod answer;
pub mod body;
pub(crate) mod connection;
pub(crate) mod exchange;
pub mod fields;
pub(crate) mod follow;
pub mod head;
pub(crate) mod incoming;
pub(crate) mod loose;
pub(crate) mod redirect;
pub(crate) mod response;
pub(crate) mod serve;

pub use serve::{refuse, serve_plain};

#[cfg(test)]
pub(crate) mod test_web;
