//! Whether the first bytes of a connection could be an HTTP request, to the most lenient server.
//!
//! Servers accept unknown methods, several kinds of blanks, NULs, and a target without a version followed by
//! fields, and disagree on line endings. Bytes that some server could take for a request must never be
//! classified as something else: their host would go unchecked (N10).

use crate::http::fields::is_of_token;

/// The classification so far. Further bytes never change the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Request,
    NoRequest,
    /// It may become a request, but a server cannot act on it yet.
    Open(SoFar),
}

/// In ascending order of caution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SoFar {
    /// A complete line whose sender may be waiting for an answer, or bytes that are not text.
    MayPass,
    /// A word, or only blanks.
    Word,
    /// A word and a blank. The rest of the line would make it a request, and for some servers so would the end
    /// of the connection.
    Line,
}

/// The first text line of another protocol is never longer.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// No line is inspected beyond this. Python's servers do not read longer lines; others do.
const MAX_BINARY_LINE_BYTES: usize = 64 * 1024 + 2;
/// Includes a path of maximum length.
const MAX_GIT_REQUEST_BYTES: usize = 4 * 1024;
const VERSION: &[u8] = b"HTTP/";
/// With these methods some servers (Python's) accept any target without a version and read fields after it.
/// `PROXY` is the line that load balancers put before a connection: anything may follow.
const METHODS: [&[u8]; 11] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"TRACK",
    b"PATCH", b"PROXY",
];
/// Version 2 of the PROXY protocol (HAProxy's proxy-protocol.txt, 2.2).
const PROXY_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes that are a request in any one interpretation are a request.
pub(crate) fn look(bytes: &[u8]) -> Opening {
    let enough = bytes.get(..=MAX_BINARY_LINE_BYTES);
    let bytes = enough.unwrap_or(bytes);
    if bytes.starts_with(PROXY_SIGNATURE) {
        return Opening::Request;
    }
    if PROXY_SIGNATURE.starts_with(bytes) {
        return Opening::Open(SoFar::Word);
    }
    let java = up_to_cr_lf(bytes, CrLf::Odd).or(up_to_cr_lf(bytes, CrLf::Any));
    if is_git(bytes) {
        return git(bytes).or(java);
    }
    let lines = by_lines(bytes, Ends::Lf).or(by_lines(bytes, Ends::CrOrLf));
    let has_control = bytes.iter().any(|byte| is_control(*byte));
    match lines.or(java).or(without_crs(bytes)) {
        // One server (Java's) would still read it as the start of a method, but zeros and compressed data look
        // the same.
        Opening::Open(_) if enough.is_some() && has_control => Opening::NoRequest,
        Opening::Open(_) if enough.is_some() => Opening::Request,
        Opening::Open(_) if has_control => Opening::Open(SoFar::MayPass),
        opening => opening,
    }
}

impl Opening {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Request, _) | (_, Self::Request) => Self::Request,
            (Self::Open(one), Self::Open(two)) => Self::Open(one.max(two)),
            (open @ Self::Open(_), _) | (_, open @ Self::Open(_)) => open,
            (Self::NoRequest, Self::NoRequest) => Self::NoRequest,
        }
    }
}

/// The interpretation of most servers. Empty lines are skipped, because servers skip them (RFC 9112, 2.2).
/// Bytes that only some servers skip are skipped too: blanks and, in older versions of Jetty, all control
/// bytes.
fn by_lines(bytes: &[u8], ends: Ends) -> Opening {
    let start = bytes.iter().position(|byte| *byte > b' ' && !is_blank(*byte));
    let start = start.unwrap_or(bytes.len());
    let (skipped, bytes) = bytes.split_at(start);
    if bytes.is_empty() {
        return Opening::Open(SoFar::Word);
    }
    let line = Line::of(bytes, ends);
    let end = line.text.iter().position(|byte| is_blank(*byte) || is_control(*byte));
    let (word, behind) = line.text.split_at(end.unwrap_or(line.text.len()));
    let is_text = !skipped.iter().any(|byte| is_control(*byte));
    if contains(word, VERSION) || is_text && line.is_long_text() {
        return Opening::Request;
    }
    match behind.first() {
        // A NUL or another byte that does not occur in text, before any blank.
        Some(byte) if is_control(*byte) => binary(&line),
        Some(_) if contains(line.text, VERSION) => Opening::Request,
        Some(_) => text(&line, word, behind, ends),
        None => match line.end {
            End::TooFar | End::Unseen => Opening::Open(SoFar::Word),
            End::Before(_) => one_word(word),
        },
    }
}

/// Busybox deletes CRs everywhere.
fn without_crs(bytes: &[u8]) -> Opening {
    let kept = bytes.iter().copied().filter(|byte| *byte != b'\r');
    by_lines(&kept.collect::<Vec<u8>>(), Ends::Lf)
}

