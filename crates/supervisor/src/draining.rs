//! The end of a run: what the inside wrote reaches the terminal and the readers of pipes, though nobody is left
//! who wrote it.

use crate::error::Result;
use crate::poll_set::PollSet;
use crate::relay::Ends;
use crate::signals::Wish;
use crate::supervisor::{Killed, Supervisor, ends};
use rustix::event::PollFlags;
use std::time::{Duration, Instant};

/// How long the reader of an output may take nothing, when we ended the run.
const UNREAD: Duration = Duration::from_secs(2);

const SIGNALS: usize = 0;
const PID_1: usize = 1;
const OUTPUTS: usize = 2;
const TERMINAL: usize = 3;

impl Supervisor<'_> {
    /// Shows what the inside wrote before it ended. Once pid 1 is dead nothing more is written, so
    /// the first time nothing is ready is the end.
    pub(crate) fn drain(&mut self) -> Result<()> {
        self.uncover_terminal();
        loop {
            let ends = ends(self.display.terminal.as_ref(), &self.running);
            let ends = ends.map(|ends| Ends { input: None, ..ends });
            if (ends.is_none() || self.display.relay.is_finished())
                && self.display.outputs.is_finished()
            {
                return Ok(());
            }
            let dead = self.running.has_ended()?;
            if dead {
                self.display.outputs.nobody_writes();
            }
            let mut set = PollSet::new();
            set.begin_source(SIGNALS);
            set.add(0, self.own_client.signals.waiting(), PollFlags::IN);
            if !dead {
                set.begin_source(PID_1);
                set.add(0, self.running.pidfd(), PollFlags::IN);
            }
            set.begin_source(OUTPUTS);
            self.display.outputs.register(&mut set);
            if let Some(ends) = &ends {
                set.begin_source(TERMINAL);
                self.display.relay.register(ends, &mut set);
            }
            let is_owed = self.display.relay.owes_output() || self.display.outputs.owes_output();
            let waits = !dead || is_owed;
            let patience = match self.killed {
                _ if !waits => Some(Duration::ZERO),
                // A limit holds, whatever somebody who reads does not read.
                Some(_) => is_owed.then_some(UNREAD),
                None => self.clock.deadlines.whole().map(left_until).filter(|_| is_owed),
            };
            let events = set.wait(patience)?;
            self.display.outputs.handle(&events.of_source(OUTPUTS));
            if let Some(ends) = &ends {
                self.display.relay.handle(&events.of_source(TERMINAL), ends);
            }
            self.display.record();
            if events.is_empty() && waits {
                if self.killed.is_none() {
                    self.killed = Some(Killed::Timeout);
                    self.clock.limits.time_is_over();
                }
                return Ok(());
            }
            if events.is_empty() {
                self.display.relay.conclude();
                self.display.outputs.conclude();
            }
            if !events.of_source(SIGNALS).is_empty() {
                while let Some(wish) = self.own_client.signals.next()? {
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
