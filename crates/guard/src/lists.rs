//! The shipped lists, parsed while compiling: `FIRST SECOND # reason`, one a line. A line that has not
//! these three parts does not compile.

macro_rules! list {
    ($file:literal) => {{
        const TEXT: &[u8] = include_bytes!(concat!("../../../resources/guard/", $file));
        const COUNT: usize = $crate::lists::count(TEXT);
        const LINES: [$crate::lists::Line; COUNT] = $crate::lists::parse(TEXT);
        &LINES
    }};
}
pub(crate) use list;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) first: &'static str,
    pub(crate) second: &'static str,
    pub(crate) why: &'static str,
}

pub(crate) const fn count(text: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        if is_entry(text[at]) {
            count += 1;
        }
        at = end_of(text, at, b'\n') + 1;
    }
    count
}

pub(crate) const fn parse<const COUNT: usize>(text: &'static [u8]) -> [Line; COUNT] {
    let mut lines = [Line { first: "", second: "", why: "" }; COUNT];
    let (mut index, mut at) = (0, 0);
    while at < text.len() {
        let line_end = end_of(text, at, b'\n');
        if is_entry(text[at]) {
            let first_end = end_of(text, at, b' ');
            let second = skip_spaces(text, first_end);
            let second_end = end_of(text, second, b' ');
            let mark = skip_spaces(text, second_end);
            assert!(text[mark] == b'#' && text[mark + 1] == b' ', "no reason");
            assert!(mark + 2 < line_end, "no reason");
            lines[index] = Line {
                first: part(text, at, first_end),
                second: part(text, second, second_end),
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
