//! D-Bus messages as bytes: the part of the specification that one conversation needs, little-endian only. Must never
//! trust a length: each is checked against the available data and a maximum.

/// Messages from the bus to us are far shorter.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The bytes before the header's fields: order, kind, flags, version, length, serial, length of the fields.
pub(crate) const FIXED: usize = 16;

const LITTLE_ENDIAN: u8 = b'l';
const VERSION: u8 = 1;
/// No service may be started because of our messages.
const NO_AUTO_START: u8 = 0x2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Call,
    Return,
    Error,
    Signal,
}

impl MessageKind {
    const ALL: [(u8, Self); 4] =
        [(1, Self::Call), (2, Self::Return), (3, Self::Error), (4, Self::Signal)];

    fn code(self) -> u8 {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or(0, |(code, _)| *code)
    }
}

/// A message, with the fields that we use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: MessageKind,
    pub(crate) serial: u32,
    pub(crate) reply_to: Option<u32>,
    pub(crate) path: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) member: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) destination: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) signature: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: MessageKind, serial: u32) -> Self {
        Self {
            kind,
            serial,
            reply_to: None,
            path: None,
            interface: None,
            member: None,
            error: None,
            destination: None,
            sender: None,
            signature: String::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes.extend([LITTLE_ENDIAN, self.kind.code(), NO_AUTO_START, VERSION]);
        out.u32(length(self.body.len()));
        out.u32(self.serial);
        out.array(8, |fields| {
            let texts = [
                (1, "o", &self.path),
                (2, "s", &self.interface),
                (3, "s", &self.member),
                (4, "s", &self.error),
                (6, "s", &self.destination),
            ];
            for (code, kind, text) in texts {
                if let Some(text) = text {
                    field(fields, code, kind, |value| value.string(text));
                }
            }
            if let Some(serial) = self.reply_to {
                field(fields, 5, "u", |value| value.u32(serial));
            }
            if !self.signature.is_empty() {
                field(fields, 8, "g", |value| value.signature(&self.signature));
            }
        });
        out.align(8);
        out.bytes.extend_from_slice(&self.body);
        out.bytes
    }

    /// The length of the message that begins with these [`FIXED`] bytes.
    pub(crate) fn length(start: &[u8; FIXED]) -> Result<usize, String> {
        let [order, _, _, version, ..] = *start;
        if order != LITTLE_ENDIAN || version != VERSION {
            return Err(format!("byte order {order}, version {version}"));
        }
        let at = |at: usize| {
            let bytes = [start[at], start[at + 1], start[at + 2], start[at + 3]];
            usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let (body, fields) = (at(4), at(12));
        if body > MAX_MESSAGE_BYTES || fields > MAX_MESSAGE_BYTES {
            return Err(format!("a message of {body} and {fields} bytes"));
        }
        Ok((FIXED + fields).next_multiple_of(8) + body)
    }

    /// `bytes` are all of [`Message::length`].
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader::new(bytes);
        let [_, code, _, _] = reader.take(4)?.try_into().map_err(|_| short())?;
        let kind = MessageKind::ALL.iter().find(|(known, _)| *known == code);
        let kind =
            kind.map(|(_, kind)| *kind).ok_or_else(|| format!("a message of kind {code}"))?;
        reader.u32()?;
        let mut message = Self::new(kind, reader.u32()?);
        let end = reader.u32()? as usize + FIXED;
        while reader.at < end {
            reader.align(8)?;
            let code = reader.take(1)?[0];
            match (code, reader.signature()?.as_str()) {
                (1, "o") => message.path = Some(reader.string()?),
                (2, "s") => message.interface = Some(reader.string()?),
                (3, "s") => message.member = Some(reader.string()?),
                (4, "s") => message.error = Some(reader.string()?),
                (5, "u") => message.reply_to = Some(reader.u32()?),
                (6, "s") => message.destination = Some(reader.string()?),
                (7, "s") => message.sender = Some(reader.string()?),
                (8, "g") => message.signature = reader.signature()?,
                // Descriptors that we did not negotiate, and fields of later versions.
                (_, "u") => drop(reader.u32()?),
                (_, "s" | "o") => drop(reader.string()?),
                (_, "g") => drop(reader.signature()?),
                (_, kind) => return Err(format!("field {code} of type {kind:?}")),
            }
        }
        reader.align(8)?;
        message.body = reader.rest().to_vec();
        Ok(message)
    }
}

fn field(fields: &mut Writer, code: u8, kind: &str, value: impl FnOnce(&mut Writer)) {
    fields.align(8);
    fields.bytes.push(code);
    fields.signature(kind);
    value(fields);
}

/// Our own messages are short.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn short() -> String {
    "a message that ends too soon".to_owned()
}

/// Writes values one after the other, each aligned to its size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn align(&mut self, size: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(size), 0);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Also for object paths.
    pub(crate) fn string(&mut self, text: &str) {
        self.u32(length(text.len()));
        self.bytes.extend(text.bytes());
        self.bytes.push(0);
    }

    pub(crate) fn signature(&mut self, text: &str) {
        self.bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.bytes.extend(text.bytes());
        self.bytes.push(0);
    }

    /// The length counts from the first element, without the padding before it.
    pub(crate) fn array(&mut self, element: usize, elements: impl FnOnce(&mut Self)) {
        self.u32(0);
        let at = self.bytes.len() - 4;
        self.align(element);
        let start = self.bytes.len();
        elements(self);
        let written = length(self.bytes.len() - start);
        self.bytes[at..at + 4].copy_from_slice(&written.to_le_bytes());
    }
}

/// Reads what [`Writer`] writes.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count).ok_or_else(short)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(short)?;
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn align(&mut self, size: usize) -> Result<(), String> {
        self.take(self.at.next_multiple_of(size) - self.at).map(drop)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, String> {
        self.align(4)?;
        self.take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| short())
    }

    pub(crate) fn string(&mut self) -> Result<String, String> {
        let length = self.u32()?;
        self.text(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(crate) fn signature(&mut self) -> Result<String, String> {
        let length = self.take(1)?[0];
        self.text(length.into())
    }

    fn text(&mut self, length: usize) -> Result<String, String> {
        let bytes = self.take(length)?;
        match self.take(1)? {
            [0] => String::from_utf8(bytes.to_vec()).map_err(|_| "text that is none".to_owned()),
            _ => Err("text without an end".to_owned()),
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