/// Classifies a line that starts with a word and a blank.
fn text(line: &Line, word: &[u8], behind: &[u8], ends: Ends) -> Opening {
    let target = behind.iter().position(|byte| !is_blank(*byte));
    let target = target.and_then(|start| behind.get(start..)).unwrap_or_default();
    let is_word = word.iter().all(|byte| is_of_token(*byte) || !byte.is_ascii());
    let asks = is_method(word) && !is_of_another_protocol(word, target)
        || matches!(target.first(), Some(b'/' | b'%'))
        || is_word && (target.starts_with(b"*") || contains(target, b"://"));
    match line.end {
        _ if asks => Opening::Request,
        End::TooFar => Opening::Request,
        End::Unseen if is_word => Opening::Open(SoFar::Line),
        End::Unseen => Opening::Open(SoFar::Word),
        End::Before(_) if target.is_empty() => one_word(word),
        // RFC 4253, 4.2.
        End::Before(_) if word.starts_with(b"SSH-") => Opening::NoRequest,
        End::Before(next) if is_word => {
            let words = line.text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty());
            second_line(&Line::of(next, ends), words.count())
        }
        End::Before(next) => match field(&Line::of(next, ends)) {
            Field::Seen => Opening::Request,
            Field::Unseen => Opening::Open(SoFar::MayPass),
            Field::Empty | Field::None => Opening::NoRequest,
        },
    }
}

/// A line of one word is not a request, unless the word is a method.
fn one_word(word: &[u8]) -> Opening {
    if is_method(word) && !is_of_another_protocol(word, b"") {
        Opening::Request
    } else {
        Opening::NoRequest
    }
}

/// STOMP sends `CONNECT` alone on its line, followed by fields, and NATS sends it with a JSON object. In HTTP
/// it needs a target.
fn is_of_another_protocol(word: &[u8], target: &[u8]) -> bool {
    word == b"CONNECT" && matches!(target.first(), None | Some(b'{'))
}

/// The line after `WORD SOMETHING`. A field, or the empty line that ends the fields, makes both lines a
/// request. After three words, as in a request line, any text with a colon counts as a field.
fn second_line(line: &Line, words: usize) -> Opening {
    let text = line.text.split(|byte| is_control(*byte)).next().unwrap_or_default();
    let is_like_one = words == 3 && text.contains(&b':');
    let may_be_like_one = words == 3 && text.len() == line.text.len();
    match (field(line), line.end) {
        _ if is_like_one || line.is_long_text() => Opening::Request,
        (Field::Seen | Field::Empty, _) | (_, End::TooFar) => Opening::Request,
        (Field::None, End::Unseen) if may_be_like_one => Opening::Open(SoFar::MayPass),
        (Field::Unseen, _) => Opening::Open(SoFar::MayPass),
        (Field::None, _) => Opening::NoRequest,
    }
}

enum Field {
    Seen,
    /// The line is complete and empty.
    Empty,
    /// It may become a field.
    Unseen,
    None,
}

fn field(line: &Line) -> Field {
    // Some servers accept an indented field.
    let start = line.text.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.text.len());
    let text = line.text.get(start..).unwrap_or_default();
    let name = text.iter().position(|byte| !is_of_token(*byte)).unwrap_or(text.len());
    let (name, behind) = text.split_at(name);
    match (behind.iter().find(|byte| !is_blank(**byte)), line.end) {
        (Some(b':'), _) => Field::Seen,
        (None, End::Before(_)) if name.is_empty() => Field::Empty,
        (None, End::Unseen) => Field::Unseen,
        _ => Field::None,
    }
}

/// Bytes that are not text. Some servers skip such bytes before a request and some accept them in a method, so
/// the first line must not end as requests do. Only `HTTP/` is compared, because Python accepts version numbers
/// with a sign. Any byte that is not ASCII counts as a blank before it, because some servers accept blanks of
/// several bytes.
fn binary(line: &Line) -> Opening {
    let ends_as_requests_do = line.text.windows(VERSION.len() + 1).any(|part| {
        matches!(part, [before, version @ ..]
            if (is_blank(*before) || !before.is_ascii()) && version.eq_ignore_ascii_case(VERSION))
    });
    match line.end {
        _ if ends_as_requests_do => Opening::Request,
        End::Unseen => Opening::Open(SoFar::MayPass),
        End::Before(_) | End::TooFar => Opening::NoRequest,
    }
}

/// After how many CRs an LF ends a line.
#[derive(Clone, Copy)]
enum CrLf {
    Any,
    /// Java's `HttpServer` consumes a CR together with the byte that follows it.
    Odd,
}

