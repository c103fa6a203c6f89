//! Git's configuration syntax, byte for byte as git's own parser reads it (config.c, `git_parse_source`). It
//! must not miss a setting that git would see.

use crate::Parts;

/// One setting as git sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Section and name in lower case; a quoted subsection as it is written.
    pub key: Vec<u8>,
    /// `None` for a name without `=`, which git reads as true.
    pub value: Option<Vec<u8>>,
    pub line: usize,
}

impl Entry {
    pub fn parts(&self) -> Option<Parts<'_>> {
        Parts::of(&self.key)
    }
}

/// Where and why parsing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    pub line: usize,
    pub why: &'static str,
}

/// Parses a whole file. Fails if any part of it is invalid or ambiguous.
pub fn parse(text: &[u8]) -> Result<Vec<Entry>, Bad> {
    if let Some(at) = text.iter().position(|byte| *byte == 0) {
        // Git continues after a NUL; other programs that read these files may stop.
        let line = 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
        return Err(Bad { line, why: "it has a NUL in it" });
    }
    let mut entries = Vec::new();
    read(text, &mut entries).map(|()| entries)
}

/// The entries up to the first error, where git would stop as well.
pub fn beginning_of(text: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let _cut_off_here = read(text, &mut entries);
    entries
}

fn read(text: &[u8], entries: &mut Vec<Entry>) -> Result<(), Bad> {
    let mut reader = Reader { text, at: 0, line: 1 };
    if text.starts_with("\u{feff}".as_bytes()) {
        reader.at = 3;
    }
    // Includes the trailing dot; empty before the first header.
    let mut section = Vec::new();
    loop {
        let line = reader.line;
        match reader.next() {
            Byte::End => return Ok(()),
            Byte::Of(b' ' | b'\t' | b'\r' | b'\n') => {}
            Byte::Of(b'#' | b';') => reader.skip_line(),
            Byte::Of(b'[') => {
                section = reader.header()?;
                section.push(b'.');
            }
            Byte::Of(first) if first.is_ascii_alphabetic() => {
                let mut key = section.clone();
                key.push(first.to_ascii_lowercase());
                let value = reader.name_and_value(&mut key)?;
                entries.push(Entry { key: c_string(key), value: value.map(c_string), line });
            }
            Byte::Of(_) => return Err(Bad { line, why: "no setting starts like this" }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    Of(u8),
    /// Git treats the end of the file as a line end.
    End,
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Reader<'_> {
    /// A carriage return before a line feed is dropped.
    fn next(&mut self) -> Byte {
        let byte = match (self.text.get(self.at), self.text.get(self.at + 1)) {
            (None, _) => return Byte::End,
            (Some(b'\r'), Some(b'\n')) => {
                self.at += 1;
                b'\n'
            }
            (Some(byte), _) => *byte,
        };
        self.at += 1;
        self.line += usize::from(byte == b'\n');
        Byte::Of(byte)
    }

    fn bad(&self, why: &'static str) -> Bad {
        Bad { line: self.line, why }
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), Byte::Of(b'\n') | Byte::End) {}
    }

    /// Starts after the `[`.
    fn header(&mut self) -> Result<Vec<u8>, Bad> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                Byte::Of(b']') if name.is_empty() => return Err(self.bad("a header is empty")),
                Byte::Of(b']') => return Ok(name),
                Byte::Of(b' ' | b'\t' | b'\r') => return self.quoted_subsection(name),
                Byte::Of(byte) if is_key_byte(byte) || byte == b'.' => {
                    name.push(byte.to_ascii_lowercase());
                }
                Byte::Of(_) | Byte::End => return Err(self.bad("a header is not closed")),
            }
        }
    }

    fn quoted_subsection(&mut self, mut name: Vec<u8>) -> Result<Vec<u8>, Bad> {
        let unclosed = "a subsection is not closed";
        loop {
            match self.next() {
                Byte::Of(b' ' | b'\t' | b'\r') => {}
                Byte::Of(b'"') => break,
                Byte::Of(_) | Byte::End => return Err(self.bad("a subsection is not quoted")),
            }
        }
        name.push(b'.');
        loop {
            match self.next() {
                Byte::Of(b'"') => break,
                Byte::Of(b'\\') => match self.next() {
                    Byte::Of(b'\n') | Byte::End => return Err(self.bad(unclosed)),
                    Byte::Of(byte) => name.push(byte),
                },
                Byte::Of(b'\n') | Byte::End => return Err(self.bad(unclosed)),
                Byte::Of(byte) => name.push(byte),
            }
        }
        match self.next() {
            Byte::Of(b']') => Ok(name),
            Byte::Of(_) | Byte::End => Err(self.bad(unclosed)),
        }
    }

    /// Starts after the first letter of the name, which is already in `key`.
    fn name_and_value(&mut self, key: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Bad> {
        let mut byte = self.next();
        while let Byte::Of(of_name) = byte
            && is_key_byte(of_name)
        {
            key.push(of_name.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, Byte::Of(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            Byte::Of(b'\n') | Byte::End => Ok(None),
            Byte::Of(b'=') => self.value().map(Some),
            Byte::Of(_) => Err(self.bad("a name is followed by something else than `=`")),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Bad> {
        let (mut value, mut is_quoted) = (Vec::new(), false);
        // Where the current run of blanks begins. It is cut off if the value ends with it.
        let mut blank_from = None;
        loop {
            match self.next() {
                Byte::Of(b'\n') | Byte::End if is_quoted => {
                    return Err(self.bad("a quote is not closed"));
                }
                Byte::Of(b'\n') | Byte::End => break,
                Byte::Of(blank @ (b' ' | b'\t' | b'\r')) if !is_quoted => {
                    if !value.is_empty() {
                        blank_from.get_or_insert(value.len());
                        value.push(blank);
                    }
                }
                Byte::Of(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Byte::Of(byte) => {
                    blank_from = None;
                    match byte {
                        b'"' => is_quoted = !is_quoted,
                        b'\\' => match self.next() {
                            // A continued line: the blanks before the backslash are part of the value.
                            Byte::Of(b'\n') | Byte::End => {}
                            Byte::Of(b't') => value.push(b'\t'),
                            Byte::Of(b'b') => value.push(8),
                            Byte::Of(b'n') => value.push(b'\n'),
                            Byte::Of(itself @ (b'\\' | b'"')) => value.push(itself),
                            Byte::Of(_) => return Err(self.bad("an unknown escape")),
                        },
                        byte => value.push(byte),
                    }
                }
            }
        }
        if let Some(end) = blank_from {
            value.truncate(end);
        }
        Ok(value)
    }
}

/// Git passes keys and values around as NUL-terminated strings.
fn c_string(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
