//! Messages of a stream in Connect RPC: a byte of flags, four of length, and the message. The last one of an answer has a flag of its own, and
//! says whether something went wrong.

use crate::error::{Code, RpcError};
use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt as _;
use palisade_service::drain_later;
use serde::Serialize;
use serde_json::json;

const HEAD: usize = 5;
const COMPRESSED: u8 = 1;
const END: u8 = 2;
/// Of a message from a client.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// A message to a client.
pub(crate) fn message(content: &impl Serialize) -> Bytes {
    enclose(0, content)
}

/// The last message.
pub(crate) fn end(outcome: &Result<(), RpcError>) -> Bytes {
    match outcome {
        Ok(()) => enclose(END, &json!({})),
        Err(error) => enclose(END, &json!({ "error": error })),
    }
}

fn enclose(flags: u8, content: &impl Serialize) -> Bytes {
    // Texts, numbers and maps with texts as keys.
    let text = serde_json::to_vec(content).unwrap_or_default();
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEAD + text.len());
    bytes.push(flags);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&text);
    bytes.into()
}

/// The messages of a request, as they come.
pub(crate) struct Messages {
    body: BodyDataStream,
    buffer: Vec<u8>,
}

impl Messages {
    pub(crate) fn of(body: Body) -> Self {
        Self { body: body.into_data_stream(), buffer: Vec::new() }
    }

    /// No more of them are wanted; whatever comes is left out, so that the connection can be used again.
    pub(crate) fn finish(self) {
        drain_later(self.body);
    }

    /// None: the request ends here.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, RpcError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            match self.body.next().await {
                Some(Ok(part)) => self.buffer.extend_from_slice(&part),
                Some(Err(error)) => {
                    return Err(RpcError::invalid(format!("the body cannot be read: {error}")));
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(RpcError::invalid("the body ends within a message")),
            }
        }
    }

    fn take(&mut self) -> Result<Option<Vec<u8>>, RpcError> {
        let Some((head, rest)) = self.buffer.split_at_checked(HEAD) else { return Ok(None) };
        let [flags, length @ ..] = head else { return Ok(None) };
        if flags & COMPRESSED != 0 {
            return Err(RpcError::new(Code::Unimplemented, "send messages without compression"));
        }
        if flags & !COMPRESSED != 0 {
            return Err(RpcError::invalid(format!("a message has the unknown flags {flags:#x}")));
        }
        let length = length.iter().fold(0_usize, |all, byte| all << 8 | usize::from(*byte));
        if length > MAX_MESSAGE {
            let most = MAX_MESSAGE >> 20;
            let what = format!("a message has {length} bytes; at most {most} MiB are taken");
            return Err(RpcError::new(Code::ResourceExhausted, what));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = rest[..length].to_vec();
        self.buffer.drain(..HEAD + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MESSAGE, Messages, end, message};
    use crate::error::{Code, RpcError};
    use axum::body::Body;

    async fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, RpcError> {
        let mut messages = Messages::of(Body::from(bytes.to_vec()));
        let mut found = Vec::new();
        while let Some(message) = messages.next().await? {
            found.push(message);
        }
        Ok(found)
    }

    #[tokio::test]
    async fn messages_come_out_as_they_went_in() {
        let mut bytes = message(&1).to_vec();
        bytes.extend_from_slice(&message(&"two"));
        assert_eq!(all(&bytes).await.unwrap(), [b"1".to_vec(), b"\"two\"".to_vec()]);
        assert_eq!(all(b"").await.unwrap(), Vec::<Vec<u8>>::new());
        let error = RpcError::new(Code::NotFound, "no");
        assert_eq!(
            end(&Err(error)),
            b"\x02\0\0\0\x2d{\"error\":{\"code\":\"not_found\",\"message\":\"no\"}}".as_slice()
        );
        assert_eq!(end(&Ok(())), b"\x02\0\0\0\x02{}".as_slice());
    }

    #[tokio::test]
    async fn what_is_no_message_is_refused() {
        let code = |result: Result<Vec<Vec<u8>>, RpcError>| result.unwrap_err().code;
        assert_eq!(code(all(b"\0\0\0").await), Code::InvalidArgument);
        assert_eq!(code(all(b"\0\0\0\0\x05ab").await), Code::InvalidArgument);
        assert_eq!(code(all(b"\x01\0\0\0\x01a").await), Code::Unimplemented);
        assert_eq!(code(all(b"\x40\0\0\0\x01a").await), Code::InvalidArgument);
        assert_eq!(code(all(b"\0\xff\xff\xff\xff").await), Code::ResourceExhausted);
        let mut long = vec![0];
        long.extend_from_slice(&u32::try_from(MAX_MESSAGE + 1).unwrap().to_be_bytes());
        assert_eq!(code(all(&long).await), Code::ResourceExhausted);
    }
}
