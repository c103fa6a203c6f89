//! The beginning of a conversation, before there is a sandbox: hello, then what sandbox to make. These two are waited for;
//! everything after them is the event loop's.

use super::interface::{
    CreateSandbox, FromSupervisor, Refusal, RefusalKind, Request, Response, VERSION,
};
use palisade_sys::Errno;
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long a client may take to make room for a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// So many packets that are not what was expected end the conversation.
const MAX_REFUSED: usize = 16;

/// Waits for a client that speaks this version and says what it wants.
pub fn accept(socket: &OwnedFd) -> Result<CreateSandbox, WireError> {
    let mut has_greeted = false;
    let mut buffer = vec![0; Request::MAX_BYTES];
    for _ in 0..MAX_REFUSED {
        let received = palisade_wire::receive(socket, &mut buffer);
        let answer = match received.map(|Received { message, .. }| message) {
            Ok(Request::Hello { version: VERSION }) => {
                has_greeted = true;
                Response::Hello { version: VERSION }
            }
            Ok(Request::Hello { version }) => refused(
                RefusalKind::Version,
                format!("this supervisor speaks version {VERSION}, not {version}"),
            ),
            Ok(Request::Create(create)) if has_greeted => return Ok(create),
            Ok(_) => refused(
                RefusalKind::OutOfOrder,
                "the first request is Hello, the second is Create".to_owned(),
            ),
            Err(error @ (WireError::Undecodable(_) | WireError::TooLong { .. })) => {
                refused(RefusalKind::Malformed, error.to_string())
            }
            Err(error) => return Err(error),
        };
        tell(socket, &FromSupervisor::Response(answer))?;
    }
    Err(WireError::Closed)
}

/// Sends a message before or after the event loop; a client that does not read is not waited for long.
pub fn tell(socket: &OwnedFd, message: &FromSupervisor) -> Result<(), WireError> {
    match palisade_wire::send(socket, message, &[]) {
        Err(WireError::System(error)) if error.errno == Errno::AGAIN => {
            let mut watched = [PollFd::new(socket, PollFlags::OUT)];
            proc::poll(&mut watched, Some(SEND_TIMEOUT)).map_err(WireError::System)?;
            palisade_wire::send(socket, message, &[])
        }
        sent => sent,
    }
}

pub(crate) fn refused(kind: RefusalKind, message: String) -> Response {
    Response::Refused(Refusal { kind, message })
}
