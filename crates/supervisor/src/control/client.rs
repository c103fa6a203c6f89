//! The other side of the control interface, for programs that have sandboxes and for tests. It waits for what it asks for;
//! events that come meanwhile are kept for [`Client::next_event`].

use super::interface::{CreateSandbox, Event, FromSupervisor, Request, Response, VERSION};
use palisade_sys::fdpass::socketpair;
use palisade_wire::Received;
pub use palisade_wire::WireError;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};

/// A supervisor process and the connection to it. Dropped, it ends the sandbox.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    events: VecDeque<Event>,
    /// Whether the answer to the greeting is yet to come.
    has_open_greeting: bool,
    /// For one message.
    buffer: Vec<u8>,
}

impl Client {
    /// Starts a supervisor with `command`, which is a `sandbox` without arguments, and makes its sandbox. The process is
    /// the caller's to wait for; after an error it was waited for here.
    pub fn start(
        mut command: Command,
        sandbox: CreateSandbox,
    ) -> io::Result<(Self, Child, Response)> {
        let (socket, theirs) = socketpair().map_err(|error| io::Error::from(error.errno))?;
        command.args(["supervise", "--control-fd", "0"]);
        let mut child = command.stdin(Stdio::from(theirs)).spawn()?;
        // The command holds a copy of their end.
        drop(command);
        let mut client = Self::new(socket);
        match client.create(sandbox) {
            Ok(response) => Ok((client, child, response)),
            Err(error) => {
                // It ends with its client.
                drop(client);
                child.wait()?;
                Err(error)
            }
        }
    }

    fn create(&mut self, sandbox: CreateSandbox) -> io::Result<Response> {
        match self.begin(&Request::Hello { version: VERSION })? {
            Response::Hello { .. } => self.begin(&Request::Create(sandbox)),
            refused => Ok(refused),
        }
    }

    /// A request on the way to a sandbox. Why there is none is told by the last event.
    fn begin(&mut self, request: &Request) -> io::Result<Response> {
        match self.ask(request, &[]) {
            Ok((response, _)) => Ok(response),
            Err(error) => Err(match self.events.pop_back() {
                Some(Event::Ended { error: Some(why), .. }) => io::Error::other(why),
                _ => io::Error::other(error),
            }),
        }
    }

    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, events: VecDeque::new(), has_open_greeting: false, buffer: Vec::new() }
    }

    /// Says which version we speak, without waiting for the answer: the first request may follow at once. If this is refused,
    /// nothing else is carried out, and [`Self::ask`] returns that refusal.
    pub fn greet(&mut self) -> Result<(), WireError> {
        self.send(&Request::Hello { version: VERSION }, &[])?;
        self.has_open_greeting = true;
        Ok(())
    }

    /// Sends a request and waits for its response, with the descriptor that came with it.
    pub fn ask(
        &mut self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Response, Option<OwnedFd>), WireError> {
        self.send(request, descriptors)?;
        loop {
            match self.receive()? {
                (FromSupervisor::Response(Response::Hello { .. }), _) if self.has_open_greeting => {
                    self.has_open_greeting = false;
                }
                (FromSupervisor::Response(response), descriptor) => {
                    return Ok((response, descriptor));
                }
                (FromSupervisor::Event(event), _) => {
                    let is_last = matches!(event, Event::Ended { .. });
                    self.events.push_back(event);
                    if is_last {
                        return Err(WireError::Closed);
                    }
                }
            }
        }
    }

    /// Sends a request without waiting for its response, which [`Self::next_event`] then skips.
    pub fn send(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<(), WireError> {
        palisade_wire::send(&self.socket, request, descriptors)
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<Event, WireError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        loop {
            if let (FromSupervisor::Event(event), _) = self.receive()? {
                return Ok(event);
            }
        }
    }

    /// The next message, without waiting for one.
    pub fn try_next(&mut self) -> Result<Option<FromSupervisor>, WireError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(FromSupervisor::Event(event)));
        }
        let received = palisade_wire::try_receive_growing(&self.socket, &mut self.buffer)?;
        Ok(received.map(|Received { message, .. }| message))
    }

    /// To be polled for events.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self) -> Result<(FromSupervisor, Option<OwnedFd>), WireError> {
        let Received { message, mut descriptors } =
            palisade_wire::receive_growing(&self.socket, &mut self.buffer)?;
        Ok((message, descriptors.pop()))
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, Command, CreateSandbox};
    use std::path::Path;

    #[test]
    fn a_supervisor_that_makes_no_sandbox_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("echo $$ > '{}'", pid.display()));
        Client::start(command, CreateSandbox::default()).unwrap_err();
        let pid = std::fs::read_to_string(pid).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "a zombie was left");
    }
}
