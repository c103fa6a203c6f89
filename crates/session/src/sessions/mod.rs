//! Sessions: sandboxes that stay. Each has a directory of its own below the state directory, in which its supervisor keeps
//! everything that others need to find, reach and judge it.
//!
//! ```text
//! sessions/ID/session.json     what it is and in which state; replaced by rename, never written in place
//! sessions/ID/supervisor.lock  locked for as long as the supervisor lives
//! sessions/ID/control          the socket at which the supervisor takes requests
//! sessions/ID/supervisor.log   what the supervisor has to say to people
//! sessions/ID/output/N/        output of command N, in segments
//! sessions/ID/recordings/      the terminals of commands, where they are recorded
//! ```
//!
//! Must never follow a link in there, and never use a directory of another user: root may have been given one.

mod claiming;
mod create;
mod directory;
mod find;
mod hosted;
mod output;
mod record;
mod recordings;
mod sweep;

pub use claiming::{ClientEnd, SessionOwner};
pub use directory::{SessionDirectory, SupervisorLock};
pub use find::{find, find_for_command, list, short_id};
pub use hosted::{CreatorPipe, FirstCommand, HostedSession, Progress};
pub use output::{OutputChunk, OutputReader, command_end, logged_commands};
pub use palisade_supervisor::control::output_log::CommandEnd;
pub use record::{Recorded, SessionRecord, SessionSummary, TimeToLive};
pub use recordings::NewRecording;
pub use sweep::{SWEPT_BY_COMMANDS, Swept, sweep};

pub(crate) use create::create;
pub(crate) use hosted::SessionLife;
pub(crate) use sweep::SWEPT_BY_RUNS;

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
