//! Messages between our own processes: serde types encoded with postcard, one message per packet of a SEQPACKET
//! socket, descriptors beside it, and a limit on the size of each type.
//!
//! Must never guess. A message that is truncated, exceeds its limit or is followed by more bytes is an error, and none
//! of these is taken for the end of the connection. What a message means is for its receiver to decide.

#![forbid(unsafe_code)]

mod codec;
mod errno;
mod error;
mod queue;
mod raw;
mod socket;
mod truncated;

pub use codec::{WireMessage, decode, encode};
pub use errno::{AsErrno, ErrnoField};
pub use error::WireError;
pub use queue::SendQueue;
pub use raw::{Raw, RawField};
pub use socket::{
    Received, receive, receive_growing, receive_secret, send, try_receive, try_receive_growing,
    try_send,
};
pub use truncated::{Truncatable, Truncated};
