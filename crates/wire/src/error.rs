//! Why a message could not be sent or received. The end of the connection is a separate error: code that takes a broken
//! message for it concludes that the other side has done its part.

use palisade_sys::{Errno, SysError};

/// What the functions of this crate return.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Nobody holds the other end any more.
    #[error("the connection is closed")]
    Closed,
    /// These bytes are no message of the expected type.
    #[error("the message cannot be decoded: {0}")]
    Undecodable(postcard::Error),
    /// A type that postcard does not support, such as a sequence of unknown length.
    #[error("the message cannot be encoded: {0}")]
    Unencodable(postcard::Error),
    #[error("the message exceeds the limit of {limit} bytes")]
    TooLong { limit: usize },
    /// The socket's buffer is full; only [`try_send`](crate::try_send) returns this.
    #[error("the receiver has not read earlier messages")]
    NoRoom,
    #[error(transparent)]
    System(SysError),
}

impl WireError {
    /// What a failed call means for a message that may have `limit` bytes.
    pub(crate) fn from_call(error: SysError, limit: usize) -> Self {
        match error.errno {
            // unix(7): a receiver gets ECONNRESET if the other side ended with messages unread.
            Errno::PIPE | Errno::CONNRESET => Self::Closed,
            Errno::MSGSIZE => Self::TooLong { limit },
            _ => Self::System(error),
        }
    }
}
