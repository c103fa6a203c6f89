//! HTTP/1.1 as text: heads, fields, bodies, redirects. Strict with what comes from inside, which may want to be
//! read in two ways (N10), and lenient with what servers answer. Nothing here reads or writes a connection.

pub mod body;
pub mod fields;
pub mod head;
pub(crate) mod incoming;
pub(crate) mod redirect;
pub(crate) mod response;
