//! Messages for tests, written and read by the offsets of the kernel's structures.

/// A message of a fixed size, and what follows it.
pub(crate) struct Layout(pub(crate) Vec<u8>);

impl Layout {
    pub(crate) fn sized(bytes: usize) -> Self {
        // Padding is not promised to be zero, so it is not.
        Self(vec![0xa5; bytes])
    }

    fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(crate) fn u16(self, offset: usize, value: u16) -> Self {
        self.put(offset, &value.to_ne_bytes())
    }

    pub(crate) fn u32(self, offset: usize, value: u32) -> Self {
        self.put(offset, &value.to_ne_bytes())
    }

    pub(crate) fn u64(self, offset: usize, value: u64) -> Self {
        self.put(offset, &value.to_ne_bytes())
    }

    pub(crate) fn then(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// A request with that body, from thread 77 about node 5.
pub(crate) fn request(opcode: u32, body: &Layout) -> Vec<u8> {
    let length = u32::try_from(40 + body.0.len()).unwrap();
    let header = Layout::sized(40)
        .u32(0, length)
        .u32(4, opcode)
        .u64(8, 0x1122_3344_5566)
        .u64(16, 5)
        .u32(24, 1000)
        .u32(28, 1001)
        .u32(32, 77)
        .u16(36, 0)
        .u16(38, 0);
    header.then(&body.0).0
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes(bytes[offset..offset + 2].try_into().unwrap())
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(bytes[offset..offset + 8].try_into().unwrap())
}
