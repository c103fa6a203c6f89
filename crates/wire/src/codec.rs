//! From a message to bytes and back. Sizes are checked before anything is decoded, and a message uses all of its bytes.

use crate::error::WireError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type that is sent as one packet.
pub trait WireMessage: Serialize + DeserializeOwned {
    /// The limit on its encoding. A sender truncates what may grow without bound ([`Truncated`](crate::Truncated)), so
    /// that a message reaches it only where its receiver could not use a part of it.
    const MAX_BYTES: usize;
}

pub fn encode<T: WireMessage>(message: &T) -> Result<Vec<u8>, WireError> {
    let packet = postcard::to_extend(message, Vec::new()).map_err(WireError::Unencodable)?;
    within_limit::<T>(&packet)?;
    Ok(packet)
}

pub fn decode<T: WireMessage>(packet: &[u8]) -> Result<T, WireError> {
    within_limit::<T>(packet)?;
    match postcard::take_from_bytes(packet) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(WireError::Undecodable(postcard::Error::DeserializeBadEncoding)),
        Err(error) => Err(WireError::Undecodable(error)),
    }
}

fn within_limit<T: WireMessage>(packet: &[u8]) -> Result<(), WireError> {
    let limit = T::MAX_BYTES;
    if packet.len() > limit { Err(WireError::TooLong { limit }) } else { Ok(()) }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
