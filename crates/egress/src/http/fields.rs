//! The header fields of a message in order, and which of them are hop-by-hop.

/// Hop-by-hop fields (RFC 9110, 7.6.1), and fields that are written again for each hop.
const ONE_HOP: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
];

/// Names are in lower case, values without surrounding whitespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    pub fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_ascii_lowercase(), value.to_vec()));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The values of one field; `name` in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The value of a field that occurs once, if it is text.
    pub fn only<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut values = self.all(name);
        let value = values.next()?;
        values.next().is_none().then(|| std::str::from_utf8(value).ok()).flatten()
    }

    /// Whether a comma-separated field contains this word.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|own| own.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let parts = self.all(name).flat_map(|value| value.split(|byte| *byte == b','));
        parts.map(<[u8]>::trim_ascii)
    }

    /// Removes the hop-by-hop fields, including those that `Connection` names.
    pub fn keep_end_to_end(&mut self) {
        let named: Vec<Vec<u8>> =
            self.words("connection").map(<[u8]>::to_ascii_lowercase).collect();
        self.0.retain(|(name, _)| {
            !ONE_HOP.contains(&name.as_str()) && !named.iter().any(|own| own == name.as_bytes())
        });
    }

    /// Replaces all fields of that name with one.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        self.remove(name);
        self.push(name, value);
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(own, _)| own != name);
    }

    /// Writes the fields of a head, without the empty line at its end.
    pub fn write(&self, head: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
}

/// A `token` of RFC 9110, 5.6.2, as in names of methods and fields.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_of_token)
}

pub(crate) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
