//! Responses of the proxy itself: short, readable for programs and models, and never a hang.
//!
//! The body is JSON and says what would allow the request; the field `x-sandbox-denied` says the same in one
//! line.

use crate::engine::{Cause, Refused};
use crate::http::head::Fault;
use serde_json::{Value, json};

/// Whether the client reads a body, which it does not after `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    HeadOnly,
}

impl Shape {
    pub(crate) fn for_method(method: &str) -> Self {
        if method == "HEAD" { Self::HeadOnly } else { Self::Whole }
    }
}

/// The connection must be closed after it.
pub(crate) fn refused(refused: &Refused, shape: Shape) -> Vec<u8> {
    let (status, error) = match refused.cause {
        Cause::Denied | Cause::Address | Cause::Disagrees => (403, "denied"),
        Cause::Limit => (429, "limit"),
        Cause::Lookup => (502, "look-up"),
        Cause::Unreachable => (502, "unreachable"),
        Cause::TimedOut => (504, "timeout"),
    };
    let body = json!({
        "error": error,
        "host": refused.host,
        "port": refused.port,
        "reason": refused.reason,
        "rule": refused.rule,
        "allow": refused.flag,
    });
    let denied = (status == 403 || status == 429).then_some(refused.reason.as_str());
    write(status, body, denied, shape)
}

/// For a request that could be interpreted in more than one way.
pub(crate) fn fault(fault: Fault) -> Vec<u8> {
    bad(fault.status(), &fault.to_string(), Shape::Whole)
}

/// For any other fault of a request or of a server's response.
pub(crate) fn bad(status: u16, reason: &str, shape: Shape) -> Vec<u8> {
    let error = if matches!(status, 502 | 504) { "bad answer" } else { "bad request" };
    write(status, json!({ "error": error, "reason": reason }), None, shape)
}

fn write(status: u16, mut body: Value, denied: Option<&str>, shape: Shape) -> Vec<u8> {
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let body = format!("{body}\n");
    let mut answer = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        reason_phrase(status),
        body.len()
    );
    if let Some(denied) = denied {
        // A reason contains text from inside, which must not end the line.
        let plain: String =
            denied.chars().map(|one| if one.is_ascii_graphic() { one } else { ' ' }).collect();
        answer.push_str(&format!("x-sandbox-denied: {plain}\r\n"));
    }
    answer.push_str("\r\n");
    if shape == Shape::Whole {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        408 => "Request Timeout",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
