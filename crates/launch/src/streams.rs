//! The command's stdin, stdout and stderr.
//!
//! The command must never hold the caller's terminal, not even for writing: `/proc/self/fd` opens it again, and
//! then typed input could be read. What is not a terminal is passed on unchanged. With a cap on output, the
//! command gets a pipe of ours instead.

use crate::error::{During, LaunchError, Result};
use palisade_plan::model::Owner;
use palisade_sys::{At as _, Errno, OFlags, tty};
use rustix::fs::{FileType, FsWord, Gid, Uid};
use rustix::pipe::PipeFlags;
use rustix::termios::Winsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const STEP: &str = "connecting the command's streams";
/// `linux/magic.h`
const PIPEFS_MAGIC: FsWord = 0x5049_5045;

/// What the supervisor wants for the command's terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streams {
    /// Create a pty of this size inside, for the streams that are terminals.
    pub pty: Option<Winsize>,
}

/// One of the three streams, chosen before the fork.
#[derive(Clone, Copy, Debug)]
enum Stream {
    AsItIs,
    Pty,
    /// The pipe with this index.
    Piped(usize),
}

/// What was read from one of our pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOutput {
    Stdout,
    Stderr,
    /// Both go to one place of the caller, in order.
    Both,
}

/// Our end of a pipe for the command's output. Reading it never blocks.
#[derive(Debug)]
pub struct OutputPipe {
    pub output: StreamOutput,
    pub read: OwnedFd,
}

/// All three, in order.
#[derive(Debug)]
pub(crate) struct Chosen {
    streams: [Stream; 3],
    /// The ends that the command writes to.
    pipes: Vec<OwnedFd>,
}

impl Chosen {
    /// With `no_files`, standard input is none. Outputs are for our pipes to see to.
    pub(crate) fn choose(streams: &Streams, no_files: bool) -> Result<Self> {
        let has_pty = streams.pty.is_some();
        if no_files {
            refuse_file(std::io::stdin().as_fd())?;
        }
        let streams = [
            choose(std::io::stdin().as_fd(), has_pty)?,
            choose(std::io::stdout().as_fd(), has_pty)?,
            choose(std::io::stderr().as_fd(), has_pty)?,
        ];
        Ok(Self { streams, pipes: Vec::new() })
    }

    /// For a process that is no command.
    pub(crate) fn none() -> Self {
        Self { streams: [Stream::AsItIs; 3], pipes: Vec::new() }
    }

    /// Redirects the outputs that are not terminals through our pipes.
    pub(crate) fn put_pipes_between(&mut self) -> Result<Vec<OutputPipe>> {
        let mut outer = Vec::new();
        let [_, stdout, stderr] = self.streams;
        if let (Stream::AsItIs, Stream::AsItIs) = (stdout, stderr)
            && is_one_place(std::io::stdout().as_fd(), std::io::stderr().as_fd())
        {
            outer.push(self.pipe_for(StreamOutput::Both, &[1, 2])?);
            return Ok(outer);
        }
        for (stream, output, number) in
            [(stdout, StreamOutput::Stdout, 1), (stderr, StreamOutput::Stderr, 2)]
        {
            if let Stream::AsItIs = stream {
                outer.push(self.pipe_for(output, &[number])?);
            }
        }
        Ok(outer)
    }

