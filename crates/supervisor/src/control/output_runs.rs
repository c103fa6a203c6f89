//! Which bytes of a log are of which output, where a command has two: runs of bytes in the order in which they were read, each a
//! number (unsigned LEB128) that is twice its length, and one more for standard error. A run has at least one byte and takes at most as
//! many, and one more: no command makes the record much larger than what it wrote.

use super::interface::OutputStream;

/// Bytes of one output that were read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRun {
    pub stream: OutputStream,
    pub length: u64,
}

impl OutputRun {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut rest = self.length << 1 | u64::from(self.stream == OutputStream::Stderr);
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(rest & 0x7f).unwrap_or_default();
            rest >>= 7;
            if rest == 0 {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }
}

/// All runs of a record that may still be written to: what is unfinished at its end is left out.
pub fn decode(record: &[u8]) -> impl Iterator<Item = OutputRun> + '_ {
    let mut rest = record.iter();
    std::iter::from_fn(move || {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = rest.next()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let stream = match number & 1 {
                    0 => OutputStream::Stdout,
                    _ => OutputStream::Stderr,
                };
                return Some(OutputRun { stream, length: number >> 1 });
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::{OutputRun, OutputStream, decode};

    #[test]
    fn runs_are_read_as_they_were_written_and_the_unfinished_one_is_left_out() {
        let runs = [
            OutputRun { stream: OutputStream::Stdout, length: 1 },
            OutputRun { stream: OutputStream::Stderr, length: 63 },
            OutputRun { stream: OutputStream::Stderr, length: 64 },
            OutputRun { stream: OutputStream::Stdout, length: 16 << 10 },
        ];
        let mut record: Vec<u8> = runs.iter().flat_map(|run| run.encode()).collect();
        assert_eq!(record.len(), 1 + 1 + 2 + 3);
        assert_eq!(decode(&record).collect::<Vec<_>>(), runs);
        record.pop();
        assert_eq!(decode(&record).collect::<Vec<_>>(), runs[..3]);
        assert_eq!(decode(&[0xff; 64]).count(), 0);
    }
}
