//! Whether the first bytes of a connection could be a request of HTTP, to whichever server is most forgiving.
//!
//! Servers take methods nobody knows, blanks of many kinds, NULs, a target without a version and fields behind it. What
//! one of them could take for a request must never be called none: its host would go unread (N10).

use crate::http::fields::is_of_token;

/// What can be told so far. More bytes never change the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Request,
    NoRequest,
    /// It may become one, and has none of what a server could act on.
    Open(SoFar),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoFar {
    /// A word, or nothing but blanks.
    Word,
    /// A word and a blank: the rest of a line makes a request of it, and to some servers so does the end.
    Line,
    /// A line that is whole, and whose sender may wait for an answer; or bytes that are no text.
    MayPass,
}

/// No line of text that begins another protocol is longer.
const LONGEST_LINE: usize = 8 * 1024;
/// Servers that take any bytes for a method read lines up to here (Python's).
const LONGEST_BINARY_LINE: usize = 64 * 1024 + 2;
/// With a path of the longest kind.
const LONGEST_GIT: usize = 4 * 1024;
const VERSION: &[u8] = b"HTTP/";
/// With these some servers take a target of any kind, without a version, and read fields behind it (Python's).
const METHODS: [&[u8]; 10] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"TRACK",
    b"PATCH",
];

/// Empty lines before it are skipped, for servers skip them (RFC 9112, 2.2), and so is what only some of them skip: blanks
/// and, in older versions of Jetty, all control bytes.
pub(crate) fn look(bytes: &[u8]) -> Opening {
    let start = bytes.iter().position(|byte| *byte > b' ').unwrap_or(bytes.len());
    let (skipped, bytes) = bytes.split_at(start);
    if !skipped.iter().all(|byte| is_space(*byte)) {
        return if start > LONGEST_BINARY_LINE { Opening::NoRequest } else { binary(bytes) };
    }
    if bytes.is_empty() {
        return Opening::Open(SoFar::Word);
    }
    let line = Line::of(bytes, LONGEST_LINE);
    let end = line.text.iter().position(|byte| is_blank(*byte) || byte.is_ascii_control());
    let (word, behind) = line.text.split_at(end.unwrap_or(line.text.len()));
    if start == 0 && is_git(word) && has_path(behind) {
        return git(bytes);
    }
    if contains(word, VERSION) {
        return Opening::Request;
    }
    match behind.first() {
        Some(byte) if is_blank(*byte) => text(&line, word, behind),
        // A NUL or another byte that no text has, before any blank.
        Some(_) => binary(bytes),
        None => match line.end {
            End::TooFar => Opening::Request,
            End::Unseen => Opening::Open(SoFar::Word),
            End::Before(_) => one_word(word),
        },
    }
}

/// A word and a blank.
fn text(line: &Line, word: &[u8], behind: &[u8]) -> Opening {
    if contains(line.text, VERSION) {
        return Opening::Request;
    }
    let target = behind.iter().position(|byte| !is_blank(*byte));
    let target = target.and_then(|start| behind.get(start..)).unwrap_or_default();
    let is_word = word.iter().all(|byte| is_of_token(*byte) || !byte.is_ascii());
    let asks = is_word
        && (is_method(word) && !(is_stomp(word) && target.is_empty())
            || matches!(target.first(), Some(b'/' | b'*'))
            || contains(target, b"://"));
    match line.end {
        _ if asks => Opening::Request,
        End::TooFar => Opening::Request,
        End::Unseen if is_word => Opening::Open(SoFar::Line),
        End::Unseen => Opening::Open(SoFar::Word),
        End::Before(_) if target.is_empty() => one_word(word),
        // RFC 4253, 4.2.
        End::Before(_) if !is_word || word.starts_with(b"SSH-") => Opening::NoRequest,
        End::Before(next) => second_line(next),
    }
}

/// A line of one word is no request, unless the word itself says so.
fn one_word(word: &[u8]) -> Opening {
    if is_method(word) && !is_stomp(word) { Opening::Request } else { Opening::NoRequest }
}

