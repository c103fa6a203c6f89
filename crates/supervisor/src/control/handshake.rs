//! The beginning of a conversation, before there is a sandbox: hello, then what sandbox to make. These two are waited for;
//! everything after them is the event loop's.

use super::connection::{Connection, Incoming};
use super::interface::{
    CreateSandbox, FromSupervisor, Refusal, RefusalKind, Request, Response, VERSION,
};
use palisade_wire::WireError;

/// So many packets that are not what was expected end the conversation.
const MAX_REFUSED: usize = 16;

/// Waits for a client that speaks this version and says what it wants.
pub fn accept(connection: &mut Connection) -> Result<CreateSandbox, WireError> {
    let mut has_greeted = false;
    for _ in 0..MAX_REFUSED {
        let answer = match connection.wait_for_request()? {
            Incoming::Request(request @ Request::Hello { .. }, _) => {
                let answer = greet(&request);
                has_greeted |= matches!(answer, Response::Hello { .. });
                answer
            }
            Incoming::Request(Request::Create(create), _) if has_greeted => return Ok(create),
            Incoming::Request(..) => refused(
                RefusalKind::OutOfOrder,
                "the first request is Hello, the second is Create".to_owned(),
            ),
            Incoming::Malformed(why) => refused(RefusalKind::Malformed, why),
            Incoming::Nothing | Incoming::Closed => return Err(WireError::Closed),
        };
        connection.send(&FromSupervisor::Response(answer), None)?;
    }
    Err(WireError::Closed)
}

/// The answer to the first request of a client.
pub(crate) fn greet(request: &Request) -> Response {
    match request {
        Request::Hello { version: VERSION } => Response::Hello { version: VERSION },
        Request::Hello { version } => refused(
            RefusalKind::Version,
            format!("this supervisor speaks version {VERSION}, not {version}"),
        ),
        _ => refused(RefusalKind::OutOfOrder, "the first request is Hello".to_owned()),
    }
}

pub(crate) fn refused(kind: RefusalKind, message: String) -> Response {
    Response::Refused(Refusal { kind, message })
}
