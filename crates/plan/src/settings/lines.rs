//! Filters line-based settings: npm, yarn, pip, cargo, gradle, go. Whole lines are removed or kept; from an
//! address only the login is removed.

use super::secret::{
    is_login_without_scheme, is_secret_key, is_secret_value, is_switch, without_logins,
};

/// The syntax of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grammar {
    /// Between a key and its value.
    separator: Separator,
    comments: &'static [char],
    continued: Continued,
    /// Whether values may be tables, lists and multi-line texts.
    has_brackets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    /// `key = value`
    Equals,
    /// `key=value`, `key: value`
    EqualsOrColon,
    /// `key: value`, or only `key:`
    Yaml,
    /// `key value`
    Blank,
}

/// How a value continues in the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continued {
    No,
    /// The line is indented further than the key.
    Indented,
    /// After a `\` at the end of the line.
    Backslash,
}

impl Grammar {
    /// By the format's name in `resources/view/settings.txt`.
    pub(crate) fn of(format: &str) -> Option<Self> {
        let of = |separator, comments, continued, has_brackets| {
            Some(Self { separator, comments, continued, has_brackets })
        };
        match format {
            "npm" => of(Separator::Equals, &['#', ';'], Continued::No, false),
            "ini" => of(Separator::EqualsOrColon, &['#', ';'], Continued::Indented, false),
            "yarn" => of(Separator::Blank, &['#'], Continued::Indented, false),
            "yaml" => of(Separator::Yaml, &['#'], Continued::Indented, true),
            "toml" => of(Separator::Equals, &['#'], Continued::No, true),
            "properties" => of(Separator::EqualsOrColon, &['#', '!'], Continued::Backslash, false),
            _ => None,
        }
    }
}

enum Fate {
    Stays,
    /// Kept without its logins.
    Becomes(String),
    /// Removed, with its continuation lines.
    Goes(String),
}

/// The remaining text and the names of what was removed; `None` if that cannot be determined.
pub(crate) fn filter(grammar: &Grammar, text: &str) -> Option<(String, Vec<String>)> {
    let mut kept = String::with_capacity(text.len());
    let mut left_out = Vec::new();
    let mut dropping: Option<Dropping> = None;
    for line in text.split_inclusive('\n') {
        if let Some(dropped) = &mut dropping {
            if dropped.takes(grammar, line) {
                continue;
            }
            dropping = None;
        }
        match fate(grammar, line)? {
            Fate::Stays => kept.push_str(line),
            Fate::Becomes(line) => {
                left_out.push(named("the login in an address", key_of(grammar, &line)));
                kept.push_str(&line);
            }
            Fate::Goes(name) => {
                left_out.push(name);
                dropping = Some(Dropping::after(line));
            }
        }
    }
    Some((kept, left_out))
}

/// The continuation of a value that was removed.
struct Dropping {
    indentation: usize,
    ended_in_backslash: bool,
}

impl Dropping {
    fn after(line: &str) -> Self {
        Self { indentation: indentation(line), ended_in_backslash: ends_in_backslash(line) }
    }

    fn takes(&mut self, grammar: &Grammar, line: &str) -> bool {
        match grammar.continued {
            Continued::No => false,
            Continued::Indented => {
                let in_list = grammar.separator == Separator::Yaml && line.trim().starts_with('-');
                let least = self.indentation + usize::from(!in_list);
                !line.trim().is_empty() && indentation(line) >= least
            }
            Continued::Backslash => {
                std::mem::replace(&mut self.ended_in_backslash, ends_in_backslash(line))
            }
        }
    }
}

fn fate(grammar: &Grammar, line: &str) -> Option<Fate> {
    let trimmed = line.trim();
    // A credential that was commented out is still a credential.
    let said = trimmed.trim_start_matches(|c: char| grammar.comments.contains(&c) || c == ' ');
    let is_comment = said.len() != trimmed.len();
    let (key, value) = match split(grammar, said) {
        Some(parts) => parts,
        None if is_comment || is_known_alone(grammar, line, said) => ("", said),
        None => return None,
    };
    let is_secret = is_secret(grammar, key, value)?
        || names_a_secret(said)
        // The whole line: split at its first `:`, it would look like a key.
        || is_login_without_scheme(said)
        || (is_comment && mentions_a_secret(said));
    if is_secret {
        let is_open = grammar.has_brackets && is_open(grammar, value);
        return if is_open { None } else { Some(Fate::Goes(shown(key))) };
    }
    if grammar.has_brackets && has_open_text(said) {
        return None;
    }
    let clean = without_logins(line)?;
    Some(if clean == line { Fate::Stays } else { Fate::Becomes(clean.into_owned()) })
}

