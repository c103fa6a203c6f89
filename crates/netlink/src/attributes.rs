//! Parses the kernel's answers. Parsing stops at a length that does not fit the data: nothing is guessed.

use crate::message::{ATTRIBUTE_HEADER, HEADER, aligned};

/// The attribute type without its flag bits (nested, byte order).
const KIND: u16 = 0x3fff;

/// One message of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of a packet, in order.
pub(crate) fn answers(packet: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    let mut rest = packet;
    std::iter::from_fn(move || {
        let length = usize::try_from(native32(rest, 0)?).ok()?;
        let body = rest.get(HEADER..length)?;
        let answer = Answer { kind: native16(rest, 4)?, sequence: native32(rest, 8)?, body };
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some(answer)
    })
}

/// The attributes in these bytes: kind and value.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(native16(rest, 0)?);
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        let kind = native16(rest, 2)? & KIND;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(crate) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

pub(crate) fn native32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn native16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_lies_ends_the_reading() {
        assert_eq!(attributes(&[8, 0, 1, 0, 9, 9, 9, 9, 200, 0, 2, 0]).count(), 1);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0, "shorter than its own header");
        assert_eq!(attributes(&[4, 0]).count(), 0);
        assert_eq!(answers(&[0; 16]).count(), 0);
        assert_eq!(answers(&[255; 40]).count(), 0);
        assert_eq!(attribute(&[8, 0, 1, 0x80, 1, 2, 3, 4], 1), Some([1, 2, 3, 4].as_slice()));
    }
}
