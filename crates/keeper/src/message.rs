//! What the supervisor asks of the keeper, and what the keeper tells: one packet each, in order.
//!
//! Both ends are ours, but the paths are not: a packet is made of counted fields, so that no byte in
//! them can end one early. What does not fit is an error of the sender, never a path cut short.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Longer than any message the keeper sends or takes.
pub const LONGEST_PACKET: usize = 64 * 1024;

/// From the supervisor. Each is answered once, in the order they came, but for [`Ask::Forget`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// What is at this absolute path on the host? What is found is held under the token.
    Look {
        token: u64,
        path: Vec<u8>,
        /// Whether a link in the last place is followed.
        follow: bool,
        /// Whether it is to be executed: then what its start needs is told, too.
        execute: bool,
        /// What is to be changed: then whether the host would let the command is told, too.
        change: Change,
    },
    /// Show what is held under the token, at its real path; read-only, unless it may be written.
    Graft { token: u64, what: What, exec: bool, write: bool },
    /// Open the regular file that is held under the token, for reading. Of the caller's flags only
    /// those count that can do no harm.
    Open { token: u64, flags: u32 },
    /// Take away what was shown.
    Ungraft { graft: u64 },
    /// Give a descriptor (`O_PATH`) by which what is held under the token, or the directory it is in, can be written. It is
    /// shown nowhere.
    Lend { token: u64, parent: bool },
    /// Let go of what is held under the token.
    Forget { token: u64 },
}

/// What a call would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    /// The file itself, or what is in the directory.
    Content,
    /// The name, in the directory that it is in.
    Name,
}

impl Change {
    const ALL: [Self; 3] = [Self::Nothing, Self::Content, Self::Name];

    fn number(self) -> u64 {
        self as u64
    }

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.number() == number)
    }
}

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// What was found, with the links that led to it.
    Found,
    /// A directory that holds it, with everything in it.
    Directory(PathBuf),
    /// Of a directory only that it is there: an empty one of the sandbox's own stands for it.
    Name,
    /// Only the links that led to it: what they lead to can be seen already.
    Links,
    /// Something of the sandbox's own that can be changed: of a file a copy, of a directory an empty one.
    Copy,
}

/// To the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Found(Found),
    /// Nothing there, or nothing that this user could see.
    Absent {
        token: u64,
    },
    Grafted {
        token: u64,
        graft: u64,
    },
    /// It is a directory, and something below it is asked about on its own, or leads elsewhere. Nothing was
    /// shown.
    NotWhole {
        token: u64,
    },
    /// A descriptor comes with it.
    Opened {
        token: u64,
    },
    /// Nothing was shown, opened or found.
    Failed {
        token: u64,
        step: String,
        errno: u16,
    },
    Ungrafted {
        graft: u64,
    },
    /// It is still to be seen: whoever granted it for a moment has to end the run.
    NotUngrafted {
        graft: u64,
        step: String,
        errno: u16,
    },
    /// The keeper can not go on, and ends.
    Unable {
        why: String,
    },
}

/// What is at a path of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub token: u64,
    /// Without a link in it; where a [`Kind::Link`] is, of the link itself.
    pub path: PathBuf,
    pub kind: Kind,
    /// The links that were followed, in order: where each is, and what it says. A [`Kind::Link`] is the
    /// last of them.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// What else the kernel opens to execute it: interpreters and loaders, by real path.
    pub needs: Vec<PathBuf>,
    /// Why the host would not let it be written, as an errno; only where that was asked for.
    pub unwritable: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    /// A link that was not to be followed; to show it is to make it inside.
    Link,
    /// A device, socket or pipe, which can not be shown.
    Special,
}

impl Kind {
    fn number(self) -> u64 {
        match self {
            Self::File => 0,
            Self::Directory => 1,
            Self::Link => 2,
            Self::Special => 3,
        }
    }

