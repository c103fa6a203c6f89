//! One direction of a connection, read into a buffer from which heads and parts of bodies are taken.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Size of the first read, and all that an idle connection keeps.
const MIN_BUFFER_BYTES: usize = 4 * 1024;
/// Size of a read when much data arrives: copying a body then needs few system calls.
const MAX_BUFFERED: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Incoming<R> {
    reader: R,
    buffer: Vec<u8>,
    taken: usize,
    /// Size of the next read; grows while reads fill it.
    step: usize,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// `first` was already read from it.
    pub(crate) fn new(reader: R, first: Vec<u8>) -> Self {
        Self { reader, buffer: first, taken: 0, step: MIN_BUFFER_BYTES }
    }

    /// Bytes that were read and not taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    pub(crate) fn take(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.buffer.len());
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        }
    }

    /// Appends what it reads; 0 means end of stream. Cancel-safe.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.reserve(self.step);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = self.reader.read_buf(&mut self.buffer).await?;
        if read == room {
            self.step = (self.step * 4).min(MAX_BUFFERED);
        }
        Ok(read)
    }

    /// Releases memory before a long wait.
    pub(crate) fn settle(&mut self) {
        if self.bytes().is_empty() {
            self.buffer.shrink_to(MIN_BUFFER_BYTES);
            self.step = MIN_BUFFER_BYTES;
        }
    }

    pub(crate) fn reader(&self) -> &R {
        &self.reader
    }

    /// The reader, and the bytes that were read and not taken.
    pub(crate) fn rest(&mut self) -> (&mut R, Vec<u8>) {
        let unread = self.bytes().to_vec();
        self.take(unread.len());
        (&mut self.reader, unread)
    }

    pub(crate) fn into_parts(mut self) -> (R, Vec<u8>) {
        self.buffer.drain(..self.taken);
        (self.reader, self.buffer)
    }
}
