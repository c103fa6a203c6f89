//! What can be wrong with a message from the kernel.

use crate::ids::Unique;

/// A message that is not a request as the protocol has it. With a `unique` the kernel waits for an answer: `EIO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {opcode} of the FUSE protocol: {malformation}")]
pub struct ProtocolError {
    /// `None` if not even the header is there, and for an operation that has no reply.
    pub unique: Option<Unique>,
    /// 0 if not even the header is there.
    pub opcode: u32,
    pub malformation: Malformation,
}

/// How a message departs from the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformation {
    #[error("it ends within a field")]
    Truncated,
    #[error("its header says {stated} bytes, {received} were received")]
    Length { stated: u32, received: usize },
    #[error("{0} bytes follow its last field")]
    Trailing(usize),
    #[error("a name has no end")]
    UnendedName,
    #[error("a name is empty, `.`, `..`, or contains a slash")]
    BadName,
    #[error("{stated} items or bytes are announced, {received} bytes follow")]
    Count { stated: u32, received: usize },
}
