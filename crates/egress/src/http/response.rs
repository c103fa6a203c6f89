//! Responses of servers: parsed as leniently as browsers do, and written in normal form, so that clients inside
//! can read them in only one way.

use super::fields::Fields;
use super::head::{Framing, MAX_HEAD_BYTES, RequestHead, Version, number};

const MAX_FIELDS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseFault {
    #[error("the host did not respond with HTTP/1")]
    NotHttp,
    #[error("the head of the host's response is too long")]
    TooLarge,
    #[error("the host's response has two lengths")]
    Length,
    #[error("the host's response has an encoding that was not requested")]
    Encoding,
    #[error("the upstream proxy requires a user and a password, or rejected the given ones")]
    Login,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) fields: Fields,
    pub(crate) body: Framing,
    /// Whether the server keeps the connection open.
    pub(crate) keeps_alive: bool,
    pub(crate) size: usize,
}

/// The head at the start of `bytes`, once it is complete. `method` is that of the request.
pub(crate) fn parse(bytes: &[u8], method: &str) -> Result<Option<ResponseHead>, ResponseFault> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut slots);
    let mut lenient = httparse::ParserConfig::default();
    lenient.allow_spaces_after_header_name_in_responses(true);
    lenient.allow_obsolete_multiline_headers_in_responses(true);
    let size = match lenient.parse_response(&mut response, bytes) {
        Ok(httparse::Status::Complete(size)) if size <= MAX_HEAD_BYTES => size,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ResponseFault::TooLarge),
        Err(_) => return Err(ResponseFault::NotHttp),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(ResponseFault::NotHttp);
    };
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        let plain = header
            .value
            .iter()
            .map(|byte| if byte.is_ascii_control() && *byte != b'\t' { b' ' } else { *byte });
        fields.push(header.name, plain.collect::<Vec<u8>>().trim_ascii());
    }
    let body = framing(status, method, &fields)?;
    let keeps_alive =
        minor == 1 && !fields.lists("connection", "close") && body != Framing::UntilClose;
    let reason = response.reason.unwrap_or_default().to_owned();
    Ok(Some(ResponseHead { status, reason, fields, body, keeps_alive, size }))
}

fn framing(status: u16, method: &str, fields: &Fields) -> Result<Framing, ResponseFault> {
    if method == "HEAD" || matches!(status, 100..=199 | 204 | 304) {
        return Ok(Framing::NONE);
    }
    let mut encodings = fields.all("transfer-encoding");
    if let Some(encoding) = encodings.next() {
        // A server sends others only if a `TE` field requests them, and we do not forward that field.
        let chunked = encoding.eq_ignore_ascii_case(b"chunked") && encodings.next().is_none();
        return if chunked { Ok(Framing::Chunked) } else { Err(ResponseFault::Encoding) };
    }
    let mut length = None;
    for value in fields.all("content-length") {
        let number = number(value).ok_or(ResponseFault::Length)?;
        if length.is_some_and(|before| before != number) {
            return Err(ResponseFault::Length);
        }
        length = Some(number);
    }
    Ok(length.map_or(Framing::UntilClose, Framing::Length))
}

impl ResponseHead {
    /// Precedes the final response.
    pub(crate) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// The head for the client of `request`, and the framing of the body that follows.
    pub(crate) fn write(&self, request: &RequestHead, keep_alive: bool) -> (Vec<u8>, Framing) {
        let mut fields = self.fields.clone();
        fields.keep_end_to_end();
        let framing = match self.body {
            Framing::Chunked if request.version == Version::Http10 => Framing::UntilClose,
            own => own,
        };
        match framing {
            _ if matches!(self.status, 100..=199 | 204) => {}
            _ if self.tells_of_another(request) => {
                for value in self.fields.all("content-length") {
                    fields.push("content-length", value);
                }
            }
            Framing::Length(length) => fields.push("content-length", length.to_string().as_bytes()),
            Framing::Chunked => fields.push("transfer-encoding", b"chunked"),
            Framing::UntilClose => {}
        }
        if self.status == 101 {
            fields.push("connection", b"upgrade");
            fields.push("upgrade", b"websocket");
        } else if !self.is_interim() && (!keep_alive || framing == Framing::UntilClose) {
            fields.push("connection", b"close");
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason).into_bytes();
        fields.write(&mut head);
        head.extend_from_slice(b"\r\n");
        (head, framing)
    }

    /// Whether its length, if any, is that of the response to another request.
    fn tells_of_another(&self, request: &RequestHead) -> bool {
        self.status == 304 || request.method == "HEAD"
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
