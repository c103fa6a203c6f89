//! A connection to the supervisor of a sandbox, by the control interface (docs/control.md). A supervisor that was stopped must not
//! keep our caller waiting for ever.

use crate::error::{Error, ErrorKind, Result};
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::client::{Client, WireError};
use palisade_session::supervise::interface::{Refusal, RefusalKind, Request, Response, VERSION};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A supervisor answers within microseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    sandbox: String,
}

impl Connection {
    pub(crate) fn open(session: &SessionDirectory) -> Result<Self> {
        let socket = session.connect()?;
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(PATIENCE))
                .map_err(|errno| Error::internal(format!("setsockopt: {errno}")))?;
        }
        let client = Client::new(socket);
        let mut connection = Self { client, sandbox: session.id().to_owned() };
        connection.ask(&Request::Hello { version: VERSION }, &[])?;
        Ok(connection)
    }

    /// A request that is carried out, or an error.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Response> {
        match self.client.ask(request, descriptors) {
            Ok((Response::Refused(refusal), _)) => Err(refused(refusal)),
            Ok((response, _)) => Ok(response),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Without waiting for the answer, which is then among the messages.
    pub(crate) fn send(&self, request: &Request) -> Result<()> {
        self.client.send(request, &[]).map_err(|error| self.failed(&error))
    }

    pub(crate) fn failed(&self, error: &WireError) -> Error {
        match error {
            WireError::Closed => Error::Ended { sandbox: self.sandbox.clone() },
            WireError::TooLong { limit } => Error::failed(
                ErrorKind::Resource,
                format!("arguments and environment exceed {limit} bytes"),
            ),
            WireError::System(error) if error.errno == Errno::AGAIN => Error::timed_out(format!(
                "the supervisor of sandbox {} does not answer",
                self.sandbox
            )),
            other => Error::internal(other.to_string()),
        }
    }

    pub(crate) fn unexpected(&self) -> Error {
        let sandbox = &self.sandbox;
        Error::internal(format!("the supervisor of sandbox {sandbox} answered something else"))
    }
}

fn refused(Refusal { kind, message }: Refusal) -> Error {
    match kind {
        RefusalKind::Version => Error::internal(format!(
            "{message}; the sandbox was made by another version of `sandbox` than this library is of"
        )),
        RefusalKind::Malformed => Error::invalid(message),
        RefusalKind::UnknownCommand => Error::NotFound { message },
        RefusalKind::TooManyCommands => Error::failed(ErrorKind::Resource, message),
        RefusalKind::OutOfOrder | RefusalKind::Failed => Error::conflict(message),
    }
}
