//! A call on something that is not there inside and may be outside: what the broker tells of it, and what it
//! is told to do. The seam of the gate: whatever notices a first touch speaks these two types, and
//! everything behind them is the same.

use crate::message::{Fields, Packet};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The most a path can have in a touch; what is longer no system call takes either (`PATH_MAX`).
pub(crate) const LONGEST_PATH: usize = 4096;

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Names it in every answer; never used again.
    pub touch: u64,
    /// The system call.
    pub call: String,
    pub wants: Wants,
    /// Absolute: as far as it leads inside without a link left in it, then the rest as it was typed.
    pub path: Vec<u8>,
    /// How many bytes of the path lead to a directory that is there inside; 0 where that is not known.
    pub existing: usize,
    /// Whether a link in the last place is followed.
    pub follow: bool,
    /// The thread, on the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if it could not be found out.
    pub executable: Vec<u8>,
    pub cwd: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// To read it. `directory`: nothing but a directory will do; `path_only`: `O_PATH`.
    Open {
        directory: bool,
        path_only: bool,
    },
    /// stat, access, readlink, extended attributes, statfs.
    Look,
    /// To make it the working directory.
    Enter,
    Execute,
    /// To give it another name.
    Source,
    /// To write it, to make it, or to make something below it.
    Write,
    /// To make it, which fails where it is there already; or to make something below it.
    Make,
    /// To put another file in its place, or where it would be.
    Replace,
    /// To give it another name in the directory it is in.
    Rename,
    Remove,
    /// To move or link something from another mount there, which fails whatever is granted (EXDEV).
    MoveInto,
}

impl Wants {
    /// Whether something would be written, made or removed.
    pub fn is_change(self) -> bool {
        match self {
            Self::Write
            | Self::Make
            | Self::Replace
            | Self::Rename
            | Self::Remove
            | Self::MoveInto => true,
            Self::Open { .. } | Self::Look | Self::Enter | Self::Execute | Self::Source => false,
        }
    }

    /// Whether it may be about something that is not there.
    pub fn may_make(self) -> bool {
        matches!(self, Self::Write | Self::Make | Self::Replace | Self::MoveInto)
    }
}

/// What becomes of a touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was granted for longer than this call: the kernel goes on.
    Continue {
        touch: u64,
    },
    /// It was granted for this call: the kernel goes on, and the broker says when the call has returned.
    ContinueAndWatch {
        touch: u64,
    },
    /// What was granted for this call is taken away again: others may look.
    Ended {
        touch: u64,
    },
    /// It is not on the host either: the kernel goes on, and the same is not told again for a moment.
    Absent {
        touch: u64,
    },
    Fail {
        touch: u64,
        errno: u16,
    },
    /// The file itself, by a descriptor that comes with it.
    File {
        touch: u64,
    },
    /// A descriptor comes with it by which this call, and no other, may write: the file, or the directory that something
    /// is made in or removed from. The path is the real one of what the call changes, name included.
    WriteOnce {
        touch: u64,
        path: Vec<u8>,
    },
    /// It succeeds, and nothing is done: for the run, what it would remove is gone.
    Pretend {
        touch: u64,
    },
}

/// Whatever notices first touches, seen from the supervisor: they come as [`Touch`]es, each gets one answer.
pub trait Trigger {
    type Error;

    /// `file` belongs to [`Reply::File`] and [`Reply::WriteOnce`]. An answer to a call that is over by now is no error.
    fn reply(&self, reply: Reply, file: Option<BorrowedFd<'_>>) -> Result<(), Self::Error>;
}

impl Touch {
    /// The deepest directory on the way that is there inside, if that is known.
    pub fn existing_directory(&self) -> Option<&Path> {
        let existing = self.path.get(..self.existing).filter(|path| !path.is_empty())?;
        Some(Path::new(OsStr::from_bytes(existing)))
    }

    pub(crate) fn encode(&self, packet: &mut Packet) {
        packet.add(b"touch");
        packet.number(self.touch);
        packet.add(self.call.as_bytes());
        packet.add(self.wants.word());
        packet.add_up_to(LONGEST_PATH, &self.path);
        packet.number(self.existing as u64);
        packet.number(u64::from(self.follow));
        packet.number(u64::from(self.pid));
        packet.add(&self.executable);
        packet.add(&self.cwd);
    }

    /// What comes after the first word.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            touch: fields.number()?,
            call: fields.text()?,
            wants: Wants::of_word(fields.next()?)?,
            path: fields.next()?.to_vec(),
            existing: fields.number()?,
            follow: fields.number::<u8>()? == 1,
            pid: fields.number()?,
            executable: fields.next()?.to_vec(),
            cwd: fields.next()?.to_vec(),
        })
    }
}

impl Wants {
    const WORDS: [(&'static [u8], Self); 14] = [
        (b"open", Self::Open { directory: false, path_only: false }),
        (b"open-directory", Self::Open { directory: true, path_only: false }),
        (b"open-path", Self::Open { directory: false, path_only: true }),
        (b"open-directory-path", Self::Open { directory: true, path_only: true }),
        (b"look", Self::Look),
        (b"enter", Self::Enter),
        (b"execute", Self::Execute),
        (b"source", Self::Source),
        (b"write", Self::Write),
        (b"make", Self::Make),
        (b"replace", Self::Replace),
        (b"rename", Self::Rename),
        (b"remove", Self::Remove),
        (b"move-into", Self::MoveInto),
    ];

    fn word(self) -> &'static [u8] {
        Self::WORDS.iter().find(|(_, wants)| *wants == self).map_or(b"look", |(word, _)| word)
    }

    fn of_word(word: &[u8]) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, wants)| *wants)
    }
}

impl Reply {
    pub fn touch(&self) -> u64 {
        match *self {
            Self::Continue { touch }
            | Self::ContinueAndWatch { touch }
            | Self::Ended { touch }
            | Self::Absent { touch }
            | Self::Fail { touch, .. }
            | Self::File { touch }
            | Self::WriteOnce { touch, .. }
            | Self::Pretend { touch } => touch,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Packet::default();
        packet.add(match self {
            Self::Continue { .. } => b"continue",
            Self::ContinueAndWatch { .. } => b"watch",
            Self::Ended { .. } => b"ended",
            Self::Absent { .. } => b"absent",
            Self::Fail { .. } => b"fail",
            Self::File { .. } => b"file",
            Self::WriteOnce { .. } => b"write-once",
            Self::Pretend { .. } => b"pretend",
        });
        packet.number(self.touch());
        match self {
            Self::Fail { errno, .. } => packet.number(u64::from(*errno)),
            Self::WriteOnce { path, .. } => packet.add_up_to(LONGEST_PATH, path),
            _ => {}
        }
        packet.into_bytes()
    }

    pub fn decode(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(packet);
        let word = fields.next()?;
        let touch = fields.number()?;
        let reply = match word {
            b"continue" => Self::Continue { touch },
            b"watch" => Self::ContinueAndWatch { touch },
            b"ended" => Self::Ended { touch },
            b"absent" => Self::Absent { touch },
            b"fail" => Self::Fail { touch, errno: fields.number()? },
            b"file" => Self::File { touch },
            b"write-once" => Self::WriteOnce { touch, path: fields.next()?.to_vec() },
            b"pretend" => Self::Pretend { touch },
            _ => return None,
        };
        fields.is_at_end().then_some(reply)
    }
}

#[cfg(test)]
#[path = "touch_tests.rs"]
mod tests;
