//! Forms with files (RFC 7578), read as they come: no part is in memory as a whole.

use crate::percent;
use memchr::memmem::{self, Finder};
use std::io::{self, Read};

const CHUNK: usize = 64 << 10;
/// Of the lines before the content of a part.
const MAX_HEAD: usize = 16 << 10;
const MAX_BOUNDARY: usize = 70;

/// The boundary that the type of a body names.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let (essence, parameters) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then(|| value.trim_matches('"').to_owned())
    })?;
    (1..=MAX_BOUNDARY).contains(&value.len()).then_some(value)
}

pub(crate) struct Form<R> {
    from: R,
    /// What was read and not given yet.
    buffer: Vec<u8>,
    /// What a part ends with.
    delimiter: Vec<u8>,
    is_over: bool,
}

/// What the head of a part says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartHead {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
}

impl<R: Read> Form<R> {
    pub(crate) fn new(from: R, boundary: &str) -> Self {
        // The first boundary has no line before it.
        let buffer = b"\r\n".to_vec();
        Self { from, buffer, delimiter: format!("\r\n--{boundary}").into_bytes(), is_over: false }
    }

    pub(crate) fn into_inner(self) -> R {
        self.from
    }

    fn fill(&mut self) -> io::Result<()> {
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let read = self.from.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(malformed("the form ends before its last boundary")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next part, after what is left of the one before. None: that was the last one.
    pub(crate) fn next_part(&mut self) -> io::Result<Option<(PartHead, Part<'_, R>)>> {
        let mut rest = Part { form: self, is_over: false };
        io::copy(&mut rest, &mut io::sink())?;
        if self.is_over {
            return Ok(None);
        }
        self.buffer.drain(..self.delimiter.len());
        while self.buffer.len() < 2 {
            self.fill()?;
        }
        if self.buffer.starts_with(b"--") {
            self.is_over = true;
            // Whatever comes after it counts for nothing, but the client has to be heard to the end.
            io::copy(&mut self.from, &mut io::sink())?;
            return Ok(None);
        }
        let head = self.head()?;
        Ok(Some((head, Part { form: self, is_over: false })))
    }

    fn head(&mut self) -> io::Result<PartHead> {
        let end = loop {
            match memmem::find(&self.buffer, b"\r\n\r\n") {
                Some(end) if end <= MAX_HEAD => break end,
                None if self.buffer.len() <= MAX_HEAD => self.fill()?,
                _ => return Err(malformed("the head of a part is too long")),
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        parse_head(&head).ok_or_else(|| malformed("a part has no name"))
    }
}

fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

fn parse_head(head: &str) -> Option<PartHead> {
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let name = parameter(disposition, "name")?;
    Some(PartHead { name, file_name: parameter(disposition, "filename") })
}

/// Quoted, with quotes and line breaks encoded as browsers do, or with a backslash before them.
fn parameter(disposition: &str, wanted: &str) -> Option<String> {
    let mut rest = disposition.split_once(';')?.1;
    loop {
        let (name, value) = rest.split_once('=')?;
        let mut found = String::new();
        let after = match value.strip_prefix('"') {
            Some(quoted) => {
                let mut characters = quoted.char_indices();
                loop {
                    match characters.next()? {
                        (at, '"') => break &quoted[at + 1..],
                        (_, '\\') => found.push(characters.next()?.1),
                        (_, other) => found.push(other),
                    }
                }
            }
            None => {
                let (bare, after) = value.split_once(';').unwrap_or((value, ""));
                found.push_str(bare.trim());
                after
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(decode_name(&found));
        }
        rest = after.trim_start_matches([';', ' ']);
    }
}

/// Only what has to be encoded in a quoted text: a name may have a per cent sign of its own.
fn decode_name(name: &str) -> String {
    ["%22", "%0D", "%0A", "%0d", "%0a"]
        .iter()
        .fold(name.to_owned(), |name, code| name.replace(code, &percent::decode(code)))
}

/// The content of a part.
pub(crate) struct Part<'f, R> {
    form: &'f mut Form<R>,
    is_over: bool,
}

impl<R: Read> Read for Part<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.is_over || self.form.is_over || to.is_empty() {
            return Ok(0);
        }
        loop {
            let Form { buffer, delimiter, .. } = &mut *self.form;
            let ready = match Finder::new(delimiter).find(buffer) {
                Some(0) => {
                    self.is_over = true;
                    return Ok(0);
                }
                Some(end) => end,
                // The end of what is there may be the beginning of a delimiter.
                None => (buffer.len() + 1).saturating_sub(delimiter.len()),
            };
            if ready == 0 {
                self.form.fill()?;
                continue;
            }
            let count = ready.min(to.len());
            to[..count].copy_from_slice(&buffer[..count]);
            buffer.drain(..count);
            return Ok(count);
        }
    }
}

#[cfg(test)]
#[path = "multipart_tests.rs"]
mod tests;
