//! Output that is too long for a model: what of it is shown.

use palisade_record::escape;
use std::ops::Range;

/// Of a name that a model, a command or a server chose, in characters.
const MAX_NAME: usize = 200;

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

/// A name that a model, a command or a server chose, as a person is shown it: on one line, with nothing invisible, not too long, and
/// as one word, so that it does not look like two or like our own words.
pub(crate) fn named(name: &str) -> String {
    let length = name.chars().count();
    if length <= MAX_NAME {
        return escape::quoted(name);
    }
    let head: String = name.chars().take(MAX_NAME / 3).collect();
    let tail: String = name.chars().skip(length - (MAX_NAME - MAX_NAME / 3)).collect();
    let count = length - MAX_NAME;
    format!("{} [{count} characters left out] {}", escape::quoted(&head), escape::quoted(&tail))
}

/// The first of them, and how many more there are.
pub(crate) fn listed(names: &[String]) -> String {
    const MAX_SHOWN: usize = 20;
    let shown: Vec<String> = names.iter().take(MAX_SHOWN).cloned().collect();
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME, Shortened, listed, lossy, named, whole};

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

    #[test]
    fn a_name_cannot_look_like_something_else() {
        assert_eq!(named("src/a.rs"), "src/a.rs");
        assert_eq!(named(""), "''");
        assert_eq!(named("a, b"), "'a, b'");
        assert_eq!(named("a\n\u{202e}b"), r"'a\n\u{202e}b'");
        let long = named(&format!("a{}z", "x".repeat(MAX_NAME)));
        assert!(long.starts_with("ax") && long.ends_with("xz") && long.contains("[2 characters"));
        let many: Vec<String> = (0..25).map(|number| number.to_string()).collect();
        assert!(listed(&many).ends_with("19 and 5 more"));
    }
}
