//! Writes JSON as plain ASCII on one line.
//!
//! Text from the sandbox goes through here. Everything that a terminal would interpret, or that is invisible,
//! becomes a JSON escape. A line can then be printed as it is without changing its meaning (attacks H03 and
//! H04).

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// One line, including the line end.
pub fn to_line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut written = Vec::with_capacity(512);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut written, Ascii))?;
    written.push(b'\n');
    String::from_utf8(written).map_err(serde::ser::Error::custom)
}

struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices() {
            // Other control characters never get here: serde_json escapes them itself.
            if c.is_ascii() && c != '\x7f' {
                continue;
            }
            writer.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::to_line;
    use proptest::prelude::*;

    proptest! {
        /// Proves: GATE-6 messages
        #[test]
        fn any_text_is_one_line_of_plain_ascii(text in any::<String>()) {
            let line = to_line(&text).unwrap();
            let inner = line.strip_suffix('\n').unwrap();
            prop_assert!(inner.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
            prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }
    }

    #[test]
    fn what_deceives_is_spelt_out() {
        assert_eq!(
            to_line(&"a\u{202e}b\x7f\u{1f980}\x1b").unwrap(),
            "\"a\\u202eb\\u007f\\ud83e\\udd80\\u001b\"\n"
        );
    }
}
