//! One HTTP/1 request, read as carelessly as servers that get attacked do: a lone line feed ends a line,
//! and a length is believed even beside chunks. What a proxy must not let pass has to work here.

use std::io::{self, BufRead, Read as _};

use crate::names;

#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The next request; none once the client has no more.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut request = Self::default();
        while request.line.is_empty() {
            match line(from)? {
                Some(text) => request.line = text,
                None => return Ok(None),
            }
        }
        while let Some(text) = line(from)?.filter(|text| !text.is_empty()) {
            if let Some((name, value)) = text.split_once(':') {
                request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        if request.host() == names::HEEDLESS {
            return Ok(Some(request));
        }
        if let Some(length) = request.header("content-length").and_then(|text| text.parse().ok()) {
            request.body = vec![0; length];
            from.read_exact(&mut request.body)?;
        } else if request.header("transfer-encoding").is_some() {
            request.body = chunks(from)?;
        }
        Ok(Some(request))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Path and query, without the scheme and host that a proxy is given.
    pub(crate) fn target(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or("/");
        match target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            None => target,
        }
    }

    /// Without the port.
    pub(crate) fn host(&self) -> &str {
        let host = self.header("host").unwrap_or_default();
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        }
    }

    /// How long a body is that was not read.
    pub(crate) fn unread(&self) -> u64 {
        let length = self.header("content-length").and_then(|text| text.parse::<u64>().ok());
        length.map_or(0, |length| length.saturating_sub(self.body.len() as u64))
    }

    pub(crate) fn ends_connection(&self) -> bool {
        self.line.ends_with("HTTP/1.0")
            || self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if from.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()))
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(from)?.unwrap_or_default();
        let size = size.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
        from.by_ref().take(length).read_to_end(&mut body)?;
        line(from)?;
        if length == 0 {
            return Ok(body);
        }
    }
}
