//! Patterns with `*`, `?`, `[a-z]` and `**`, matched name by name.
//!
//! Regular expressions are not used: a rule must cost nothing at the start of a run, must not fail once it is
//! parsed, and no pattern may cause exponential matching time.
//!
//! `check-path` uses the same matching with its own syntax ([`Glob::from_parts`]). It accepts the denied paths
//! of other programs: there `[`, `{` and `\` are ordinary characters, `..` removes a name, and every text is
//! valid.

/// Longer than any path.
const MAX_LENGTH: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    /// The leading directories without wildcards: `/x` of `/x/*.h`; empty for the root.
    directory: Vec<u8>,
    /// The names after that; the first has a wildcard.
    names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// `**`: any number of names, including none.
    AnyNumber,
    One(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    AnyCharacter,
    /// `*`
    AnyText,
    /// `[a-z]`, `[!a-z]`: ASCII ranges.
    Class {
        ranges: Vec<(u8, u8)>,
        negated: bool,
    },
}

/// The text between two slashes of a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobPart<'t> {
    /// `**`
    AnyNumber,
    /// A name in which only `*` and `?` are wildcards.
    Wildcards(&'t [u8]),
    /// A name without wildcards.
    Literal(&'t [u8]),
}

/// What a pattern text parses to.
pub(crate) enum Parsed {
    /// No wildcards; escapes are removed.
    Path(Vec<u8>),
    /// `/x/**`
    Tree(Vec<u8>),
    Glob(Glob),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    #[error("`**` stands alone between slashes, as in /x/**/y")]
    StarsInName,
    #[error("`[` without its `]`; write \\[ for the character itself")]
    OpenClass,
    #[error("a range in `[…]` is empty or runs backwards")]
    Range,
    #[error("`[…]` takes ASCII characters only")]
    NotAscii,
    #[error("braces are not expanded: write one rule for each, or \\{{ for the character itself")]
    Braces,
    #[error("a backslash at the end escapes nothing")]
    Backslash,
    #[error("`.` and `..` have no place in a rule: it is about the real path")]
    Dots,
    #[error("longer than any path can be")]
    TooLong,
}

/// Parses an absolute path with wildcards.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, GlobError> {
    if text.len() > MAX_LENGTH {
        return Err(GlobError::TooLong);
    }
    let mut names = Vec::new();
    for name in split_names(text) {
        names.push(match name {
            b"**" => Name::AnyNumber,
            b"." | b".." => return Err(GlobError::Dots),
            name => Name::One(tokens(name)?),
        });
    }
    let literal = names.iter().take_while(|name| name.literal().is_some()).count();
    let rest = names.split_off(literal);
    let directory: Vec<u8> = names
        .iter()
        .filter_map(Name::literal)
        .flat_map(|name| [b"/".to_vec(), name].concat())
        .collect();
    Ok(match &rest[..] {
        [] => Parsed::Path(or_root(directory)),
        [Name::AnyNumber] => Parsed::Tree(or_root(directory)),
        _ => Parsed::Glob(Glob { directory, names: rest }),
    })
}

fn or_root(path: Vec<u8>) -> Vec<u8> {
    if path.is_empty() { b"/".to_vec() } else { path }
}

fn split_names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

fn tokens(name: &[u8]) -> Result<Vec<Token>, GlobError> {
    let mut tokens = Vec::new();
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        tokens.push(match byte {
            b'\\' => {
                let (&escaped, after) = rest.split_first().ok_or(GlobError::Backslash)?;
                rest = after;
                Token::Byte(escaped)
            }
            b'*' if rest.first() == Some(&b'*') => return Err(GlobError::StarsInName),
            b'*' => Token::AnyText,
            b'?' => Token::AnyCharacter,
            b'{' | b'}' => return Err(GlobError::Braces),
            b'[' => {
                let (class, after) = class(rest)?;
                rest = after;
                class
            }
            byte => Token::Byte(byte),
        });
    }
    Ok(tokens)
}

/// The inside of `[…]`. To match `]` or `-` itself, it must come first.
fn class(text: &[u8]) -> Result<(Token, &[u8]), GlobError> {
    let (negated, text) = match text.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, text),
    };
    let end = text.iter().skip(1).position(|byte| *byte == b']').ok_or(GlobError::OpenClass)? + 1;
    let (inside, after) = text.split_at(end);
    if !inside.is_ascii() {
        return Err(GlobError::NotAscii);
    }
    let mut ranges = Vec::new();
    let mut rest = inside;
    while let Some((&first, more)) = rest.split_first() {
        let (last, more) = match more {
            [b'-', last, more @ ..] => (*last, more),
            more => (first, more),
        };
        if last < first {
            return Err(GlobError::Range);
        }
        ranges.push((first, last));
        rest = more;
    }
    Ok((Token::Class { ranges, negated }, &after[1..]))
}

impl Name {
    /// The name as text, if it has no wildcard.
    fn literal(&self) -> Option<Vec<u8>> {
        let Name::One(tokens) = self else { return None };
        tokens
            .iter()
            .map(|token| match token {
                Token::Byte(byte) => Some(*byte),
                _ => None,
            })
            .collect()
    }
}

