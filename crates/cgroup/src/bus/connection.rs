//! A connection to a message bus: authenticated, with one call at a time. Must never exceed its deadline, whatever the
//! other side does.

use super::confused;
use super::wire::{FIXED, Message, MessageKind, Reader, Writer};
use crate::error::{CgroupError, Result};
use rustix::io::Errno;
use rustix::net::sockopt::Timeout;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

/// The maximum length of a line during authentication.
const MAX_LINE_BYTES: usize = 512;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    deadline: Instant,
    serial: u32,
    /// Messages that arrived while we waited for a reply.
    aside: Vec<Message>,
}

/// A method call and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) destination: &'a str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) member: &'a str,
    pub(crate) signature: &'a str,
    pub(crate) body: Writer,
}

impl Connection {
    /// The other side learns our uid from the socket; the uid we send only has to match.
    pub(crate) fn open(socket: &SocketAddr, deadline: Instant) -> Result<Self> {
        let stream = connect(socket, deadline)?;
        let mut connection = Self { stream, deadline, serial: 0, aside: Vec::new() };
        let uid = rustix::process::getuid().as_raw().to_string();
        let claim: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
        connection.send(format!("\0AUTH EXTERNAL {claim}\r\n").as_bytes())?;
        let answer = connection.line()?;
        if !answer.starts_with("OK ") {
            return Err(CgroupError::Systemd { step: "authenticating to the bus", why: answer });
        }
        connection.send(b"BEGIN\r\n")?;
        Ok(connection)
    }

    /// Calls a method, and waits for its reply.
    pub(crate) fn call(&mut self, call: Call<'_>) -> Result<Message> {
        self.serial += 1;
        let serial = self.serial;
        let mut message = Message::new(MessageKind::Call, serial);
        message.destination = Some(call.destination.to_owned());
        message.path = Some(call.path.to_owned());
        message.interface = Some(call.interface.to_owned());
        message.member = Some(call.member.to_owned());
        message.signature = call.signature.to_owned();
        message.body = call.body.bytes;
        self.send(&message.bytes())?;
        loop {
            let message = self.receive()?;
            match message.kind {
                MessageKind::Return if message.reply_to == Some(serial) => return Ok(message),
                MessageKind::Error if message.reply_to == Some(serial) => {
                    let text = Reader::new(&message.body).string().unwrap_or_default();
                    let name = message.error.unwrap_or_default();
                    let why = format!("{} was answered with {name}: {text}", call.member);
                    return Err(CgroupError::Systemd { step: "calling it", why });
                }
                _ => self.set_aside(message)?,
            }
        }
    }

    /// Waits for a message that matches, including those that already arrived.
    pub(crate) fn wait_for<T>(&mut self, is_it: impl Fn(&Message) -> Option<T>) -> Result<T> {
        for message in std::mem::take(&mut self.aside) {
            if let Some(found) = is_it(&message) {
                return Ok(found);
            }
        }
        loop {
            if let Some(found) = is_it(&self.receive()?) {
                return Ok(found);
            }
        }
    }

    /// Writes `bytes`. A reader that takes them one by one does not extend the deadline.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        const STEP: &str = "writing to the bus";
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_write_timeout(Some(left)).map_err(|error| failed(STEP, &error))?;
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(failed(STEP, &error)),
            }
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self) -> Result<Message> {
        let mut start = [0; FIXED];
        self.read(&mut start)?;
        let length = Message::length(&start).map_err(|why| confused("a message", &why))?;
        let mut bytes = vec![0; length];
        bytes[..FIXED].copy_from_slice(&start);
        self.read(&mut bytes[FIXED..])?;
        Message::parse(&bytes).map_err(|why| confused("a message", &why))
    }

    fn set_aside(&mut self, message: Message) -> Result<()> {
        const MAX_MESSAGES: usize = 256;
        if self.aside.len() >= MAX_MESSAGES {
            return Err(confused("messages", "more of them than anybody asked for"));
        }
        self.aside.push(message);
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.read(&mut byte)?;
            line.extend(byte);
            if line.len() > MAX_LINE_BYTES {
                return Err(confused("a line", "longer than any should be"));
            }
        }
        line.truncate(line.len() - 2);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Fills `bytes`. A sender that sends them one by one does not extend the deadline.
    fn read(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        const STEP: &str = "reading from the bus";
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_read_timeout(Some(left)).map_err(|error| failed(STEP, &error))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(confused("the connection", "closed by the other side")),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(late());
                }
                Err(error) => return Err(failed(STEP, &error)),
            }
        }
        Ok(())
    }

    fn left(&self) -> Result<Duration> {
        left_until(self.deadline)
    }
}

/// If the other side's queue is full, connect(2) waits as write(2) does, up to the same timeout (`SO_SNDTIMEO` in
/// socket(7)).
fn connect(socket: &SocketAddr, deadline: Instant) -> Result<UnixStream> {
    const STEP: &str = "connecting to the bus";
    let refused = |errno: Errno| failed(STEP, &errno.into());
    let address = match (socket.as_pathname(), socket.as_abstract_name()) {
        (Some(path), _) => SocketAddrUnix::new(path),
        (None, Some(name)) => SocketAddrUnix::new_abstract_name(name),
        (None, None) => Err(Errno::DESTADDRREQ),
    };
    let address = address.map_err(refused)?;
    let stream =
        net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(refused)?;
    loop {
        let left = Some(left_until(deadline)?);
        net::sockopt::set_socket_timeout(&stream, Timeout::Send, left).map_err(refused)?;
        match net::connect(&stream, &address) {
            Ok(()) => return Ok(UnixStream::from(stream)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(late()),
            Err(errno) => return Err(refused(errno)),
        }
    }
}

/// Never zero: a timeout of zero means to wait forever.
fn left_until(deadline: Instant) -> Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> CgroupError {
    CgroupError::Systemd { step: "waiting for it", why: "it takes too long".to_owned() }
}

fn failed(step: &'static str, error: &std::io::Error) -> CgroupError {
    CgroupError::Systemd { step, why: error.to_string() }
}
