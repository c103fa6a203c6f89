//! The end of a run: what the inside wrote reaches the terminal and the readers of pipes, though nobody is left
//! who wrote it.

use super::{Ends, Killed, Watch, ends, serve};
use crate::error::SessionError;
use crate::signals::Wish;
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// So long the reader of an output may take nothing, when it was we who ended the run.
const UNREAD: Duration = Duration::from_secs(2);

impl Watch<'_> {
    /// Shows what the inside wrote before it ended. Once pid 1 is dead nothing more is written, so
    /// the first time nothing is ready is the end.
    pub(super) fn drain(&mut self) -> Result<(), SessionError> {
        self.uncover_terminal();
        loop {
            let ends = ends(&self.running, self.terminal.as_ref());
            let ends = ends.map(|ends| Ends { input: None, ..ends });
            if (ends.is_none() || self.relay.is_finished()) && self.outputs.is_finished() {
                return Ok(());
            }
            let dead = self.running.has_ended()?;
            if dead {
                self.outputs.nobody_writes();
            }
            let mut set = vec![PollFd::from_borrowed_fd(self.signals.waiting(), PollFlags::IN)];
            if !dead {
                set.push(PollFd::from_borrowed_fd(self.running.pidfd(), PollFlags::IN));
            }
            let fixed = set.len();
            let (mut pipes, mut order) = (Vec::new(), Vec::with_capacity(3));
            self.outputs.interests(&mut set, &mut pipes);
            if let Some(ends) = &ends {
                self.relay.interests(ends, &mut set, &mut order);
            }
            let is_owed = self.relay.owes_output() || self.outputs.owes_output();
            let waits = !dead || is_owed;
            let patience = match self.killed {
                _ if !waits => Some(Duration::ZERO),
                // A limit holds, whatever somebody who reads does not read.
                Some(_) => is_owed.then_some(UNREAD),
                None => self.deadlines.whole().map(left_until).filter(|_| is_owed),
            };
            let ready = palisade_sys::proc::poll(&mut set, patience)?;
            let flags: Vec<PollFlags> = set.iter().map(PollFd::revents).collect();
            let (of_pipes, of_relay) = flags[fixed..].split_at(pipes.len());
            self.outputs.serve(&pipes, of_pipes);
            if let Some(ends) = &ends {
                serve(&mut self.relay, &order, of_relay, ends);
            }
            if ready == 0 && waits {
                if self.killed.is_none() {
                    self.killed = Some(Killed::Timeout);
                    self.limits.time_is_over();
                }
                return Ok(());
            }
            if ready == 0 {
                self.relay.conclude();
                self.outputs.conclude();
            }
            if !flags[0].is_empty() {
                while let Some(wish) = self.signals.next()? {
                    // A terminal that is stopped (Ctrl-S) must not keep us from ending.
                    if matches!(wish, Wish::End(_) | Wish::EndAtOnce(_)) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn left_until(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}