    fn pipe_for(&mut self, output: StreamOutput, numbers: &[usize]) -> Result<OutputPipe> {
        let (read, write) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).call("pipe2").during(STEP)?;
        // The two ends have separate flags: the command's end stays an ordinary pipe.
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK).call("fcntl").during(STEP)?;
        for number in numbers {
            self.streams[*number] = Stream::Piped(self.pipes.len());
        }
        self.pipes.push(write);
        Ok(OutputPipe { output, read })
    }

    /// Puts the streams in place, in the process that will be the command.
    pub(crate) fn connect(&self, terminal: Option<BorrowedFd<'_>>) -> Result<()> {
        for (stream, put) in self.streams.iter().zip(REPLACE) {
            let source = match (stream, terminal) {
                (Stream::AsItIs, _) | (Stream::Pty, None) => continue,
                (Stream::Pty, Some(terminal)) => terminal,
                (Stream::Piped(index), _) => self.pipes[*index].as_fd(),
            };
            put(source).call("dup2").during(STEP)?;
        }
        Ok(())
    }

    /// A command that is not root could not open an unnamed pipe of root's again as `/dev/stdout`. Only pipes,
    /// not files: a file the caller redirects to keeps its owner.
    pub(crate) fn give_pipes_to(&self, owner: Owner) -> Result<()> {
        let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let callers = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        for (stream, caller) in self.streams.iter().zip(callers) {
            let fd = match stream {
                Stream::AsItIs => caller,
                Stream::Piped(index) => self.pipes[*index].as_fd(),
                Stream::Pty => continue,
            };
            if rustix::fs::fstatfs(fd).is_ok_and(|found| found.f_type == PIPEFS_MAGIC) {
                let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
                match rustix::fs::fchown(fd, Some(uid), Some(gid)) {
                    // Root of a user namespace, with a pipe from outside whose owner is not mapped here. The
                    // command can read and write it, but not open it again.
                    Err(Errno::PERM) => {}
                    given => given.call("fchown").during(STEP)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether writes to both end up in one order: one pipe, one socket, one open file. A file that was opened
/// twice looks the same, but its two writers would overwrite each other.
fn is_one_place(first: BorrowedFd<'_>, second: BorrowedFd<'_>) -> bool {
    let (Ok(one), Ok(other)) = (rustix::fs::fstat(first), rustix::fs::fstat(second)) else {
        return false;
    };
    let position = |fd| rustix::fs::seek(fd, rustix::fs::SeekFrom::Current(0)).ok();
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
        && position(first) == position(second)
        && rustix::fs::fcntl_getfl(first).ok() == rustix::fs::fcntl_getfl(second).ok()
}

type Replace = fn(BorrowedFd<'_>) -> rustix::io::Result<()>;
const REPLACE: [Replace; 3] = [
    |fd| rustix::stdio::dup2_stdin(fd),
    |fd| rustix::stdio::dup2_stdout(fd),
    |fd| rustix::stdio::dup2_stderr(fd),
];

/// Closes the caller's streams, so that its pipes close when the command ends.
pub(crate) fn release() -> Result<()> {
    let null =
        rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, palisade_sys::Mode::empty());
    match null {
        Ok(null) => REPLACE.iter().try_for_each(|put| put(null.as_fd())).call("dup2").during(STEP),
        // A policy may leave out /dev; then the three numbers stay unused.
        Err(_) => palisade_sys::proc::close_range(0, 2).during(STEP),
    }
}

/// Whether a stream that somebody gave for a command may reach it.
pub(crate) fn check_stream(fd: BorrowedFd<'_>, no_files: bool) -> Result<()> {
    if no_files {
        refuse_file(fd)?;
    }
    choose(fd, false).map(drop)
}

/// The kernel asks the mount that a file was opened on whether it may be executed, and that is the host's.
fn refuse_file(fd: BorrowedFd<'_>) -> Result<()> {
    let found = rustix::fs::fstat(fd).call("fstat").during(STEP)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    let why =
        "a stream is a file, and what is written to it could be executed (executeWritten: false)";
    Err(LaunchError::new(STEP, why)
        .with_fix("use a pipe: `cat FILE | …` for input, `… | cat > FILE` for output"))
}

/// A descriptor of a terminal or a directory is more than a stream: through `/proc/self/fd` it can be reopened,
/// to read what is typed, or to reach the tree around it.
fn choose(fd: BorrowedFd<'_>, has_pty: bool) -> Result<Stream> {
    if tty::isatty(fd) {
        if has_pty {
            return Ok(Stream::Pty);
        }
        return Err(LaunchError::new(STEP, "a stream is a terminal, and no pty was asked for"));
    }
    let found = rustix::fs::fstat(fd).call("fstat").during(STEP)?;
    let is_path = rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::PATH));
    if is_path || FileType::from_raw_mode(found.st_mode) == FileType::Directory {
        return Err(LaunchError::new(STEP, "standard input, output or error is a directory")
            .with_fix(
                "it would open the host's tree to the command; redirect a file or /dev/null",
            ));
    }
    Ok(Stream::AsItIs)
}
