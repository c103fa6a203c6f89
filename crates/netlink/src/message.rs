//! Builds netlink messages: header, fixed part, attributes. Only this module writes lengths. See netlink(7).

use rustix::io::Errno;

/// `struct nlmsghdr`
pub(crate) const HEADER: usize = 16;
/// `struct nlattr`
pub(crate) const ATTRIBUTE_HEADER: usize = 4;
/// Flag in the type of an attribute that contains attributes.
const NESTED: u16 = 0x8000;

/// `linux/netlink.h`
pub(crate) mod flags {
    pub(crate) const REQUEST: u16 = 0x1;
    pub(crate) const ACK: u16 = 0x4;
    pub(crate) const EXCL: u16 = 0x200;
    pub(crate) const DUMP: u16 = 0x300;
    pub(crate) const CREATE: u16 = 0x400;
    pub(crate) const APPEND: u16 = 0x800;
}

/// netlink aligns everything to four bytes.
pub(crate) const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// One message, and its purpose for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) what: &'static str,
    pub(crate) answered: bool,
    bytes: Vec<u8>,
    fits: bool,
}

impl Message {
    /// `fixed` is the part before the attributes.
    pub(crate) fn new(what: &'static str, kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | flags::REQUEST).to_ne_bytes());
        bytes.extend(fixed);
        bytes.resize(aligned(bytes.len()), 0);
        Self { what, answered: true, bytes, fits: true }
    }

    pub(crate) fn attribute(self, kind: u16, value: &[u8]) -> Self {
        self.holding(kind, |message| message.bytes.extend(value))
    }

    /// With the terminating NUL that the kernel requires.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.holding(kind, |message| {
            message.bytes.extend(value.as_bytes());
            message.bytes.push(0);
        })
    }

    pub(crate) fn native32(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Numbers of netfilter are in network byte order.
    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// An attribute that contains the attributes that `fill` adds.
    pub(crate) fn nested(self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        self.holding(kind | NESTED, |message| {
            let taken = std::mem::replace(message, Self::empty());
            *message = fill(taken);
        })
    }

    /// The same, with a fixed part before its attributes.
    pub(crate) fn nested_after(
        self,
        kind: u16,
        fixed: &[u8],
        fill: impl FnOnce(Self) -> Self,
    ) -> Self {
        self.nested(kind, |mut message| {
            message.bytes.extend(fixed);
            fill(message)
        })
    }

    /// The kernel does not acknowledge it, but still reports an error.
    pub(crate) fn without_answer(self) -> Self {
        Self { answered: false, ..self }
    }

    /// The bytes for the kernel, which repeats this sequence number in its answer.
    pub(crate) fn finish(mut self, sequence: u32, acknowledge: bool) -> Result<Vec<u8>, Errno> {
        let length = u32::try_from(self.bytes.len()).map_err(|_| Errno::MSGSIZE)?;
        if !self.fits {
            return Err(Errno::MSGSIZE);
        }
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        if acknowledge {
            self.bytes[6] |= flags::ACK.to_ne_bytes()[0];
            self.bytes[7] |= flags::ACK.to_ne_bytes()[1];
        }
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        Ok(self.bytes)
    }

    fn empty() -> Self {
        Self { what: "", answered: true, bytes: Vec::new(), fits: true }
    }

    fn holding(mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> Self {
        let start = self.bytes.len();
        self.bytes.extend([0; ATTRIBUTE_HEADER]);
        fill(&mut self);
        match u16::try_from(self.bytes.len() - start) {
            Ok(length) => self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes()),
            Err(_) => self.fits = false,
        }
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
