//! The shipped lists, parsed at compile time: one `NAME TAGS # reason` a line. A line without these three parts
//! is a compile error. The code that uses a list documents its meaning.

/// The lines of a list. The path is relative to the calling file.
#[macro_export]
macro_rules! list {
    ($file:literal) => {{
        const TEXT: &[u8] = include_bytes!($file);
        const COUNT: usize = $crate::lists::count(TEXT);
        const LINES: [$crate::lists::Listed; COUNT] = $crate::lists::parse(TEXT);
        &LINES
    }};
}

/// One line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: &'static str,
    /// Words without blanks.
    pub tags: &'static str,
    pub why: &'static str,
}

impl Listed {
    /// For tags that are separated by commas.
    pub fn has(&self, tag: &str) -> bool {
        self.tags.as_bytes().split(|byte| *byte == b',').any(|word| word == tag.as_bytes())
    }
}

/// How many entries a list has.
pub const fn count(text: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        if is_entry(text[at]) {
            count += 1;
        }
        at = end_of(text, at, b'\n') + 1;
    }
    count
}

pub const fn parse<const COUNT: usize>(text: &'static [u8]) -> [Listed; COUNT] {
    let mut lines = [Listed { name: "", tags: "", why: "" }; COUNT];
    let (mut index, mut at) = (0, 0);
    while at < text.len() {
        let line_end = end_of(text, at, b'\n');
        if is_entry(text[at]) {
            let name_end = end_of(text, at, b' ');
            let tags = skip_spaces(text, name_end);
            let tags_end = end_of(text, tags, b' ');
            let mark = skip_spaces(text, tags_end);
            assert!(text[mark] == b'#' && text[mark + 1] == b' ', "no reason");
            assert!(mark + 2 < line_end, "no reason");
            lines[index] = Listed {
                name: part(text, at, name_end),
                tags: part(text, tags, tags_end),
                why: part(text, mark + 2, line_end),
            };
            index += 1;
        }
        at = line_end + 1;
    }
    lines
}

const fn is_entry(first: u8) -> bool {
    first != b'#' && first != b'\n'
}

const fn skip_spaces(text: &[u8], mut at: usize) -> usize {
    while text[at] == b' ' {
        at += 1;
    }
    at
}

const fn end_of(text: &[u8], mut at: usize, end: u8) -> usize {
    while text[at] != end {
        at += 1;
    }
    at
}

const fn part(text: &'static [u8], from: usize, to: usize) -> &'static str {
    let (until, _) = text.split_at(to);
    let (_, part) = until.split_at(from);
    match std::str::from_utf8(part) {
        Ok(part) => part,
        Err(_) => "",
    }
}
