//! HTTP/1.1 messages: heads, fields, bodies, redirects. Strict with requests from inside, which may be crafted
//! to be read in two ways (N10), and lenient with servers' responses. Nothing here reads or writes a
//! connection.

pub mod body;
pub mod fields;
pub mod head;
pub(crate) mod incoming;
pub(crate) mod redirect;
pub(crate) mod response;
