//! What is kept of an output that is larger than its cap: its beginning and its end.
//!
//! Pure: the beginning passes through as it comes, the end is kept in memory. The result depends on the bytes
//! alone, never on the pieces they came in, and up to the cap it is those bytes, all of them.

use std::collections::VecDeque;
use std::fmt;

/// More of the end is not kept in memory, however large the cap; the beginning gets the rest.
const MAX_TAIL: u64 = 8 * 1024 * 1024;
/// The end begins with a whole line if one begins so near.
const NEAR: usize = 4096;

#[derive(Debug)]
pub(crate) struct HeadTail {
    limit: u64,
    seen: u64,
    head: Head,
    /// Bytes of the head that passed.
    passed: u64,
    /// Of those that passed.
    last_passed: Option<u8>,
    tail: VecDeque<u8>,
    /// Of those that found no place in the tail; the one before its first.
    last_cut: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    Passing,
    Over,
}

/// What there is to say and to show when the output has ended.
#[derive(Debug)]
pub(crate) struct OutputEnd {
    /// Missing if nothing was cut.
    pub(crate) cut: Option<Cut>,
    pub(crate) tail: VecDeque<u8>,
}

/// What is missing, and between what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) seen: u64,
    pub(crate) bytes: u64,
    head: u64,
    tail: u64,
    /// Whether the head ends with a whole line.
    pub(crate) is_between_lines: bool,
}

impl HeadTail {
    pub(crate) fn new(limit: u64) -> Self {
        let head = if limit == 0 { Head::Over } else { Head::Passing };
        Self {
            limit,
            seen: 0,
            head,
            passed: 0,
            last_passed: None,
            tail: VecDeque::new(),
            last_cut: None,
        }
    }

    /// Whether nothing passes any more before the end, so that nobody has to wait for the reader.
    pub(crate) fn is_past_head(&self) -> bool {
        self.head == Head::Over
    }

    /// Takes the next bytes and says how many of them, from the first on, pass now. The rest is kept or cut.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> usize {
        self.seen += length(bytes.len());
        let passing = self.passing(bytes);
        let (head, rest) = bytes.split_at(passing);
        self.passed += length(passing);
        self.last_passed = head.last().copied().or(self.last_passed);
        self.keep(rest);
        passing
    }

    /// No character of UTF-8 begins in the head and ends beyond it.
    fn passing(&mut self, bytes: &[u8]) -> usize {
        if self.head == Head::Over {
            return 0;
        }
        let end_of_head = self.limit - (self.limit / 2).min(MAX_TAIL);
        let room = end_of_head - self.passed;
        // Four bytes are the longest.
        let last = size(room.saturating_sub(3));
        for (index, byte) in bytes.iter().enumerate().take(size(room)).skip(last) {
            let needed = character_length(*byte);
            if needed > 1 && length(index) + needed > room {
                self.head = Head::Over;
                return index;
            }
        }
        if length(bytes.len()) >= room {
            self.head = Head::Over;
        }
        bytes.len().min(size(room))
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = size(self.limit - self.passed);
        let (cut, kept) = bytes.split_at(bytes.len().saturating_sub(room));
        let excess = (self.tail.len() + kept.len()).saturating_sub(room);
        if let Some(last) = excess.checked_sub(1) {
            self.last_cut = self.tail.get(last).copied();
            self.tail.drain(..excess);
        }
        self.last_cut = cut.last().copied().or(self.last_cut);
        self.tail.extend(kept);
    }

    /// Nothing more comes.
    pub(crate) fn end(mut self) -> OutputEnd {
        let Some(last_cut) = self.last_cut else { return OutputEnd { cut: None, tail: self.tail } };
        let skipped = if last_cut == b'\n' { 0 } else { self.unfinished() };
        self.tail.drain(..skipped);
        let tail = length(self.tail.len());
        let cut = Cut {
            seen: self.seen,
            bytes: self.seen - self.passed - tail,
            head: self.passed,
            tail,
            is_between_lines: self.last_passed.is_none_or(|last| last == b'\n'),
        };
        OutputEnd { cut: Some(cut), tail: self.tail }
    }

    /// How much of the tail belongs to a line that began before it, or at least to a character.
    fn unfinished(&self) -> usize {
        let near = NEAR.min(self.tail.len() / 2);
        if let Some(end) = self.tail.iter().take(near).position(|byte| *byte == b'\n') {
            return end + 1;
        }
        let inner = self.tail.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
        if inner < 4 { inner } else { 0 }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[palisade: {} of output cut here; the first {} and the last {} are kept (--max-output)]",
            Size(self.bytes),
            Size(self.head),
            Size(self.tail)
        )
    }
}

/// Bytes for people, in the units in which a policy gives them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        if bytes == 1 {
            return f.write_str("1 byte");
        }
        if bytes < 1024 {
            return write!(f, "{bytes} bytes");
        }
        let units = [("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)];
        let (unit, one) =
            units.into_iter().find(|(_, one)| bytes >= *one).unwrap_or(("kB", 1 << 10));
        let (whole, tenths) = (bytes / one, bytes % one * 10 / one);
        if tenths == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{tenths} {unit}") }
    }
}

/// How long a character of UTF-8 is that begins with this byte; 1 for what begins none.
fn character_length(byte: u8) -> u64 {
    match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn length(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

fn size(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "head_tail_tests.rs"]
mod tests;