/// What a line without a key may contain: a section, a part of a list, a switch.
fn is_known_alone(grammar: &Grammar, line: &str, said: &str) -> bool {
    let is_word = !said.contains(char::is_whitespace);
    let is_indented = indentation(line) > 0;
    said.is_empty()
        || match grammar.separator {
            Separator::Equals if grammar.has_brackets => {
                said.starts_with(['[', ']', '{', '}', '"', '\''])
            }
            Separator::Equals => is_word || said.starts_with('['),
            Separator::EqualsOrColon => said.starts_with('[') || (is_word && is_indented),
            Separator::Yaml => said.starts_with('-') || said.starts_with(['}', ']']),
            Separator::Blank => is_word,
        }
}

fn is_secret(grammar: &Grammar, key: &str, value: &str) -> Option<bool> {
    let without_logins = without_logins(value)?;
    // An empty value continues in the following lines.
    let goes_on = value.is_empty() && grammar.continued == Continued::Indented;
    let is_by_name = is_secret_key(key) && (goes_on || !is_switch(value));
    let is_within = grammar.has_brackets && has_secret_in_table(value);
    // Also checks the key: `//host/:token "…"` in an unexpected syntax.
    Some(is_by_name || is_within || is_secret_value(&without_logins) || is_secret_value(key))
}

/// `{ index = "…", token = "…" }`, `{ npmAuthToken: … }`
fn has_secret_in_table(value: &str) -> bool {
    let parts = value.split(['{', ',', '[']).skip(1);
    parts.filter_map(|part| part.split_once(['=', ':'])).any(|(key, value)| {
        let value = value.trim_end_matches(['}', ']', ' ', '\t', '\n', '\r']);
        is_secret_key(key.trim()) && !is_switch(value)
    })
}

/// A key that names a secret anywhere in the line: `old: aPassword=…`.
fn names_a_secret(said: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    said.match_indices(['=', ':']).any(|(at, _)| {
        let before = said[..at].trim_end();
        let name = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
        let value = &said[at + 1..];
        let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let is_port = digits > 0 && value[digits..].chars().next().is_none_or(|c| c == '/');
        is_secret_key(name) && !is_switch(value) && !is_port
    })
}

/// Nobody needs the comment, so mentioning a secret is enough to remove it.
fn mentions_a_secret(comment: &str) -> bool {
    comment.split(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).any(is_secret_key)
}

fn split<'l>(grammar: &Grammar, said: &'l str) -> Option<(&'l str, &'l str)> {
    let (key, value) = match grammar.separator {
        Separator::Equals => said.split_once('=')?,
        Separator::EqualsOrColon => {
            let at = said.find(['=', ':'])?;
            // An address without a key.
            if said[at..].starts_with("://") {
                return None;
            }
            (&said[..at], &said[at + 1..])
        }
        Separator::Yaml => match said.split_once(": ") {
            Some(parts) => parts,
            None => (said.strip_suffix(':')?, ""),
        },
        Separator::Blank => match said.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => said.split_once([' ', '\t', ':'])?,
        },
    };
    let key = key.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
    Some((key, value.trim()))
}

fn key_of<'l>(grammar: &Grammar, line: &'l str) -> &'l str {
    split(grammar, line.trim()).map_or("", |(key, _)| key)
}

/// Whether a value continues in the next line without the grammar defining where it ends.
fn is_open(grammar: &Grammar, value: &str) -> bool {
    let count = |mark: char| value.matches(mark).count();
    // A YAML block ends with its indentation.
    let is_block = grammar.continued == Continued::Indented && !value.contains(['{', '[']);
    !is_block && (count('{') != count('}') || count('[') != count(']') || has_open_text(value))
}

/// A triple-quoted text that does not end in its line.
fn has_open_text(value: &str) -> bool {
    ["\"\"\"", "'''"].iter().any(|quotes| value.matches(quotes).count() % 2 == 1)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn ends_in_backslash(line: &str) -> bool {
    let line = line.trim_end_matches(['\n', '\r']);
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

/// A key can be shown, unless it may be a secret itself.
fn shown(key: &str) -> String {
    let is_plain =
        !key.is_empty() && key.len() <= 80 && !key.contains(['@', '\\']) && !is_secret_value(key);
    if is_plain { key.to_owned() } else { "a credential".to_owned() }
}

fn named(what: &str, key: &str) -> String {
    match shown(key).as_str() {
        "a credential" => what.to_owned(),
        key => format!("{what} ({key})"),
    }
}
