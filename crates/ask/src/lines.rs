//! Splits a stream of bytes into lines, and never buffers more than the maximum length of a line.

/// The bytes of a line that is not complete yet.
#[derive(Debug)]
pub(crate) struct Lines {
    held: Vec<u8>,
    longest: usize,
}

/// A line exceeded the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn new(longest: usize) -> Self {
        Self { held: Vec::new(), longest }
    }

    /// The lines that are now complete, without their line ends and without empty lines. After `TooLong` the
    /// stream cannot be parsed any further.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> (Vec<Vec<u8>>, Result<(), TooLong>) {
        let mut whole = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            if self.held.len() + end > self.longest {
                return (whole, Err(TooLong));
            }
            let mut line = std::mem::take(&mut self.held);
            line.extend_from_slice(&bytes[..end]);
            if !line.trim_ascii().is_empty() {
                whole.push(line);
            }
            bytes = &bytes[end + 1..];
        }
        if self.held.len() + bytes.len() > self.longest {
            return (whole, Err(TooLong));
        }
        self.held.extend_from_slice(bytes);
        (whole, Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, TooLong};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_came(
            lines in prop::collection::vec("[a-z]{1,20}", 0..10),
            step in 1_usize..30,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut cutter = Lines::new(20);
            let mut seen = Vec::new();
            for chunk in text.as_bytes().chunks(step) {
                let (whole, fine) = cutter.push(chunk);
                prop_assert_eq!(fine, Ok(()));
                seen.extend(whole.into_iter().map(|line| String::from_utf8(line).unwrap()));
            }
            prop_assert_eq!(seen, lines);
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut lines = Lines::new(8);
        assert_eq!(lines.push(b"12345678"), (vec![], Ok(())));
        assert_eq!(lines.push(b"9"), (vec![], Err(TooLong)));
        let mut lines = Lines::new(8);
        let first = b"first".to_vec();
        assert_eq!(lines.push(b"first\n123456789\n"), (vec![first], Err(TooLong)));
    }
}
