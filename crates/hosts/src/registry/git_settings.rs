//! The syntax of git's settings (git-config(1)): sections, keys, values with quotes and escapes.
//!
//! Only reads. What git itself would stop at ends the reading.

use std::iter::Peekable;
use std::str::Chars;

/// `[section "subsection"] key = value`; section and key in lower case, as git compares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) subsection: String,
    pub(super) key: String,
    pub(super) value: String,
}

impl Setting {
    /// `section.subsection.key`, as variables and commands name it. A subsection may have dots of its own.
    pub(super) fn named(name: &str, value: &str) -> Option<Self> {
        let (section, rest) = name.split_once('.')?;
        let (subsection, key) = rest.rsplit_once('.').unwrap_or(("", rest));
        Some(Self {
            section: section.to_ascii_lowercase(),
            subsection: subsection.to_owned(),
            key: key.to_ascii_lowercase(),
            value: value.to_owned(),
        })
    }
}

pub(super) fn read(text: &str) -> Vec<Setting> {
    let mut reader = Reader { chars: text.chars().peekable() };
    let mut settings = Vec::new();
    let mut section = None;
    while let Some(next) = reader.chars.next() {
        match next {
            space if space.is_whitespace() => {}
            '#' | ';' => reader.skip_line(),
            '[' => match reader.header() {
                Some(header) => section = Some(header),
                None => break,
            },
            first if first.is_ascii_alphabetic() => {
                let key = reader.word(first);
                let value = reader.value();
                let Some((section, subsection)) = section.clone() else { break };
                settings.push(Setting { section, subsection, key, value });
            }
            _ => break,
        }
    }
    settings
}

struct Reader<'text> {
    chars: Peekable<Chars<'text>>,
}

impl Reader<'_> {
    /// Behind the bracket: `name]`, `name "subsection"]`, or `name.subsection]` of old.
    fn header(&mut self) -> Option<(String, String)> {
        let first = self.chars.next()?;
        let name = self.word(first);
        self.skip_blanks();
        match self.chars.next()? {
            ']' => Some(match name.split_once('.') {
                Some((section, subsection)) => (section.to_owned(), subsection.to_owned()),
                None => (name, String::new()),
            }),
            '"' => {
                let subsection = self.quoted()?;
                self.skip_blanks();
                (self.chars.next()? == ']').then_some((name, subsection))
            }
            _ => None,
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.chars.next()? {
                '"' => return Some(text),
                '\n' => return None,
                '\\' => text.push(self.chars.next()?),
                plain => text.push(plain),
            }
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first.to_ascii_lowercase());
        let of_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        while let Some(next) = self.chars.next_if(of_word) {
            word.push(next.to_ascii_lowercase());
        }
        word
    }

    /// To the end of the line, or of several that a backslash joins. Without `=` it is empty.
    fn value(&mut self) -> String {
        self.skip_blanks();
        if self.chars.next_if_eq(&'=').is_none() {
            self.skip_line();
            return String::new();
        }
        let mut value = String::new();
        // Blanks at the end are none of it, unless they are quoted.
        let mut kept = 0;
        let mut is_quoted = false;
        while let Some(next) = self.chars.next() {
            match next {
                '\n' => break,
                '\r' if self.chars.peek() == Some(&'\n') => continue,
                '#' | ';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                '"' => is_quoted = !is_quoted,
                '\\' => match self.chars.next() {
                    Some('\n') | None => continue,
                    Some('\r') => {
                        self.chars.next_if_eq(&'\n');
                        continue;
                    }
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some(plain) => value.push(plain),
                },
                blank if blank.is_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                plain => value.push(plain),
            }
            kept = value.len();
        }
        value.truncate(kept);
        value
    }

    fn skip_blanks(&mut self) {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    }

    fn skip_line(&mut self) {
        while self.chars.next().is_some_and(|c| c != '\n') {}
    }
}
