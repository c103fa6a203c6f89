//! Finds the end of a body and its content without framing, and frames it again for the next hop.
//!
//! A body from inside is parsed as strictly as a head: a chunk size that two servers could read differently
//! ends the connection (N10). Extensions and trailers are not forwarded.

use super::fields::is_token;
use super::head::{Framing, MAX_HEAD_BYTES};

/// Enough for any real chunk, and too few to overflow 64 bits.
const MAX_DIGITS: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    #[error("a chunk's size is not a hexadecimal number alone on its line")]
    Size,
    #[error("a chunk is not followed by CR LF")]
    End,
    #[error("the trailer is not made of fields, or too long")]
    Trailer,
    #[error("it ended early")]
    Truncated,
}

/// Which side a body comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Parsed strictly.
    Inside,
    /// Chunk extensions are skipped, and trailers are not checked.
    Server,
}

/// The meaning of the next bytes: the length of framing, then of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub framing: usize,
    pub content: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    state: State,
    from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    UntilClose,
    Size { digits: u8, size: u64 },
    Extension { size: u64, length: usize },
    SizeEnd { size: u64 },
    Chunk(u64),
    ChunkEnd { carriage_return: bool },
    Trailer(Vec<u8>),
    Done,
}

impl Body {
    pub fn new(framing: Framing, from: From) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { digits: 0, size: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        Self { state, from }
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The length of the rest that needs no inspection: that of a server's body that is not chunked.
    pub fn unframed(&self) -> Option<u64> {
        match (self.from, &self.state) {
            (From::Server, State::Length(left)) => Some(*left),
            (From::Server, State::UntilClose) => Some(u64::MAX),
            _ => None,
        }
    }

    /// Counts bytes of the [unframed](Self::unframed) rest that were forwarded without [`Self::advance`].
    pub fn passed(&mut self, bytes: u64) {
        if let State::Length(left) = &mut self.state {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.state = State::Done;
            }
        }
    }

    /// Called at end of stream.
    pub fn end(&mut self) -> Result<(), BodyFault> {
        match self.state {
            State::Done | State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(BodyFault::Truncated),
        }
    }

    /// Reads from `bytes` up to the end of one piece of content. If nothing is read, more bytes are needed or
    /// the body is complete. Bytes after the body are never read.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Piece, BodyFault> {
        let mut piece = Piece::default();
        loop {
            let rest = &bytes[piece.framing..];
            match &mut self.state {
                State::Done => return Ok(piece),
                State::UntilClose => return Ok(Piece { content: rest.len(), ..piece }),
                State::Length(left) => {
                    piece.content = shorter(rest, left);
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    return Ok(piece);
                }
                State::Chunk(left) if *left > 0 => {
                    piece.content = shorter(rest, left);
                    return Ok(piece);
                }
                _ => {}
            }
            let Some(byte) = rest.first() else { return Ok(piece) };
            self.frame(*byte)?;
            piece.framing += 1;
        }
    }

    /// Processes one byte between the contents of chunks.
    fn frame(&mut self, byte: u8) -> Result<(), BodyFault> {
        let next = match &mut self.state {
            State::Size { digits, size } => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) if *digits < MAX_DIGITS => {
                    State::Size { digits: *digits + 1, size: *size * 16 + u64::from(digit) }
                }
                (None, b'\r') if *digits > 0 => State::SizeEnd { size: *size },
                (None, b';' | b' ' | b'\t') if *digits > 0 && self.from == From::Server => {
                    State::Extension { size: *size, length: 0 }
                }
                _ => return Err(BodyFault::Size),
            },
            State::Extension { size, length } => match byte {
                b'\r' => State::SizeEnd { size: *size },
                b'\n' => return Err(BodyFault::Size),
                _ if *length < MAX_HEAD_BYTES => {
                    State::Extension { size: *size, length: *length + 1 }
                }
                _ => return Err(BodyFault::Size),
            },
            State::SizeEnd { size } => match (byte, *size) {
                (b'\n', 0) => State::Trailer(Vec::new()),
                (b'\n', size) => State::Chunk(size),
                _ => return Err(BodyFault::Size),
            },
            State::Chunk(_) if byte == b'\r' => State::ChunkEnd { carriage_return: true },
            State::ChunkEnd { carriage_return: true } if byte == b'\n' => {
                State::Size { digits: 0, size: 0 }
            }
            State::Trailer(read) => {
                read.push(byte);
                if !read.ends_with(b"\r\n") {
                    return if read.len() < MAX_HEAD_BYTES {
                        Ok(())
                    } else {
                        Err(BodyFault::Trailer)
                    };
                }
                if read == b"\r\n" || read.ends_with(b"\r\n\r\n") {
                    trailer(read, self.from)?;
                    State::Done
                } else {
                    return Ok(());
                }
            }
            _ => return Err(BodyFault::End),
        };
        self.state = next;
        Ok(())
    }
}

fn shorter(bytes: &[u8], left: &mut u64) -> usize {
    let count = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= count as u64;
    count
}

fn trailer(read: &[u8], from: From) -> Result<(), BodyFault> {
    if from == From::Server {
        return Ok(());
    }
    let text = String::from_utf8_lossy(read);
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(BodyFault::Trailer)?;
        if !is_token(name) || value.chars().any(|one| one.is_control() && one != '\t') {
            return Err(BodyFault::Trailer);
        }
    }
    Ok(())
}

/// The framing of a body that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// None: the length was sent in the head, or the end of the connection marks it.
    Bare,
    Chunks,
}

impl Frames {
    pub fn of(framing: Framing) -> Self {
        match framing {
            Framing::Chunked => Self::Chunks,
            Framing::Length(_) | Framing::UntilClose => Self::Bare,
        }
    }

    /// The content as one chunk.
    pub fn chunk(content: &[u8]) -> Vec<u8> {
        let mut chunk = format!("{:x}\r\n", content.len()).into_bytes();
        chunk.extend_from_slice(content);
        chunk.extend_from_slice(b"\r\n");
        chunk
    }

    pub fn at_the_end(self) -> &'static [u8] {
        match self {
            Self::Bare => b"",
            Self::Chunks => b"0\r\n\r\n",
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
