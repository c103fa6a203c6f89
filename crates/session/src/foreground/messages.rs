//! What a supervisor says to who is in the foreground, one message at a time and without waiting.

use crate::error::Result;
use crate::foreground::Left;
use palisade_launch::CommandId;
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::client::{Client, WireError};
use palisade_supervisor::control::interface::{Event, FromSupervisor, OutputStream};

/// A message about one command.
pub(super) enum Heard {
    Output(OutputStream, Vec<u8>),
    /// For a recording.
    Marker(String),
    /// A request was carried out, or not.
    Answer,
    Left(Left),
    Nothing,
}

/// The next message that concerns this command.
pub(super) fn hear(client: &mut Client, of: CommandId) -> Result<Heard> {
    loop {
        let event = match client.try_next() {
            Ok(Some(FromSupervisor::Event(event))) => event,
            Ok(Some(FromSupervisor::Response(_))) => return Ok(Heard::Answer),
            Ok(None) => return Ok(Heard::Nothing),
            // Its supervisor was killed.
            Err(WireError::Closed) => return Ok(Heard::Left(Left::SessionEnded)),
            Err(error) => return Err(SupervisorError::from(error).into()),
        };
        return Ok(match event {
            Event::Output { command, stream, bytes, .. } if command == of => {
                Heard::Output(stream, bytes)
            }
            Event::CommandExited { command, cause } if command == of => {
                Heard::Left(Left::Exited(cause))
            }
            Event::CommandFailed { command, exit_code, message } if command == of => {
                Heard::Left(Left::NotStarted { exit_code, message })
            }
            Event::Marked { text } => Heard::Marker(text),
            Event::Ended { .. } => Heard::Left(Left::SessionEnded),
            _ => continue,
        });
    }
}
