//! What the command's stdin, stdout and stderr are.
//!
//! The command must never hold the caller's terminal for reading: it could take what is typed
//! there. A stream that is not a terminal is passed on as it is, byte for byte.

use crate::error::{During, LaunchError};
use palisade_plan::model::Owner;
use palisade_sys::tty;
use rustix::fs::{FsWord, Gid, Uid};
use rustix::termios::Winsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const STEP: &str = "connecting the command's streams";
/// `linux/magic.h`
const PIPEFS_MAGIC: FsWord = 0x5049_5045;

/// What the supervisor wants of the command's terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streams {
    /// Make a pty inside, of this size, for the streams that are terminals.
    pub pty: Option<Winsize>,
}

/// One of the three streams, chosen before the fork.
#[derive(Debug)]
enum Stream {
    AsItIs,
    Pty,
    /// The caller's terminal, for writing only.
    Output(OwnedFd),
}

/// All three, in order.
#[derive(Debug)]
pub(crate) struct Chosen([Stream; 3]);

impl Chosen {
    pub(crate) fn choose(streams: &Streams) -> Result<Self, LaunchError> {
        let has_pty = streams.pty.is_some();
        Ok(Self([
            choose(std::io::stdin().as_fd(), has_pty, Direction::In)?,
            choose(std::io::stdout().as_fd(), has_pty, Direction::Out)?,
            choose(std::io::stderr().as_fd(), has_pty, Direction::Out)?,
        ]))
    }

    /// Puts the streams in place, in the process that will be the command.
    pub(crate) fn connect(&self, terminal: Option<BorrowedFd<'_>>) -> Result<(), LaunchError> {
        for (stream, put) in self.0.iter().zip(REPLACE) {
            let source = match (stream, terminal) {
                (Stream::AsItIs, _) | (Stream::Pty, None) => continue,
                (Stream::Pty, Some(terminal)) => terminal,
                (Stream::Output(fd), _) => fd.as_fd(),
            };
            put(source).during(STEP)?;
        }
        Ok(())
    }
}

/// An unnamed pipe of root's could not be opened again as `/dev/stdout` by a command that is not
/// root. Only pipes: a file the caller redirects to keeps its owner.
pub(crate) fn give_pipes_to(owner: Owner) -> Result<(), LaunchError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    for fd in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        if rustix::fs::fstatfs(fd).is_ok_and(|found| found.f_type == PIPEFS_MAGIC) {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(fd, Some(uid), Some(gid)).during(STEP)?;
        }
    }
    Ok(())
}

type Replace = fn(BorrowedFd<'_>) -> rustix::io::Result<()>;
const REPLACE: [Replace; 3] = [
    |fd| rustix::stdio::dup2_stdin(fd),
    |fd| rustix::stdio::dup2_stdout(fd),
    |fd| rustix::stdio::dup2_stderr(fd),
];

/// Lets go of the caller's streams, so that its pipes close when the command ends.
pub(crate) fn release() -> Result<(), LaunchError> {
    let null = rustix::fs::open(
        "/dev/null",
        palisade_sys::OFlags::RDWR | palisade_sys::OFlags::CLOEXEC,
        palisade_sys::Mode::empty(),
    );
    match null {
        Ok(null) => REPLACE.iter().try_for_each(|put| put(null.as_fd())).during(STEP),
        // A policy may leave out /dev; then the three numbers are simply free.
        Err(_) => palisade_sys::proc::close_range(0, 2).during(STEP),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

fn choose(fd: BorrowedFd<'_>, has_pty: bool, way: Direction) -> Result<Stream, LaunchError> {
    if !tty::isatty(fd) {
        return Ok(Stream::AsItIs);
    }
    if has_pty {
        return Ok(Stream::Pty);
    }
    match way {
        Direction::In => {
            Err(LaunchError::new(STEP, "stdin is a terminal, and no pty was asked for"))
        }
        Direction::Out => Ok(Stream::Output(tty::reopen_write_only(fd).during(STEP)?)),
    }
}