/// The interpretation of servers for which a lone CR or LF does not end a line (Java's `HttpServer`). Any bytes
/// up to a space are a method, any text is a version, and a line may have any length. The target must have a
/// path.
fn up_to_cr_lf(mut bytes: &[u8], cr_lf: CrLf) -> Opening {
    while let Some(behind) = bytes.strip_prefix(b"\r\n") {
        bytes = behind;
    }
    let mut crs = 0_usize;
    let end = bytes.iter().position(|byte| {
        let is_end = *byte == b'\n'
            && match cr_lf {
                CrLf::Any => crs > 0,
                CrLf::Odd => crs % 2 == 1,
            };
        crs = if *byte == b'\r' { crs + 1 } else { 0 };
        is_end
    });
    let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    let mut words = line.splitn(3, |byte| *byte == b' ').skip(1);
    let (target, version) = (words.next(), words.next());
    match (target.map_or(Path::Open, path), version, end) {
        (Path::None, _, _) | (Path::Open, Some(_), _) => Opening::NoRequest,
        (Path::Seen, Some(_), Some(_)) => Opening::Request,
        (_, None, Some(_)) => Opening::NoRequest,
        (Path::Seen, _, None) if bytes.len() >= MAX_BINARY_LINE_BYTES => Opening::Request,
        (_, _, None) => Opening::Open(SoFar::MayPass),
    }
}

enum Path {
    Seen,
    /// It may become a path.
    Open,
    None,
}

/// Targets in which Java's `URI` finds a path: `/x`, `%2Fx`, `scheme:/x`.
fn path(target: &[u8]) -> Path {
    if target.iter().any(u8::is_ascii_control) {
        return Path::None;
    }
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let behind_scheme = target.iter().position(|byte| !is_of_scheme(byte)).unwrap_or(target.len());
    match target.split_at(behind_scheme) {
        ([], [b'/' | b'%', ..]) | ([_, ..], [b':', b'/' | b'%', ..]) => Path::Seen,
        (_, [] | [b':']) => Path::Open,
        _ => Path::None,
    }
}

/// `git://` starts with its length in four hexadecimal digits and the name of a service (gitprotocol-pack(5)).
fn is_git(bytes: &[u8]) -> bool {
    bytes.split_at_checked(4).is_some_and(|(length, behind)| {
        let services = [&b"git-upload-pack /"[..], b"git-receive-pack /", b"git-upload-archive /"];
        length.iter().all(u8::is_ascii_hexdigit)
            && services.iter().any(|service| behind.starts_with(service))
    })
}

/// It consists of a path, a NUL, the host and, at the end of its length, a NUL. What follows is not text, or
/// not a request.
fn git(bytes: &[u8]) -> Opening {
    let length = bytes.first_chunk::<4>().and_then(|digits| std::str::from_utf8(digits).ok());
    let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or(0);
    if length > MAX_GIT_REQUEST_BYTES {
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
    if names_host && greeting.ends_with(b"\0") {
        binary(&Line::of(bytes, Ends::Lf))
    } else {
        Opening::Request
    }
}

/// What ends a line.
#[derive(Clone, Copy)]
enum Ends {
    Lf,
    /// CR, LF, or CR LF (older versions of Jetty).
    CrOrLf,
}

struct Line<'a> {
    /// Without its line ending.
    text: &'a [u8],
    end: End<'a>,
}

#[derive(Clone, Copy)]
enum End<'a> {
    /// Not received yet.
    Unseen,
    /// Beyond the inspected bytes.
    TooFar,
    /// The bytes that follow the line ending.
    Before(&'a [u8]),
}

impl<'a> Line<'a> {
    fn of(bytes: &'a [u8], ends: Ends) -> Self {
        let seen = bytes.get(..=MAX_BINARY_LINE_BYTES).unwrap_or(bytes);
        let is_end = |byte: &u8| match ends {
            Ends::Lf => *byte == b'\n',
            Ends::CrOrLf => matches!(byte, b'\r' | b'\n'),
        };
        let end = match seen.iter().position(is_end) {
            Some(end) => {
                let (text, behind) = bytes.split_at(end);
                let behind = behind.strip_prefix(b"\r\n").or(behind.get(1..)).unwrap_or_default();
                return Self { text, end: End::Before(behind) };
            }
            None if seen.len() <= MAX_BINARY_LINE_BYTES => End::Unseen,
            None => End::TooFar,
        };
        Self { text: seen, end }
    }

    fn is_long_text(&self) -> bool {
        let text = self.text.get(..=MAX_LINE_BYTES);
        text.is_some_and(|text| !text.iter().any(|byte| is_control(*byte)))
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// Servers that accept lower-case methods require a path with them, and memcached has some of these words in
/// lower case.
fn is_method(word: &[u8]) -> bool {
    METHODS.contains(&word)
}

/// Bytes that some server accepts between two words: Python splits lines at all of them.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1f | 0x85 | 0xa0)
}

/// Bytes that do not occur in text.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\n' && !is_blank(byte)
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
