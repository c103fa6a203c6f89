//! Makes text harmless for a terminal: what would move the cursor, change colours, hide or reorder text is spelled out.

/// A line without its line end.
pub(super) fn visible(line: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\t' => shown.push(b'\t'),
                '\0'..='\x1f' => {
                    let letter = u8::try_from(character).unwrap_or_default() ^ 0x40;
                    shown.extend([b'^', letter]);
                }
                '\x7f' => shown.extend(b"^?"),
                _ if is_deceptive(character) => {
                    shown.extend(format!("<U+{:04X}>", u32::from(character)).bytes());
                }
                _ => shown.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        for byte in chunk.invalid() {
            shown.extend(format!("<{byte:02X}>").bytes());
        }
    }
    shown
}

/// C1 controls, and characters that reorder or hide the text around them (CVE-2021-42574).
fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_controls_the_terminal() {
        let shown = |text: &[u8]| String::from_utf8(visible(text)).unwrap();
        assert_eq!(shown(b"plain\ttext"), "plain\ttext");
        assert_eq!(shown(b"\x1b]0;title\x07\r"), "^[]0;title^G^M");
        assert_eq!(shown("\u{9b}2J".as_bytes()), "<U+009B>2J");
        assert_eq!(shown(b"\x9b2J\xff"), "<9B>2J<FF>");
        assert_eq!(shown("a\u{202e}b".as_bytes()), "a<U+202E>b");
        assert_eq!(shown("gr\u{fc}\u{df}".as_bytes()), "gr\u{fc}\u{df}");
    }
}
