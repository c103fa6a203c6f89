//! A request: the header of a message from the kernel, and its operation.

use crate::error::{Malformation, ProtocolError};
use crate::fields::Reader;
use crate::ids::{NodeId, Unique};
use crate::opcode;
use crate::operation::Operation;
use rustix::process::Pid;

/// A request of the kernel, borrowed from the bytes it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub unique: Unique,
    /// What the operation is about. 0 for operations about none.
    pub node: NodeId,
    /// Of the process that made the system call, as the user namespace of the mount has it; 0 where the kernel itself
    /// asks.
    pub uid: u32,
    pub gid: u32,
    /// The thread that made the system call, as the PID namespace of the mount has it. `None` if it is not in there,
    /// and where the kernel itself asks.
    pub pid: Option<Pid>,
    pub operation: Operation<'a>,
}

impl<'a> Request<'a> {
    /// The request that is exactly these bytes. Extensions that follow its arguments are passed over.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ProtocolError> {
        let unreadable = |malformation| ProtocolError { unique: None, opcode: 0, malformation };
        let header = Header::read(bytes).map_err(unreadable)?;
        let wrong = |malformation| ProtocolError {
            unique: opcode::expects_reply(header.opcode).then_some(header.unique),
            opcode: header.opcode,
            malformation,
        };
        if usize::try_from(header.length).ok() != Some(bytes.len()) {
            let length = Malformation::Length { stated: header.length, received: bytes.len() };
            return Err(wrong(length));
        }
        let operation = header
            .body(bytes)
            .and_then(|body| Operation::parse(header.opcode, body))
            .map_err(wrong)?;
        Ok(Self {
            unique: header.unique,
            node: header.node,
            uid: header.uid,
            gid: header.gid,
            pid: header.pid,
            operation,
        })
    }
}

/// `struct fuse_in_header`.
struct Header {
    length: u32,
    opcode: u32,
    unique: Unique,
    node: NodeId,
    uid: u32,
    gid: u32,
    pid: Option<Pid>,
    /// In units of eight bytes, at the end of the message.
    extensions: u16,
}

impl Header {
    const SIZE: usize = 40;

    fn read(bytes: &[u8]) -> Result<Self, Malformation> {
        let mut from = Reader::new(bytes);
        let header = Self {
            length: from.u32()?,
            opcode: from.u32()?,
            unique: Unique(from.u64()?),
            node: NodeId(from.u64()?),
            uid: from.u32()?,
            gid: from.u32()?,
            pid: i32::try_from(from.u32()?).ok().and_then(Pid::from_raw),
            extensions: from.u16()?,
        };
        from.skip(2)?;
        Ok(header)
    }

    fn body<'a>(&self, bytes: &'a [u8]) -> Result<Reader<'a>, Malformation> {
        let end = bytes.len().checked_sub(usize::from(self.extensions) * 8);
        let body = end.and_then(|end| bytes.get(Self::SIZE..end));
        body.map(Reader::new).ok_or(Malformation::Truncated)
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
