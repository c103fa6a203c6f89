//! The shipped lists of `resources/view`, one entry a line: `NAME FLAGS # reason`.
//!
//! Read by the compiler, as every start needs them all: a line that is not an entry does not compile.
//! Nothing is decided here: what a list means is said where it is used.

macro_rules! list {
    ($file:literal) => {{
        const TEXT: &[u8] = include_bytes!(concat!("../../../resources/view/", $file));
        const COUNT: usize = count(TEXT);
        const ENTRIES: [Listed; COUNT] = parse(TEXT);
        &ENTRIES
    }};
}

pub(crate) static SYSTEM: &[Listed] = list!("system.txt");
pub(crate) static TOOLCHAINS: &[Listed] = list!("toolchains.txt");
pub(crate) static CACHES: &[Listed] = list!("caches.txt");
pub(crate) static SECRETS: &[Listed] = list!("secrets.txt");
pub(crate) static SECRET_ENV: &[Listed] = list!("secret-env.txt");

/// A line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    flags: &'static str,
}

impl Listed {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|word| word == flag)
    }
}

const fn count(text: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        if text[at] != b'#' {
            count += 1;
        }
        at = end_of(text, at, b'\n') + 1;
    }
    count
}

const fn parse<const COUNT: usize>(text: &'static [u8]) -> [Listed; COUNT] {
    let mut entries = [Listed { name: "", flags: "" }; COUNT];
    let (mut index, mut at) = (0, 0);
    while at < text.len() {
        if text[at] != b'#' {
            let name_end = end_of(text, at, b' ');
            let mut flags = name_end;
            while text[flags] == b' ' {
                flags += 1;
            }
            let flags_end = end_of(text, flags, b' ');
            assert!(text[flags_end + 1] == b'#' || text[flags_end + 1] == b' ', "no reason");
            entries[index] =
                Listed { name: part(text, at, name_end), flags: part(text, flags, flags_end) };
            index += 1;
        }
        at = end_of(text, at, b'\n') + 1;
    }
    entries
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

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
