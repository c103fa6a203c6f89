//! Gives one answer and waits for what the session replies: an answer that was sent is not yet one that was taken.
//!
//! Must never send an answer twice: the second one could be for another question.

use crate::answer::Answer;
use crate::client::ClientError;
use crate::message::Audit;
use crate::question::QuestionId;
use crate::sessions::{SessionChange, Sessions};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Between two looks at the directory of sockets.
const LOOK: Duration = Duration::from_millis(100);

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// The session refused it, or ended first; the text says why.
    No(String),
    /// The session did not reply in time.
    Unknown,
}

impl Sessions {
    /// Sends an answer, and waits for the reply. `decided` hears every decision of the session meanwhile: with a directory
    /// there may be several.
    pub fn answer_and_wait(
        &mut self,
        (session, id): (&str, QuestionId),
        answer: Answer,
        patience: Duration,
        decided: &mut dyn FnMut(&Audit),
    ) -> Result<Taken, ClientError> {
        self.answer(session, id, answer)?;
        // That it was taken, and what was decided, come in either order.
        let (mut is_taken, mut is_told) = (false, false);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            for change in self.refresh()? {
                match change {
                    SessionChange::Answered { session: of, audit } if of == session => {
                        decided(&audit);
                        is_told |= audit.id == id;
                    }
                    SessionChange::Done { session: of, .. } if of == session => is_taken = true,
                    SessionChange::Refused { session: of, refused } if of == session => {
                        return Ok(Taken::No(refused.message));
                    }
                    // A short command may have ended with the answer.
                    SessionChange::Vanished { session: of } if of == session && !is_taken => {
                        return Ok(Taken::No(ClientError::Gone.to_string()));
                    }
                    SessionChange::Vanished { session: of } if of == session => is_told = true,
                    _ => {}
                }
            }
            if is_taken && is_told {
                return Ok(Taken::Yes);
            }
            self.wait(LOOK)?;
        }
        Ok(if is_taken { Taken::Yes } else { Taken::Unknown })
    }

    /// Waits until a session sends something, at most this long.
    pub fn wait(&self, longest: Duration) -> Result<(), Errno> {
        let mut polled: Vec<PollFd<'_>> = self
            .descriptors()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        match rustix::event::poll(&mut polled, Timespec::try_from(longest).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}
