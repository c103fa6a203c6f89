//! Bytes on their way to one reader. Bounded, and in order: a reader that is slow slows the writer down, until
//! a cap is reached; from there on nobody waits, and only the end is kept.

use super::head_tail::{Cut, HeadTail};
use crate::reading::read_now;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::collections::VecDeque;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    Bytes(usize),
    NothingNow,
    /// End of file, or (a pty whose other side is closed) `EIO`.
    Closed,
}

/// Whether the reader took everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    Empty,
    /// It takes nothing more now.
    Waits,
    /// It takes nothing more at all; what it did not take is forgotten.
    Refused(Errno),
}

/// Bytes read from one side and not yet written to the other.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], start: 0, end: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn has_room(&self) -> bool {
        self.end < self.bytes.len()
    }

    pub(crate) fn fill_from(&mut self, source: impl AsFd) -> Filled {
        self.fill_with(|into| read(source, into))
    }

    fn fill_with(&mut self, source: impl FnOnce(&mut [u8]) -> Filled) -> Filled {
        let filled = source(&mut self.bytes[self.end..]);
        if let Filled::Bytes(count) = filled {
            self.end += count;
        }
        filled
    }

    /// The last `count` bytes that came in.
    pub(crate) fn newest(&self, count: usize) -> &[u8] {
        &self.bytes[self.end - count..self.end]
    }

    /// As if the last `count` bytes had not come.
    fn give_back(&mut self, count: usize) {
        self.end -= count;
    }

    /// One byte more, if there is room; [`Self::has_room`] was asked before.
    pub(crate) fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.end) {
            *free = byte;
            self.end += 1;
        }
    }

    /// Whether a line was handed over before its end although the whole of it would have fitted.
    pub(crate) fn ends_within_a_line(&self) -> bool {
        self.has_room() && self.bytes[..self.end].last() != Some(&b'\n')
    }

    pub(crate) fn drain_to(
        &mut self,
        mut write: impl FnMut(&[u8]) -> rustix::io::Result<usize>,
    ) -> Drained {
        let mut drained = Drained::Empty;
        while !self.is_empty() {
            match write(&self.bytes[self.start..self.end]) {
                Ok(count) => self.start += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Drained::Waits,
                Err(errno) => {
                    drained = Drained::Refused(errno);
                    break;
                }
            }
        }
        self.start = 0;
        self.end = 0;
        drained
    }
}

/// What a line of ours in the output ends with, and what makes sure that it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// The head may end within an escape sequence, or in a colour.
    Terminal,
}

/// A buffer, under a cap or not.
#[derive(Debug)]
pub(crate) struct OutputQueue {
    waiting: Buffer,
    cap: Option<HeadTail>,
    style: Style,
    /// Where bytes go that do not pass by themselves.
    aside: Vec<u8>,
    /// The last of it, when the cap was reached: what was cut, and the end of the output.
    ending: VecDeque<u8>,
    cut: Option<Cut>,
}

impl OutputQueue {
    pub(crate) fn new(capacity: usize, limit: Option<u64>, style: Style) -> Self {
        Self {
            waiting: Buffer::new(capacity),
            cap: limit.map(HeadTail::new),
            style,
            aside: Vec::new(),
            ending: VecDeque::new(),
            cut: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.ending.is_empty()
    }

    /// Whether to read more now.
    pub(crate) fn has_room(&self) -> bool {
        self.is_past_head() || self.waiting.has_room()
    }

    fn is_past_head(&self) -> bool {
        self.cap.as_ref().is_some_and(HeadTail::is_past_head)
    }

    /// Reads once, without waiting. `passed` hears the bytes that go on to the reader by now.
    pub(crate) fn fill_from(&mut self, source: impl AsFd, passed: impl FnOnce(&[u8])) -> Filled {
        self.fill_with(|into| read(source, into), passed)
    }

    /// The same, from anything that fills a buffer.
    pub(crate) fn fill_with(
        &mut self,
        source: impl FnOnce(&mut [u8]) -> Filled,
        passed: impl FnOnce(&[u8]),
    ) -> Filled {
        if self.is_past_head() {
            self.aside.resize(self.waiting.bytes.len(), 0);
            let filled = source(&mut self.aside);
            if let (Filled::Bytes(count), Some(cap)) = (filled, &mut self.cap) {
                cap.take(&self.aside[..count]);
            }
            return filled;
        }
        let filled = self.waiting.fill_with(source);
        if let Filled::Bytes(count) = filled {
            let passing =
                self.cap.as_mut().map_or(count, |cap| cap.take(self.waiting.newest(count)));
            self.waiting.give_back(count - passing);
            passed(self.waiting.newest(passing));
        }
        filled
    }

    /// Nothing more comes in: what was kept of the end is on its way now.
    pub(crate) fn conclude(&mut self) {
        let Some(cap) = self.cap.take() else { return };
        let ending = cap.end();
        self.cut = ending.cut;
        self.ending = ending.tail;
        if let Some(cut) = ending.cut {
            let line = self.style.line(&cut);
            line.bytes().rev().for_each(|byte| self.ending.push_front(byte));
        }
    }

    /// What its reader does not get, once concluded.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// How many bytes the reader has yet to take.
    pub(crate) fn owed(&self) -> usize {
        self.waiting.end - self.waiting.start + self.ending.len()
    }

    pub(crate) fn drain_to(
        &mut self,
        mut write: impl FnMut(&[u8]) -> rustix::io::Result<usize>,
    ) -> Drained {
        loop {
            let drained = self.waiting.drain_to(&mut write);
            if let Drained::Refused(_) = drained {
                self.ending.clear();
            }
            if drained != Drained::Empty || self.ending.is_empty() {
                return drained;
            }
            let next = self.ending.len().min(self.waiting.bytes.len());
            self.ending.drain(..next).for_each(|byte| self.waiting.push(byte));
        }
    }
}

impl Style {
    fn line(self, cut: &Cut) -> String {
        let (before, end) = match self {
            Self::Plain => ("", "\n"),
            // CAN ends a sequence that was begun; then back to plain characters.
            Self::Terminal => ("\x18\x1b[0m", "\r\n"),
        };
        let first = if cut.is_between_lines { "" } else { end };
        format!("{before}{first}{cut}{end}")
    }
}

fn read(source: impl AsFd, into: &mut [u8]) -> Filled {
    match read_now(source, into) {
        Ok(0) => Filled::Closed,
        Ok(count) => Filled::Bytes(count),
        Err(Errno::AGAIN | Errno::INTR) => Filled::NothingNow,
        Err(_) => Filled::Closed,
    }
}