impl From<GlobPart<'_>> for Name {
    fn from(part: GlobPart<'_>) -> Self {
        let wildcard = |byte: &u8| match byte {
            b'*' => Token::AnyText,
            b'?' => Token::AnyCharacter,
            byte => Token::Byte(*byte),
        };
        match part {
            GlobPart::AnyNumber => Self::AnyNumber,
            GlobPart::Wildcards(name) => Self::One(name.iter().map(wildcard).collect()),
            GlobPart::Literal(name) => Self::One(name.iter().copied().map(Token::Byte).collect()),
        }
    }
}

impl Glob {
    /// An absolute glob, for callers with their own syntax.
    pub fn from_parts(parts: &[GlobPart<'_>]) -> Self {
        Self { directory: Vec::new(), names: parts.iter().copied().map(Name::from).collect() }
    }

    /// The directory that contains every match; empty for the root.
    pub(crate) fn directory(&self) -> &[u8] {
        &self.directory
    }

    /// The bytes that every match ends with: `.h` of `/x/*.h`.
    pub(crate) fn tail(&self) -> Vec<u8> {
        let Some(Name::One(tokens)) = self.names.last() else { return Vec::new() };
        let tail = tokens.iter().rev().map_while(|token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        });
        let mut tail: Vec<u8> = tail.collect();
        tail.reverse();
        tail
    }

    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        match path.strip_prefix(self.directory.as_slice()) {
            Some(rest) if rest.is_empty() || rest[0] == b'/' => self.matches_below(rest),
            _ => false,
        }
    }

    /// Matches the part of the path after the directory.
    pub(crate) fn matches_below(&self, rest: &[u8]) -> bool {
        self.matches_names(&split_names(rest).collect::<Vec<_>>())
    }

    /// Matches a path that is already split into names. Backtracks only to the last `**`: anything that an
    /// earlier one could match, the later one can match too.
    pub fn matches_names(&self, path: &[&[u8]]) -> bool {
        let (mut at, mut wanted) = (0, 0);
        let mut again: Option<(usize, usize)> = None;
        while at < path.len() {
            match self.names.get(wanted) {
                Some(Name::AnyNumber) => {
                    wanted += 1;
                    again = Some((at, wanted));
                }
                Some(Name::One(tokens)) if matches_name(tokens, path[at]) => {
                    at += 1;
                    wanted += 1;
                }
                _ => match again {
                    Some((from, after)) => {
                        again = Some((from + 1, after));
                        at = from + 1;
                        wanted = after;
                    }
                    None => return false,
                },
            }
        }
        self.names[wanted..].iter().all(|name| *name == Name::AnyNumber)
    }

    /// As a policy would write it.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for name in split_names(&self.directory) {
            text.push(b'/');
            escape(name, &mut text);
        }
        for name in &self.names {
            text.push(b'/');
            match name {
                Name::AnyNumber => text.extend(b"**"),
                Name::One(tokens) => tokens.iter().for_each(|token| write_token(token, &mut text)),
            }
        }
        text
    }
}

/// Matches one name. Backtracks only to the last `*`, as above.
fn matches_name(tokens: &[Token], name: &[u8]) -> bool {
    let (mut at, mut wanted) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < name.len() {
        let taken = match tokens.get(wanted) {
            Some(Token::AnyText) => {
                wanted += 1;
                again = Some((at, wanted));
                continue;
            }
            Some(token) => token.takes(&name[at..]),
            None => 0,
        };
        if taken > 0 {
            at += taken;
            wanted += 1;
        } else if let Some((from, after)) = again {
            again = Some((from + 1, after));
            at = from + 1;
            wanted = after;
        } else {
            return false;
        }
    }
    tokens[wanted..].iter().all(|token| *token == Token::AnyText)
}

impl Token {
    /// How many bytes it matches at the front of `text`; 0 if it does not match.
    fn takes(&self, text: &[u8]) -> usize {
        match self {
            Token::Byte(byte) => usize::from(text.first() == Some(byte)),
            Token::AnyText => 0,
            Token::AnyCharacter => character(text),
            Token::Class { ranges, negated } => {
                let inside = text.first().is_some_and(|byte| {
                    ranges.iter().any(|(first, last)| (first..=last).contains(&byte))
                });
                if inside == *negated { 0 } else { character(text) }
            }
        }
    }
}

/// The length of the first UTF-8 character; an invalid byte counts as one.
fn character(text: &[u8]) -> usize {
    let Some(first) = text.first() else { return 0 };
    let length = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    match text.get(..length) {
        Some(bytes) if std::str::from_utf8(bytes).is_ok() => length,
        _ => 1,
    }
}

/// Writes text so that [`parse`] reads it literally.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if b"\\*?[{}".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

fn write_token(token: &Token, out: &mut Vec<u8>) {
    match token {
        Token::Byte(byte) => escape(&[*byte], out),
        Token::AnyCharacter => out.push(b'?'),
        Token::AnyText => out.push(b'*'),
        Token::Class { ranges, negated } => {
            out.extend(if *negated { b"[!".as_slice() } else { b"[" });
            for (first, last) in ranges {
                out.push(*first);
                if first != last {
                    out.extend([b'-', *last]);
                }
            }
            out.push(b']');
        }
    }
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