/// STOMP has this one alone on its line, with fields behind it; to HTTP it is nothing without a target.
fn is_stomp(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"CONNECT")
}

/// Behind `WORD SOMETHING`: a field, or the empty line that ends fields, makes a request of both.
fn second_line(bytes: &[u8]) -> Opening {
    let line = Line::of(bytes, LONGEST_LINE);
    // Some take one that is indented.
    let start = line.text.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.text.len());
    let text = line.text.get(start..).unwrap_or_default();
    let name = text.iter().position(|byte| !is_of_token(*byte)).unwrap_or(text.len());
    let (name, behind) = text.split_at(name);
    let behind = behind.iter().find(|byte| !is_blank(**byte));
    match (behind, line.end) {
        (Some(b':'), _) | (_, End::TooFar) => Opening::Request,
        (None, End::Before(_)) if name.is_empty() => Opening::Request,
        (None, End::Unseen) => Opening::Open(SoFar::MayPass),
        _ => Opening::NoRequest,
    }
}

/// Bytes that are no text. Some servers skip those before a request, some have them in its method: the first line must
/// not end as requests do.
fn binary(bytes: &[u8]) -> Opening {
    let line = Line::of(bytes, LONGEST_BINARY_LINE);
    let ends_as_requests_do = line.text.windows(VERSION.len() + 2).any(|part| {
        matches!(part, [before, version @ .., digit]
            if is_blank(*before) && version.eq_ignore_ascii_case(VERSION) && digit.is_ascii_digit())
    });
    match line.end {
        _ if ends_as_requests_do => Opening::Request,
        End::Unseen => Opening::Open(SoFar::MayPass),
        End::Before(_) | End::TooFar => Opening::NoRequest,
    }
}

/// `git://` begins with its own length in four hexadecimal digits and the name of a service (gitprotocol-pack(5)).
fn is_git(word: &[u8]) -> bool {
    word.split_at_checked(4).is_some_and(|(length, service)| {
        length.iter().all(u8::is_ascii_hexdigit)
            && matches!(service, b"git-upload-pack" | b"git-receive-pack" | b"git-upload-archive")
    })
}

fn has_path(behind: &[u8]) -> bool {
    behind.starts_with(b" /")
}

/// It has a path, a NUL, the host, and a NUL at the end of its length. What follows is not text, or no request.
fn git(bytes: &[u8]) -> Opening {
    let length = bytes.first_chunk::<4>().and_then(|digits| std::str::from_utf8(digits).ok());
    let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or(0);
    if length > LONGEST_GIT {
        return Opening::Request;
    }
    let greeting = bytes.get(..length.min(bytes.len())).unwrap_or_default();
    if greeting.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Opening::Request;
    }
    if greeting.len() < length {
        return Opening::Open(SoFar::Line);
    }
    let mut parts = greeting.split(|byte| *byte == 0).skip(1);
    let names_host = parts.next().is_some_and(|part| part.starts_with(b"host="));
    if names_host && greeting.ends_with(b"\0") { binary(bytes) } else { Opening::Request }
}

struct Line<'a> {
    /// Without its end.
    text: &'a [u8],
    end: End<'a>,
}

#[derive(Clone, Copy)]
enum End<'a> {
    /// It has not come.
    Unseen,
    /// Beyond what was looked at.
    TooFar,
    /// This follows it.
    Before(&'a [u8]),
}

impl<'a> Line<'a> {
    fn of(bytes: &'a [u8], longest: usize) -> Self {
        let seen = bytes.get(..=longest).unwrap_or(bytes);
        match seen.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let text = seen.get(..end).unwrap_or_default();
                Self { text, end: End::Before(bytes.get(end + 1..).unwrap_or_default()) }
            }
            None if seen.len() <= longest => Self { text: seen, end: End::Unseen },
            None => Self { text: seen, end: End::TooFar },
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

fn is_method(word: &[u8]) -> bool {
    METHODS.iter().any(|method| word.eq_ignore_ascii_case(method))
}

/// What stands between two words, to one server or another: Python splits lines at all of them.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1f | 0x85 | 0xa0)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
