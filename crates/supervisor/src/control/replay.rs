//! The last part of a command's output, by the number of each byte. Takes memory only for what was written.

use super::interface::REPLAYED_BYTES;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Replay {
    kept: VecDeque<u8>,
    /// The number of the byte that comes next.
    end: u64,
}

impl Replay {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(REPLAYED_BYTES)..];
        let excess = (self.kept.len() + bytes.len()).saturating_sub(REPLAYED_BYTES);
        self.kept.drain(..excess);
        self.kept.extend(bytes);
    }

    /// Nobody will read it.
    pub(crate) fn forget(&mut self) {
        self.kept = VecDeque::new();
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The number of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.end - self.kept.len() as u64
    }

    /// Bytes from this one on, or from the oldest that is kept, with the number of the first.
    pub(crate) fn read(&self, from: u64, limit: usize) -> (u64, Vec<u8>) {
        let from = from.clamp(self.start(), self.end);
        let skipped = usize::try_from(from - self.start()).unwrap_or(usize::MAX);
        let last = (skipped.saturating_add(limit)).min(self.kept.len());
        (from, self.kept.range(skipped..last).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{REPLAYED_BYTES, Replay};

    #[test]
    fn the_last_part_is_kept_and_every_byte_keeps_its_number() {
        let mut replay = Replay::default();
        replay.push(b"hello");
        assert_eq!(replay.read(0, 3), (0, b"hel".to_vec()));
        assert_eq!(replay.read(3, 99), (3, b"lo".to_vec()));
        assert_eq!(replay.read(99, 9), (5, Vec::new()));
        replay.push(&vec![b'x'; REPLAYED_BYTES - 2]);
        assert_eq!((replay.start(), replay.end()), (3, REPLAYED_BYTES as u64 + 3));
        assert_eq!(replay.read(0, 3), (3, b"lox".to_vec()));
        replay.push(&vec![b'y'; REPLAYED_BYTES * 2]);
        assert_eq!(replay.end() - replay.start(), REPLAYED_BYTES as u64);
        assert_eq!(replay.read(0, 1).1, b"y");
    }
}
