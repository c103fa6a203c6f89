//! A connection to a session, for clients that answer questions.
//!
//! Only [`Client::wait`] blocks, and [`Client::send`] for a few seconds at most. Messages of a session are
//! limited in size and parsed; callers must escape their text before they display it.

use crate::json;
use crate::lines::Lines;
use crate::message::{ClientCommand, MAX_EVENT_BYTES, PROTOCOL, ServerEvent};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a session may take to accept a command.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 * 1024;
/// Limits how much one call reads, so that other connections get their turn.
const MAX_AT_ONCE: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{}: cannot connect: {source}", path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("{}: is served by user {uid}, who is neither you nor root", path.display())]
    Stranger { path: PathBuf, uid: u32 },
    #[error("{}: {reason}; it is ignored", path.display())]
    Directory { path: PathBuf, reason: &'static str },
    #[error("{}: cannot announce this client: {source}", path.display())]
    Attend { path: PathBuf, source: io::Error },
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the session has ended")]
    Gone,
    #[error("the session does not answer; it may be stopped")]
    Silent,
    #[error(
        "the session speaks protocol {0}, this is {PROTOCOL}; use the `sandbox` it was started with"
    )]
    Protocol(u32),
    #[error("the session sent an invalid message: {0}")]
    Garbled(String),
    #[error("the connection to the session failed: {0}")]
    Io(#[from] Errno),
}

#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    lines: Lines,
    events: VecDeque<ServerEvent>,
    is_at_end: bool,
}

impl Client {
    /// Connects to a socket that another user could have created: it must be served by the same user, or by
    /// root.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let connect =
            |errno: Errno| ClientError::Connect { path: path.to_owned(), source: errno.into() };
        // A stopped session with a full backlog would block connect(2).
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(connect)?;
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(connect(Errno::INVAL))?;
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::open(parent, directory, Mode::empty()).map_err(connect)?;
        // A socket address has room for 107 bytes, and the path may be longer.
        let address = Path::new("/proc/self/fd").join(held.as_raw_fd().to_string()).join(name);
        let address = SocketAddrUnix::new(&address).map_err(connect)?;
        rustix::net::connect(&stream, &address).map_err(connect)?;
        let stream = UnixStream::from(stream);
        let server = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        let mine = rustix::process::geteuid();
        // Root may answer for every user.
        if server != mine && !server.is_root() && !mine.is_root() {
            return Err(ClientError::Stranger { path: path.to_owned(), uid: server.as_raw() });
        }
        Ok(Self::new(stream))
    }

    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            lines: Lines::new(MAX_EVENT_BYTES),
            events: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// Sends a command. Commands are short: a session that accepts none for seconds is hanging.
    pub fn send(&mut self, command: &ClientCommand) -> Result<(), ClientError> {
        let line =
            json::to_line(command).map_err(|error| ClientError::Garbled(error.to_string()))?;
        let mut rest = line.as_bytes();
        let deadline = Instant::now() + SEND_TIMEOUT;
        while !rest.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.stream, rest, flags) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !ready(self.stream.as_fd(), PollFlags::OUT, deadline)? {
                        return Err(ClientError::Silent);
                    }
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(ClientError::Gone),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The next event that has already arrived. `Gone` once the session has closed the connection and all its
    /// events were returned.
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        if self.events.is_empty() && !self.is_at_end {
            self.read()?;
        }
        match self.events.pop_front() {
            Some(event) => Ok(Some(event)),
            None if self.is_at_end => Err(ClientError::Gone),
            None => Ok(None),
        }
    }

    /// The next event, or `None` if none arrives before the deadline.
    pub fn wait(&mut self, deadline: Instant) -> Result<Option<ServerEvent>, ClientError> {
        loop {
            if let Some(event) = self.next_event()? {
                return Ok(Some(event));
            }
            if !ready(self.stream.as_fd(), PollFlags::IN, deadline)? {
                return Ok(None);
            }
        }
    }

    fn read(&mut self) -> Result<(), ClientError> {
        let mut chunk = vec![0; CHUNK];
        let mut total = 0;
        while total < MAX_AT_ONCE {
            let flags = RecvFlags::DONTWAIT;
            let count = match rustix::net::recv(&self.stream, &mut chunk[..], flags) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => {
                    self.is_at_end = true;
                    return Ok(());
                }
                Ok((_, count)) => count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            };
            total += count;
            let (lines, whole) = self.lines.push(&chunk[..count]);
            for line in lines {
                let event = serde_json::from_slice(&line)
                    .map_err(|error| ClientError::Garbled(error.to_string()))?;
                self.events.push_back(event);
            }
            if whole.is_err() {
                return Err(ClientError::Garbled("a line without end".to_owned()));
            }
        }
        Ok(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Whether it became ready before the deadline.
fn ready(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Instant) -> Result<bool, Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::from_borrowed_fd(fd, flags)];
        match rustix::event::poll(&mut polled, Timespec::try_from(left).ok().as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
