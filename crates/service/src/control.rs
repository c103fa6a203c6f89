//! A client of a session's own socket that never blocks: the supervisor may have been stopped.

use crate::problem::Problem;
use palisade_session::SessionError;
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::client::{Client, WireError};
use palisade_session::supervise::interface::{
    ClaimSandbox, Event, FromSupervisor, Refusal, RefusalKind, Request, Response, VERSION,
};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A supervisor answers at once, or it was stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Events that came while an answer was waited for.
const MAX_KEPT_EVENTS: usize = 2048;

/// A connection to the socket of one session.
pub struct ControlConnection {
    client: Client,
    /// A second descriptor of its socket, by which tokio knows that something came. Nothing is read from it.
    ready: UnixStream,
    events: VecDeque<Event>,
    session: String,
}

impl std::fmt::Debug for ControlConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlConnection").field("session", &self.session).finish_non_exhaustive()
    }
}

impl ControlConnection {
    /// To a session that runs.
    pub async fn open(session: &Arc<SessionDirectory>) -> Result<Self, Problem> {
        let directory = Arc::clone(session);
        let connecting = tokio::task::spawn_blocking(move || directory.connect());
        let unresponsive = || unresponsive(session.id());
        let connected = timeout(PATIENCE, connecting).await.map_err(|_| unresponsive())?;
        let socket = connected.map_err(|error| Problem::internal(error.to_string()))?;
        Self::over(socket.map_err(Problem::from)?, session.id().to_owned()).await
    }

    /// Over a socket that is connected to the supervisor of this session.
    pub(crate) async fn over(socket: OwnedFd, session: String) -> Result<Self, Problem> {
        let mut connection = Self::unanswered(socket, session)?;
        connection.ask(&Request::Hello { version: VERSION }, &[]).await?;
        Ok(connection)
    }

    fn unanswered(socket: OwnedFd, session: String) -> Result<Self, Problem> {
        rustix::io::ioctl_fionbio(&socket, true)
            .map_err(|errno| Problem::internal(errno.to_string()))?;
        let ready = socket
            .try_clone()
            .and_then(|copy| UnixStream::from_std(copy.into()))
            .map_err(|error| Problem::internal(error.to_string()))?;
        let client = Client::new(socket);
        Ok(Self { client, ready, events: VecDeque::new(), session })
    }

    /// Claims the sandbox at the other end of this socket, which may still be on its way: its supervisor finds the claim as soon as
    /// commands can be started.
    pub(crate) fn claiming(socket: OwnedFd, claim: &ClaimSandbox) -> Result<Self, Problem> {
        let connection = Self::unanswered(socket, "of this run".to_owned())?;
        connection.send(&Request::Hello { version: VERSION }, &[])?;
        connection.send(&Request::Claim(claim.clone()), &[])?;
        Ok(connection)
    }

    /// Waits, however long, until such a claim is carried out. To be asked for once.
    pub(crate) async fn claimed(&mut self) -> Result<(), Problem> {
        let (_hello, _done) = (self.response().await?, self.response().await?);
        Ok(())
    }

    /// A request that is carried out, or a problem.
    pub async fn ask(
        &mut self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Response, Problem> {
        self.send(request, descriptors)?;
        match timeout(PATIENCE, self.response()).await {
            Ok(response) => response,
            Err(_) => Err(unresponsive(&self.session)),
        }
    }

    /// Without waiting for its answer, which [`Self::next_event`] then leaves out.
    pub fn send(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<(), Problem> {
        self.client.send(request, descriptors).map_err(|error| match error {
            WireError::TooLong { limit } => {
                Problem::too_large(format!("arguments and environment exceed {limit} bytes"))
            }
            WireError::Closed => ended(&self.session),
            _ => unresponsive(&self.session),
        })
    }

    async fn response(&mut self) -> Result<Response, Problem> {
        loop {
            match self.receive().await? {
                FromSupervisor::Response(Response::Refused(refusal)) => {
                    return Err(refused(refusal));
                }
                FromSupervisor::Response(response) => return Ok(response),
                FromSupervisor::Event(Event::Ended { .. }) => return Err(ended(&self.session)),
                FromSupervisor::Event(event) if self.events.len() < MAX_KEPT_EVENTS => {
                    self.events.push_back(event);
                }
                FromSupervisor::Event(_) => return Err(unresponsive(&self.session)),
            }
        }
    }

    /// Waits for whatever comes next: an event, or the response to a request that was only sent. May be dropped while it waits, and
    /// asked for again.
    pub async fn next_message(&mut self) -> Result<FromSupervisor, Problem> {
        match self.events.pop_front() {
            Some(event) => Ok(FromSupervisor::Event(event)),
            None => self.receive().await,
        }
    }

    /// Waits for the next event. May be dropped while it waits, and asked for again.
    pub async fn next_event(&mut self) -> Result<Event, Problem> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        loop {
            if let FromSupervisor::Event(event) = self.receive().await? {
                return Ok(event);
            }
        }
    }

    async fn receive(&mut self) -> Result<FromSupervisor, Problem> {
        loop {
            let internal = |error: io::Error| Problem::internal(error.to_string());
            self.ready.readable().await.map_err(internal)?;
            let Self { ready, client, .. } = self;
            // That there is nothing makes it wait again.
            let received = ready.try_io(Interest::READABLE, || match client.try_next() {
                Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
                received => Ok(received),
            });
            match received {
                Ok(Ok(Some(message))) => return Ok(message),
                Ok(Err(WireError::Closed)) => return Err(ended(&self.session)),
                Ok(Err(error)) => return Err(Problem::internal(error.to_string())),
                Ok(Ok(None)) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(internal(error)),
            }
        }
    }
}

fn unresponsive(session: &str) -> Problem {
    Problem::timed_out(format!("the supervisor of sandbox {session} does not answer"))
}

fn ended(session: &str) -> Problem {
    SessionError::SessionNotRunning { session: session.to_owned() }.into()
}

fn refused(Refusal { kind, message }: Refusal) -> Problem {
    match kind {
        RefusalKind::Version => Problem::internal(format!(
            "{message}; the sandbox was made by another version of this program"
        )),
        RefusalKind::Malformed => Problem::invalid(message),
        RefusalKind::UnknownCommand => Problem::not_found(message),
        RefusalKind::TooManyCommands => Problem::busy(message),
        RefusalKind::OutOfOrder | RefusalKind::Failed => Problem::conflict(message),
    }
}
