//! The wire format of Protocol Buffers, as far as OTLP needs it. Knows no message; must never fail.
//!
//! By hand, since OTLP needs a dozen messages, and a generator would bring more code than this is.

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

/// The bytes of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// An integer, a flag or a value of an enum. Negative ones are as their two's complement.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    pub(crate) fn fixed_64(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn fixed_32(&mut self, field: u64, value: u32) {
        self.tag(field, FIXED_32);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u64, value: f64) {
        self.fixed_64(field, value.to_bits());
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// An empty text is what a reader takes for one that is missing.
    pub(crate) fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// Many numbers of eight bytes in one field.
    pub(crate) fn packed_64(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        if !packed.is_empty() {
            self.bytes(field, &packed);
        }
    }

    pub(crate) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples of the documentation of the format.
    #[test]
    fn the_wire_format_is_that_of_its_documentation() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(message.into_bytes(), b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
    }

    #[test]
    fn every_kind_of_field_has_its_bytes() {
        let mut message = Message::default();
        message.number(1, u64::MAX);
        message.fixed_64(2, 1);
        message.fixed_32(16, 0x0102_0304);
        message.double(4, 1.0);
        message.text(5, "");
        message.packed_64(6, [1, 2].into_iter());
        message.packed_64(7, std::iter::empty());
        let mut expected = vec![0x08];
        expected.extend([0xff; 9]);
        expected.push(1);
        expected.extend([0x11, 1, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x85, 0x01, 4, 3, 2, 1]);
        expected.extend([0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        expected.extend([0x32, 16, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.into_bytes(), expected);
    }
}
