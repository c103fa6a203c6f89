//! Paths that name one of the caller's own descriptors: `/proc/self/fd/3`, `/dev/stdout`.

use crate::caller::Caller;
use std::os::fd::AsRawFd;

const OWN_DIRECTORIES: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
const STREAMS: [&[u8]; 3] = [b"/dev/stdin", b"/dev/stdout", b"/dev/stderr"];

fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().position(|byte| *byte == b'/')?;
    Some((&path[..end], &path[end + 1..]))
}

fn below(path: &[u8]) -> Option<&[u8]> {
    OWN_DIRECTORIES.iter().find_map(|prefix| path.strip_prefix(*prefix))
}

fn number(digits: &[u8]) -> Option<i32> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

/// The number in `/proc/self/fd/N`, the usual way to name an open file.
pub(crate) fn own_descriptor(path: &[u8]) -> Option<i32> {
    let stream = STREAMS.iter().zip(0..).find(|(stream, _)| **stream == path);
    stream.map(|(_, number)| number).or_else(|| number(below(path)?))
}

/// The same, also where the caller wrote its own process number.
pub(crate) fn numbered_descriptor(path: &[u8], caller: &Caller) -> Option<i32> {
    let by_number = || {
        let (who, rest) = split(path.strip_prefix(b"/proc/")?)?;
        let digits = rest.strip_prefix(b"fd/")?;
        let (who, found) = (number(who)?, number(digits)?);
        caller.numbers_inside().contains(&who).then_some(found)
    };
    own_descriptor(path).or_else(by_number)
}

/// One of our own descriptors as a name below `/proc`, for calls that take a path only.
pub(crate) fn name_of_own(file: &impl AsRawFd) -> String {
    format!("self/fd/{}", file.as_raw_fd())
}
