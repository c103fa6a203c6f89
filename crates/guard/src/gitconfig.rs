//! Judges whether a new git configuration file adds settings that could run a program, or lead git to one.
//!
//! Only keys that are known to be harmless may be added or changed. Settings that were there before may stay,
//! because git rewrites the whole file for every change. A file that we cannot parse but git may be able to is
//! refused.

pub use crate::config_location::ConfigLocation;
use crate::gitconfig_values::{objection_to_subsection, objection_to_value, objection_to_worktree};
use crate::list;
use crate::lists::Listed;
use palisade_gitconfig::{Entry, beginning_of, parse};
use std::collections::HashMap;
use thiserror::Error;

static HARMLESS: &[Listed] = list!("../../../resources/guard/git-config.txt");
/// The documented keys that are not harmless, each with the reason for the error message.
static REFUSED: &[Listed] = list!("../../../resources/guard/git-config-refused.txt");

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("line {line} cannot be read: {why}")]
    Unreadable { line: usize, why: &'static str },
    #[error("`{key}` in line {line} is not known to be harmless")]
    Key { key: String, line: usize },
    #[error("`{key}` in line {line} {why}")]
    Harmful { key: String, line: usize, why: &'static str },
    #[error("`{key}` in line {line}: {why}")]
    Value { key: String, line: usize, why: &'static str },
}

/// Judging blocks every process that waits for the broker. A repository with two thousand branches has six
/// thousand settings.
const MAX_ENTRIES: usize = 20_000;

/// Whether `new` may replace `old`, wherever the file is.
pub fn judge(old: Option<&[u8]>, new: &[u8]) -> Result<(), Refused> {
    judge_with(old, new, None)
}

/// The same for a file whose location is known. There a submodule may set `core.worktree`.
pub fn judge_at(old: Option<&[u8]>, new: &[u8], place: &ConfigLocation<'_>) -> Result<(), Refused> {
    judge_with(old, new, Some(place))
}

fn judge_with(
    old: Option<&[u8]>,
    new: &[u8],
    place: Option<&ConfigLocation<'_>>,
) -> Result<(), Refused> {
    let new = parse(new).map_err(|bad| Refused::Unreadable { line: bad.line, why: bad.why })?;
    if let Some(entry) = new.get(MAX_ENTRIES) {
        let why = "more settings than anybody keeps";
        return Err(Refused::Unreadable { line: entry.line, why });
    }
    let old = old.and_then(|old| parse(old).ok()).unwrap_or_default();
    let mut kept: HashMap<(&[u8], Option<&[u8]>), usize> = HashMap::new();
    for entry in &old {
        *kept.entry((&entry.key, entry.value.as_deref())).or_default() += 1;
    }
    if !old.is_empty()
        && is_bare(&old) != is_bare(&new)
        && let Some(hooks) = new.iter().find(|entry| {
            entry.key == b"core.hookspath" && entry.value.as_deref().is_some_and(is_relative)
        })
    {
        let (key, line) = ("core.bare".to_owned(), hooks.line);
        let why = "with it, the relative `core.hooksPath` of this line would lead elsewhere";
        return Err(Refused::Value { key, line, why });
    }
    for entry in &new {
        match kept.get_mut(&(entry.key.as_slice(), entry.value.as_deref())) {
            Some(left) if *left > 0 => *left -= 1,
            _ => judge_entry(entry, place)?,
        }
    }
    Ok(())
}

/// Whether the meaning of a path depends on where it is read. The other forms are those of
/// git_config_pathname().
pub fn is_relative(path: &[u8]) -> bool {
    !matches!(path.first(), None | Some(b'/' | b'~')) && !path.starts_with(b"%(prefix)")
}

/// Parsed like git_parse_maybe_bool(). A repository without the setting is not bare.
fn is_bare(entries: &[Entry]) -> bool {
    let last = entries.iter().rfind(|entry| entry.key == b"core.bare");
    last.is_some_and(|entry| {
        let value = entry.value.as_deref().map(<[u8]>::to_ascii_lowercase);
        !matches!(value.as_deref(), Some(b"" | b"false" | b"no" | b"off" | b"0"))
    })
}

/// All values of a key, in order. `key` is written as in the list of harmless keys, with `*` for any
/// subsection. If git would stop at an error, only the values before it.
pub fn values(config: &[u8], key: &str) -> Vec<Vec<u8>> {
    let entries = beginning_of(config).into_iter();
    entries.filter(|entry| names(key, entry)).filter_map(|entry| entry.value).collect()
}

fn judge_entry(entry: &Entry, place: Option<&ConfigLocation<'_>>) -> Result<(), Refused> {
    let (key, line) = (String::from_utf8_lossy(&entry.key).into_owned(), entry.line);
    let value = entry.value.as_deref();
    let objection = if let (b"core.worktree", Some(place)) = (entry.key.as_slice(), place) {
        objection_to_worktree(value, place)
    } else {
        let Some(harmless) = HARMLESS.iter().find(|line| names(line.name, entry)) else {
            return Err(match REFUSED.iter().find(|line| names(line.name, entry)) {
                Some(refused) => Refused::Harmful { key, line, why: refused.why },
                None => Refused::Key { key, line },
            });
        };
        entry
            .parts()
            .and_then(|parts| objection_to_subsection(parts.section, parts.subsection?))
            .or_else(|| objection_to_value(harmless.tags, value))
    };
    match objection {
        None => Ok(()),
        Some(why) => Err(Refused::Value { key, line, why }),
    }
}

/// Whether a list line names this key: `section.key` or `section.subsection.key`, where `*` stands for any
/// subsection or name.
fn names(pattern: &str, entry: &Entry) -> bool {
    let Some(parts) = entry.parts() else { return false };
    let mut pattern = pattern.split('.');
    let (section, second, third) = (pattern.next(), pattern.next(), pattern.next());
    let is = |wanted: Option<&str>, found: &[u8]| {
        wanted.is_some_and(|wanted| wanted == "*" || wanted.as_bytes() == found)
    };
    is(section, parts.section)
        && match third {
            Some(_) => {
                parts.subsection.is_some_and(|found| is(second, found)) && is(third, parts.name)
            }
            None => parts.subsection.is_none() && is(second, parts.name),
        }
}

#[cfg(test)]
#[path = "gitconfig_tests.rs"]
mod tests;
