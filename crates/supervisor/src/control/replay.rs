//! The last part of a command's output, by the number of each byte. Takes memory only for what was written.

use super::interface::{OutputStream, REPLAYED_BYTES};
use std::collections::VecDeque;

/// How often the kept part may go from one output to the other. A command that writes single bytes to both in turn keeps less.
const MAX_CHANGES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Replay {
    kept: VecDeque<u8>,
    /// The number of the byte that comes next.
    end: u64,
    /// From which byte on it is of which output, oldest first. The first one is at or before the oldest byte that is kept.
    changes: VecDeque<(u64, OutputStream)>,
}

/// Bytes of one output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// The number of the first.
    pub(crate) cursor: u64,
    pub(crate) stream: OutputStream,
    pub(crate) bytes: Vec<u8>,
}

impl Replay {
    pub(crate) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.changes.back().is_none_or(|(_, last)| *last != stream) {
            self.changes.push_back((self.end, stream));
        }
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(REPLAYED_BYTES)..];
        let excess = (self.kept.len() + bytes.len()).saturating_sub(REPLAYED_BYTES);
        self.kept.drain(..excess);
        self.kept.extend(bytes);
        if self.changes.len() > MAX_CHANGES
            && let Some((second, _)) = self.changes.get(1)
        {
            let lost = usize::try_from(second.saturating_sub(self.start())).unwrap_or(usize::MAX);
            self.kept.drain(..lost.min(self.kept.len()));
        }
        while self.changes.get(1).is_some_and(|(second, _)| *second <= self.start()) {
            self.changes.pop_front();
        }
    }

    /// Nobody will read it.
    pub(crate) fn forget(&mut self) {
        self.kept = VecDeque::new();
        self.changes = VecDeque::new();
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The number of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.end - self.kept.len() as u64
    }

    /// Bytes of one output from this one on, or from the oldest that is kept.
    pub(crate) fn read(&self, from: u64, limit: usize) -> Replayed {
        let cursor = from.clamp(self.start(), self.end);
        let skipped = usize::try_from(cursor - self.start()).unwrap_or(usize::MAX);
        let after = self.changes.partition_point(|(first, _)| *first <= cursor);
        let stream = after.checked_sub(1).and_then(|at| self.changes.get(at));
        let stream = stream.map_or(OutputStream::Stdout, |(_, stream)| *stream);
        let end = self.changes.get(after).map_or(self.end, |(next, _)| *next);
        let length = usize::try_from(end - cursor).unwrap_or(usize::MAX).min(limit);
        let last = skipped.saturating_add(length).min(self.kept.len());
        Replayed { cursor, stream, bytes: self.kept.range(skipped..last).copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::OutputStream::{Stderr, Stdout};
    use super::{MAX_CHANGES, OutputStream, REPLAYED_BYTES, Replay, Replayed};

    fn read(replay: &Replay, from: u64, limit: usize) -> (u64, OutputStream, Vec<u8>) {
        let Replayed { cursor, stream, bytes } = replay.read(from, limit);
        (cursor, stream, bytes)
    }

    #[test]
    fn the_last_part_is_kept_and_every_byte_keeps_its_number() {
        let mut replay = Replay::default();
        replay.push(Stdout, b"hello");
        assert_eq!(read(&replay, 0, 3), (0, Stdout, b"hel".to_vec()));
        assert_eq!(read(&replay, 3, 99), (3, Stdout, b"lo".to_vec()));
        assert_eq!(read(&replay, 99, 9), (5, Stdout, Vec::new()));
        replay.push(Stdout, &vec![b'x'; REPLAYED_BYTES - 2]);
        assert_eq!((replay.start(), replay.end()), (3, REPLAYED_BYTES as u64 + 3));
        assert_eq!(read(&replay, 0, 3), (3, Stdout, b"lox".to_vec()));
        replay.push(Stdout, &vec![b'y'; REPLAYED_BYTES * 2]);
        assert_eq!(replay.end() - replay.start(), REPLAYED_BYTES as u64);
        assert_eq!(read(&replay, 0, 1).2, b"y");
    }

    #[test]
    fn bytes_of_two_outputs_come_apart_in_the_order_in_which_they_were_read() {
        let mut replay = Replay::default();
        replay.push(Stderr, b"oh");
        replay.push(Stderr, b"no");
        replay.push(Stdout, b"fine");
        replay.push(Stderr, b"!");
        assert_eq!(read(&replay, 0, 99), (0, Stderr, b"ohno".to_vec()));
        assert_eq!(read(&replay, 3, 99), (3, Stderr, b"o".to_vec()));
        assert_eq!(read(&replay, 4, 99), (4, Stdout, b"fine".to_vec()));
        assert_eq!(read(&replay, 8, 99), (8, Stderr, b"!".to_vec()));
        replay.push(Stdout, &vec![b'x'; REPLAYED_BYTES - 1]);
        assert_eq!(read(&replay, 0, 99), (8, Stderr, b"!".to_vec()));
        assert_eq!(replay.changes.len(), 2);
    }

    #[test]
    fn a_command_that_changes_between_its_outputs_takes_no_more_memory_than_others() {
        let mut replay = Replay::default();
        for _ in 0..MAX_CHANGES * 2 {
            replay.push(Stdout, b"o");
            replay.push(Stderr, b"e");
        }
        assert!(replay.changes.len() <= MAX_CHANGES);
        assert_eq!(replay.end() - replay.start(), MAX_CHANGES as u64);
        let first = replay.start();
        assert_eq!(read(&replay, 0, 9), (first, Stdout, b"o".to_vec()));
        assert_eq!(read(&replay, first + 1, 9), (first + 1, Stderr, b"e".to_vec()));
    }
}
