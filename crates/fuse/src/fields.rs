//! Fields of messages, in the byte order of this machine. Reading never goes beyond the message.

use crate::error::Malformation;

type Result<T> = std::result::Result<T, Malformation>;

/// What is left to read of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn left(&self) -> usize {
        self.0.len()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformation::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_ne_bytes)
    }

    pub(crate) fn skip(&mut self, bytes: usize) -> Result<()> {
        self.bytes(bytes).map(drop)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count).ok_or(Malformation::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    /// The bytes before the next NUL, which is taken too.
    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformation::UnendedName)?;
        let text = self.bytes(end)?;
        self.skip(1)?;
        Ok(text)
    }

    /// A name in a directory. With `.`, `..` or a slash in it, a path made of it would lead elsewhere. The kernel sends
    /// the first two only to servers that support export over NFS.
    pub(crate) fn name(&mut self) -> Result<&'a [u8]> {
        let name = self.text()?;
        if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
            return Err(Malformation::BadName);
        }
        Ok(name)
    }

    /// A text that is not a name in a directory: the target of a link, the name of an extended attribute.
    pub(crate) fn nonempty_text(&mut self) -> Result<&'a [u8]> {
        self.text()
            .and_then(|text| if text.is_empty() { Err(Malformation::BadName) } else { Ok(text) })
    }

    /// Data whose length a field before it states, and which ends the message.
    pub(crate) fn counted(&mut self, stated: u32) -> Result<&'a [u8]> {
        let received = self.left();
        if usize::try_from(stated).ok() != Some(received) {
            return Err(Malformation::Count { stated, received });
        }
        Ok(self.rest())
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformation::Trailing(self.0.len())) }
    }
}

/// Appends fields to a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

/// Continues a message.
impl From<Vec<u8>> for Writer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    #[must_use]
    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn i32(self, value: i32) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn i64(self, value: i64) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    #[must_use]
    pub(crate) fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
