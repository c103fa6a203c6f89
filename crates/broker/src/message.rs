//! What the broker tells the supervisor, packet by packet.
//!
//! But for a [`Touch`] no answer is awaited, and a supervisor that reads slowly costs the sandbox nothing but
//! the details of its later attempts.

use crate::touch::Touch;

/// Longer than any message: two paths and a few words.
pub const LONGEST_MESSAGE: usize = 12 * 1024;

/// A path; what is longer was made so by whoever wants the message to fail.
const LONGEST_FIELD: usize = 2048;

/// Fields are paths, names and numbers, none of which can hold this.
const END: u8 = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A call that the filter refuses.
    Blocked(Blocked),
    /// A write that the host would run later.
    Protected(Protected),
    /// A program that may not be executed.
    NotExecuted(NotExecuted),
    /// A socket was put into a tree of the host's: somebody there may connect to it.
    Socket { path: Vec<u8>, pid: u32 },
    /// Whether git configuration is being written whose content is yet to be judged: until then the broker is not to be
    /// ended.
    Staging { is_open: bool },
    /// A call in this tree failed with EBUSY: another run that shares the tree does not finish one of its own.
    Busy { tree: Vec<u8> },
    /// A call that waits for a [`Reply`](crate::Reply).
    Touch(Touch),
    /// A call that was let go on for once is over.
    Returned { touch: u64 },
    /// Nobody waits for the answer any more.
    Withdrawn { touch: u64 },
    /// So many messages before this one found no room, and so many of them told of suspicious calls.
    Lost { count: u64, suspicious: u64 },
    /// The broker can not go on; with it the command can not write.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub number: u32,
    pub arguments: [u64; 6],
    /// On the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if it could not be found out.
    pub executable: Vec<u8>,
    pub errno: u16,
    pub suspicious: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The system call.
    pub call: String,
    pub path: Vec<u8>,
    /// The name on the list, or the setting.
    pub rule: String,
    pub why: String,
    pub pid: u32,
    pub executable: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExecuted {
    /// The system call.
    pub call: String,
    pub path: Vec<u8>,
    /// The policy's key.
    pub rule: String,
    pub pid: u32,
    /// The program that tried.
    pub executable: Vec<u8>,
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut packet = Packet(Vec::with_capacity(256));
        match self {
            Self::Touch(touch) => touch.encode(&mut packet),
            Self::Returned { touch } => {
                packet.add(b"returned");
                packet.number(*touch);
            }
            Self::Withdrawn { touch } => {
                packet.add(b"withdrawn");
                packet.number(*touch);
            }
            Self::Blocked(blocked) => {
                packet.add(b"blocked");
                packet.number(u64::from(blocked.number));
                for argument in blocked.arguments {
                    packet.number(argument);
                }
                packet.number(u64::from(blocked.pid));
                packet.add(&blocked.executable);
                packet.number(u64::from(blocked.errno));
                packet.number(u64::from(blocked.suspicious));
            }
            Self::Protected(protected) => {
                packet.add(b"protected");
                packet.add(protected.call.as_bytes());
                packet.add(&protected.path);
                packet.add(protected.rule.as_bytes());
                packet.add(protected.why.as_bytes());
                packet.number(u64::from(protected.pid));
                packet.add(&protected.executable);
            }
            Self::NotExecuted(refused) => {
                packet.add(b"not-executed");
                packet.add(refused.call.as_bytes());
                packet.add(&refused.path);
                packet.add(refused.rule.as_bytes());
                packet.number(u64::from(refused.pid));
                packet.add(&refused.executable);
            }
            Self::Socket { path, pid } => {
                packet.add(b"socket");
                packet.add(path);
                packet.number(u64::from(*pid));
            }
            Self::Staging { is_open } => {
                packet.add(b"staging");
                packet.number(u64::from(*is_open));
            }
            Self::Busy { tree } => {
                packet.add(b"busy");
                packet.add(tree);
            }
            Self::Lost { count, suspicious } => {
                packet.add(b"lost");
                packet.number(*count);
                packet.number(*suspicious);
            }
            Self::Failed(why) => {
                packet.add(b"failed");
                packet.add(why.as_bytes());
            }
        }
        packet.into_bytes()
    }

    pub fn decode(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(packet);
        let message = match fields.next()? {
            b"blocked" => {
                let number = fields.number()?;
                let mut arguments = [0; 6];
                for argument in &mut arguments {
                    *argument = fields.number()?;
                }
                Self::Blocked(Blocked {
                    number,
                    arguments,
                    pid: fields.number()?,
                    executable: fields.next()?.to_vec(),
                    errno: fields.number()?,
                    suspicious: fields.number::<u8>()? == 1,
                })
            }
            b"protected" => Self::Protected(Protected {
                call: fields.text()?,
                path: fields.next()?.to_vec(),
                rule: fields.text()?,
                why: fields.text()?,
                pid: fields.number()?,
                executable: fields.next()?.to_vec(),
            }),
            b"not-executed" => Self::NotExecuted(NotExecuted {
                call: fields.text()?,
                path: fields.next()?.to_vec(),
                rule: fields.text()?,
                pid: fields.number()?,
                executable: fields.next()?.to_vec(),
            }),
            b"socket" => Self::Socket { path: fields.next()?.to_vec(), pid: fields.number()? },
            b"staging" => Self::Staging { is_open: fields.number::<u8>()? == 1 },
            b"busy" => Self::Busy { tree: fields.next()?.to_vec() },
            b"touch" => Self::Touch(Touch::decode(&mut fields)?),
            b"returned" => Self::Returned { touch: fields.number()? },
            b"withdrawn" => Self::Withdrawn { touch: fields.number()? },
            b"lost" => Self::Lost { count: fields.number()?, suspicious: fields.number()? },
            b"failed" => Self::Failed(fields.text()?),
            _ => return None,
        };
        fields.is_at_end().then_some(message)
    }
}

#[derive(Default)]
pub(crate) struct Packet(Vec<u8>);

impl Packet {
    pub(crate) fn add(&mut self, field: &[u8]) {
        self.add_up_to(LONGEST_FIELD, field);
    }

    pub(crate) fn add_up_to(&mut self, most: usize, field: &[u8]) {
        let field = &field[..field.len().min(most)];
        self.0.extend(field.iter().filter(|byte| **byte != END));
        self.0.push(END);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.add(number.to_string().as_bytes());
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

pub(crate) struct Fields<'p>(&'p [u8]);

impl<'p> Fields<'p> {
    pub(crate) fn of(packet: &'p [u8]) -> Self {
        Self(packet)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<&'p [u8]> {
        let end = self.0.iter().position(|byte| *byte == END)?;
        let (field, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Some(field)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        self.next().map(|field| String::from_utf8_lossy(field).into_owned())
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        std::str::from_utf8(self.next()?).ok()?.parse().ok()
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
