//! Whether a new git configuration file brings settings that could run a program, or lead git to one.
//!
//! Only keys that are known to be harmless may be new or changed. What somebody had configured before
//! stays: git writes the whole file anew for every change. What git would read and we can not is
//! refused.

use crate::gitconfig_parse::{Entry, beginning_of, parse};
use crate::lists::{Line, list};
use std::collections::HashMap;
use thiserror::Error;

static HARMLESS: &[Line] = list!("git-config.txt");

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("line {line} can not be read: {why}")]
    Unreadable { line: usize, why: &'static str },
    #[error("`{key}` in line {line} is not known to be harmless")]
    Key { key: String, line: usize },
    #[error("`{key}` in line {line}: {why}")]
    Value { key: String, line: usize, why: &'static str },
}

/// Whether `new` may take the place of `old`.
pub fn judge(old: Option<&[u8]>, new: &[u8]) -> Result<(), Refused> {
    let new = parse(new).map_err(|bad| Refused::Unreadable { line: bad.line, why: bad.why })?;
    let old = old.and_then(|old| parse(old).ok()).unwrap_or_default();
    let mut kept: HashMap<(&[u8], Option<&[u8]>), usize> = HashMap::new();
    for entry in &old {
        *kept.entry((&entry.key, entry.value.as_deref())).or_default() += 1;
    }
    for entry in &new {
        match kept.get_mut(&(entry.key.as_slice(), entry.value.as_deref())) {
            Some(left) if *left > 0 => *left -= 1,
            _ => judge_entry(entry)?,
        }
    }
    Ok(())
}

/// All values of a key, in order; `key` in the form git prints it. Of a file that was cut off, those
/// before the cut.
pub fn values(config: &[u8], key: &str) -> Vec<Vec<u8>> {
    let entries = beginning_of(config).into_iter();
    entries.filter(|entry| entry.key == key.as_bytes()).filter_map(|entry| entry.value).collect()
}

fn judge_entry(entry: &Entry) -> Result<(), Refused> {
    let (key, line) = (String::from_utf8_lossy(&entry.key).into_owned(), entry.line);
    let Some(harmless) = HARMLESS.iter().find(|harmless| names(harmless.first, &entry.key)) else {
        return Err(Refused::Key { key, line });
    };
    match objection(harmless.second, entry.value.as_deref()) {
        None => Ok(()),
        Some(why) => Err(Refused::Value { key, line, why }),
    }
}

/// Whether a key is meant by a line of the list: `section.key`, `section.*.key` with any subsection,
/// `section.*` for every key of a section, `section.*.*` for those in a subsection.
fn names(pattern: &str, key: &[u8]) -> bool {
    let Some(parts) = Parts::of(key) else { return false };
    let mut pattern = pattern.split('.');
    let (section, second, third) = (pattern.next(), pattern.next(), pattern.next());
    let is = |wanted: Option<&str>, found: &[u8]| {
        wanted.is_some_and(|wanted| wanted == "*" || wanted.as_bytes() == found)
    };
    is(section, parts.section)
        && match third {
            Some(_) => parts.subsection.is_some() && is(third, parts.name),
            None => parts.subsection.is_none() && is(second, parts.name),
        }
}

/// As git takes a key apart: up to the first dot, from the last one, and what is between.
struct Parts<'k> {
    section: &'k [u8],
    subsection: Option<&'k [u8]>,
    name: &'k [u8],
}

impl<'k> Parts<'k> {
    fn of(key: &'k [u8]) -> Option<Self> {
        let first = key.iter().position(|byte| *byte == b'.')?;
        let last = key.iter().rposition(|byte| *byte == b'.')?;
        let subsection = (first < last).then(|| &key[first + 1..last]);
        Some(Self { section: &key[..first], subsection, name: &key[last + 1..] })
    }
}

/// What speaks against a value of a harmless key, by the kind the list gives it.
fn objection(kind: &str, value: Option<&[u8]>) -> Option<&'static str> {
    match (kind, value) {
        ("any", _) => None,
        ("url", Some(url)) => objection_to_url(url),
        // Git itself has no use for them without a value.
        ("url", None) => None,
        (words, Some(value)) => {
            let is_listed = words.split('|').any(|word| word.as_bytes() == value);
            (!is_listed).then_some("only the plain words that git knows for it are harmless")
        }
        (_, None) => Some("a value is missing"),
    }
}

/// Schemes that git serves itself or with the helpers it brings; any other one runs `git-remote-…`.
const SCHEMES: [&[u8]; 7] = [b"https", b"http", b"ssh", b"git", b"file", b"git+ssh", b"ssh+git"];

/// A place to fetch from, or the name of a remote: not an option, and no helper that runs a program
/// (`ext::sh -c …`).
fn objection_to_url(url: &[u8]) -> Option<&'static str> {
    if url.starts_with(b"-") {
        return Some("it would be read as an option");
    }
    if url.iter().any(u8::is_ascii_control) {
        return Some("it has control characters in it");
    }
    if url.windows(2).any(|pair| pair == b"::") {
        return Some("`::` names a program that git runs");
    }
    let scheme_end = url.windows(3).position(|three| three == b"://")?;
    let (scheme, host) = (&url[..scheme_end], &url[scheme_end + 3..]);
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Some("its scheme names a program that git runs");
    }
    // CVE-2017-1000117; git refuses it too since 2.14.1.
    host.starts_with(b"-").then_some("its host would be read as an option")
}

#[cfg(test)]
#[path = "gitconfig_tests.rs"]
mod tests;
