//! Output that is too long for a model: what of it is shown.

use std::ops::Range;

/// The beginning and the end of something, without what is between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shortened {
    head: String,
    tail: String,
    /// The bytes that are in neither.
    pub(crate) left_out: Option<Range<usize>>,
}

impl Shortened {
    /// The end gets more than the beginning: it is where errors are.
    pub(crate) fn of(bytes: &[u8], limit: usize) -> Self {
        if bytes.len() <= limit {
            return Self { head: lossy(bytes), tail: String::new(), left_out: None };
        }
        let head = whole(bytes, limit / 3);
        let mut tail = bytes.len() - (limit - limit / 3);
        while tail < bytes.len() && is_inside(bytes[tail]) {
            tail += 1;
        }
        Self {
            head: lossy(&bytes[..head]),
            tail: lossy(&bytes[tail..]),
            left_out: Some(head..tail),
        }
    }

    /// Both, with a note between them that is told how many bytes are missing.
    pub(crate) fn joined(&self, note: impl FnOnce(usize) -> String) -> String {
        match &self.left_out {
            None => self.head.clone(),
            Some(range) => format!("{}{}{}", self.head, note(range.len()), self.tail),
        }
    }
}

/// Where to cut so that no character is cut.
pub(crate) fn whole(bytes: &[u8], limit: usize) -> usize {
    let mut end = limit.min(bytes.len());
    while end > 0 && end < bytes.len() && is_inside(bytes[end]) {
        end -= 1;
    }
    end
}

/// Whether a character of UTF-8 does not begin here.
fn is_inside(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// As text. What is no UTF-8 is shown as U+FFFD, and control characters that only a terminal understands are left out.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r' | '\u{1b}')).collect()
}

#[cfg(test)]
mod tests {
    use super::{Shortened, lossy, whole};

    #[test]
    fn the_beginning_and_the_end_stay_and_no_character_is_cut() {
        let short = Shortened::of(b"abc", 10);
        assert_eq!((short.joined(|_| "?".into()).as_str(), short.left_out), ("abc", None));
        let long = "é".repeat(100);
        let cut = Shortened::of(long.as_bytes(), 31);
        let range = cut.left_out.clone().unwrap();
        let shown = cut.joined(|count| format!("[{count}]"));
        assert!(shown.starts_with('é') && shown.ends_with('é') && !shown.contains('\u{fffd}'));
        assert!(shown.contains(&format!("[{}]", range.len())));
        assert!(range.start <= 11 && 200 - range.end <= 21);
    }

    #[test]
    fn what_is_no_text_stays_readable() {
        assert_eq!(lossy(b"a\xff\x00b\n"), "a\u{fffd}b\n");
        assert_eq!(whole("aé".as_bytes(), 2), 1);
        assert_eq!(whole(b"abc", 9), 3);
    }
}