    fn from_number(number: u64) -> Option<Self> {
        [Self::File, Self::Directory, Self::Link, Self::Special]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

impl Ask {
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Packet::new();
        match self {
            Self::Look { token, path, follow, execute, change } => {
                let packet = packet.bytes(b"look").number(*token).bytes(path);
                packet.flag(*follow).flag(*execute).number(change.number());
            }
            Self::Graft { token, what, exec, write } => {
                packet.bytes(b"graft").number(*token).flag(*exec).flag(*write);
                match what {
                    What::Found => packet.bytes(b"found"),
                    What::Directory(path) => {
                        packet.bytes(b"directory").bytes(path.as_os_str().as_bytes())
                    }
                    What::Name => packet.bytes(b"name"),
                    What::Links => packet.bytes(b"links"),
                    What::Copy => packet.bytes(b"copy"),
                };
            }
            Self::Open { token, flags } => {
                packet.bytes(b"open").number(*token).number(u64::from(*flags));
            }
            Self::Ungraft { graft } => {
                packet.bytes(b"ungraft").number(*graft);
            }
            Self::Lend { token, parent } => {
                packet.bytes(b"lend").number(*token).flag(*parent);
            }
            Self::Forget { token } => {
                packet.bytes(b"forget").number(*token);
            }
        }
        packet.0
    }

    pub fn decode(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields(packet);
        let ask = match fields.bytes()? {
            b"look" => Self::Look {
                token: fields.number()?,
                path: fields.bytes()?.to_vec(),
                follow: fields.flag()?,
                execute: fields.flag()?,
                change: Change::from_number(fields.number()?)?,
            },
            b"graft" => {
                let (token, exec, write) = (fields.number()?, fields.flag()?, fields.flag()?);
                let what = match fields.bytes()? {
                    b"found" => What::Found,
                    b"directory" => What::Directory(fields.path()?),
                    b"name" => What::Name,
                    b"links" => What::Links,
                    b"copy" => What::Copy,
                    _ => return None,
                };
                Self::Graft { token, what, exec, write }
            }
            b"open" => {
                Self::Open { token: fields.number()?, flags: fields.number()?.try_into().ok()? }
            }
            b"ungraft" => Self::Ungraft { graft: fields.number()? },
            b"lend" => Self::Lend { token: fields.number()?, parent: fields.flag()? },
            b"forget" => Self::Forget { token: fields.number()? },
            _ => return None,
        };
        fields.is_over().then_some(ask)
    }
}

impl Told {
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Packet::new();
        match self {
            Self::Found(Found { token, path, kind, links, needs, unwritable }) => {
                packet.bytes(b"found").number(*token).number(kind.number()).path(path);
                // No errno is 0.
                packet.number(unwritable.unwrap_or(0).into());
                packet.number(links.len() as u64);
                for (place, target) in links {
                    packet.path(place).path(target);
                }
                for need in needs {
                    packet.path(need);
                }
            }
            Self::Absent { token } => {
                packet.bytes(b"absent").number(*token);
            }
            Self::Grafted { token, graft } => {
                packet.bytes(b"grafted").number(*token).number(*graft);
            }
            Self::NotWhole { token } => {
                packet.bytes(b"not-whole").number(*token);
            }
            Self::Opened { token } => {
                packet.bytes(b"opened").number(*token);
            }
            Self::Failed { token, step, errno } => {
                packet
                    .bytes(b"failed")
                    .number(*token)
                    .bytes(step.as_bytes())
                    .number((*errno).into());
            }
            Self::Ungrafted { graft } => {
                packet.bytes(b"ungrafted").number(*graft);
            }
            Self::NotUngrafted { graft, step, errno } => {
                let packet = packet.bytes(b"not-ungrafted").number(*graft);
                packet.bytes(step.as_bytes()).number((*errno).into());
            }
            Self::Unable { why } => {
                packet.bytes(b"unable").bytes(why.as_bytes());
            }
        }
        packet.0
    }

    pub fn decode(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields(packet);
        let told = match fields.bytes()? {
            b"found" => {
                let (token, kind) = (fields.number()?, Kind::from_number(fields.number()?)?);
                let path = fields.path()?;
                let errno: u16 = fields.number()?.try_into().ok()?;
                let unwritable = Some(errno).filter(|errno| *errno != 0);
                let links = (0..fields.number()?)
                    .map(|_| Some((fields.path()?, fields.path()?)))
                    .collect::<Option<_>>()?;
                let mut needs = Vec::new();
                while !fields.is_over() {
                    needs.push(fields.path()?);
                }
                Self::Found(Found { token, path, kind, links, needs, unwritable })
            }
            b"absent" => Self::Absent { token: fields.number()? },
            b"grafted" => Self::Grafted { token: fields.number()?, graft: fields.number()? },
            b"not-whole" => Self::NotWhole { token: fields.number()? },
            b"opened" => Self::Opened { token: fields.number()? },
            b"failed" => Self::Failed {
                token: fields.number()?,
                step: fields.text()?,
                errno: fields.number()?.try_into().ok()?,
            },
            b"ungrafted" => Self::Ungrafted { graft: fields.number()? },
            b"not-ungrafted" => Self::NotUngrafted {
                graft: fields.number()?,
                step: fields.text()?,
                errno: fields.number()?.try_into().ok()?,
            },
            b"unable" => Self::Unable { why: fields.text()? },
            _ => return None,
        };
        fields.is_over().then_some(told)
    }
}

/// Each field with its length in front.
struct Packet(Vec<u8>);

impl Packet {
    fn new() -> Self {
        Self(Vec::with_capacity(256))
    }

    fn bytes(&mut self, field: &[u8]) -> &mut Self {
        // Nothing here is longer than a packet may be, which is refused where it is sent.
        let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
        self.0.extend(length.to_le_bytes());
        self.0.extend(field);
        self
    }

    fn path(&mut self, path: &std::path::Path) -> &mut Self {
        self.bytes(path.as_os_str().as_bytes())
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn flag(&mut self, flag: bool) -> &mut Self {
        self.bytes(&[u8::from(flag)])
    }
}

struct Fields<'p>(&'p [u8]);

impl<'p> Fields<'p> {
    fn bytes(&mut self) -> Option<&'p [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.bytes().map(|field| OsString::from_vec(field.to_vec()).into())
    }

    fn text(&mut self) -> Option<String> {
        self.bytes().map(|field| String::from_utf8_lossy(field).into_owned())
    }

    fn number(&mut self) -> Option<u64> {
        self.bytes()?.try_into().ok().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.bytes()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
