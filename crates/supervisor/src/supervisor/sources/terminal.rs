//! The caller's terminal and the command's: bytes between them, and keys that are for a question.

use super::EventSource;
use crate::asking::{INTERRUPT, Read, Typed};
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::reading::read_now;
use crate::relay::Ends;
use crate::signals::Wish;
use crate::supervisor::{Display, Supervisor, ends};
use crate::terminal::HostTerminal;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How often to look whether the terminal is ours by now. Shells tell a stopped job that it comes to
/// the foreground, and a running one not; nor does a pager tell when it is done.
const TERMINAL_CHECK: Duration = Duration::from_millis(200);
/// Keys in the poll set, beside those of the relay.
const KEYS: usize = 10;
const PANEL_OUTPUT: usize = 11;

pub(super) struct Terminal;

impl EventSource for Terminal {
    /// Not before the terminal is raw is anything relayed: a cooked one would end every line with a second CR.
    fn prepare(&self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        let is_started = supervisor.is_started();
        match (&mut supervisor.display.terminal, supervisor.running.pty()) {
            (Some(terminal), Some(_)) if is_started => terminal.take(),
            _ => Ok(()),
        }
    }

    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(ends) = supervisor.relayed_ends() {
            supervisor.display.relay.register(&ends, set);
        }
        let Some(terminal) =
            supervisor.display.terminal.as_ref().filter(|_| !supervisor.display.is_hung_up)
        else {
            return;
        };
        if supervisor.asking.wants_keys() {
            set.add(KEYS, terminal.input(), PollFlags::IN);
        }
        if terminal.owes_cover() {
            set.add(PANEL_OUTPUT, terminal.output(), PollFlags::OUT);
        }
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        let is_awaited = supervisor.running.pty().is_some()
            && supervisor.display.terminal.as_ref().is_some_and(HostTerminal::awaits_keys);
        let look = is_awaited.then(|| Instant::now() + TERMINAL_CHECK);
        [look, supervisor.display.relay.next_deadline()].into_iter().flatten().min()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.relay_bytes(ready)?;
        if !ready.at(KEYS).is_empty() {
            supervisor.hear_keys();
        }
        match supervisor.display.relay.lost_terminal() {
            true => supervisor.obey(Wish::End(Signal::HUP)),
            false => Ok(()),
        }
    }
}

impl Supervisor<'_> {
    /// While a question is open in the terminal, keys are the question's.
    fn relayed_ends(&self) -> Option<Ends<'_>> {
        let ends = ends(self.display.terminal.as_ref(), &self.running);
        let ends = ends.filter(|_| self.is_started())?;
        let input = ends.input.filter(|_| !self.asking.wants_keys());
        Some(Ends { input, ..ends })
    }

    fn relay_bytes(&mut self, ready: &Ready) -> Result<()> {
        let is_asking = self.asking.wants_keys();
        let is_started = self.is_started();
        let Display { terminal, relay, .. } = &mut self.display;
        let Some(ends) = ends(terminal.as_ref(), &self.running).filter(|_| is_started) else {
            return Ok(());
        };
        let input = ends.input.filter(|_| !is_asking);
        relay.handle(ready, &Ends { input, ..ends });
        if self.display.relay.insists_on_interrupting() && self.command_waits_for_lines() {
            self.obey(Wish::EndAtOnce(Signal::INT))?;
        }
        Ok(())
    }

    /// Keys that are typed while a question is open in the terminal.
    fn hear_keys(&mut self) {
        let Some(terminal) = &self.display.terminal else { return };
        let mut keys = [0; 256];
        let count = match read_now(terminal.input(), &mut keys) {
            // It hung up. A shell may have told everybody of that, or nobody (nohup).
            Ok(0) | Err(Errno::IO) => {
                self.display.is_hung_up = true;
                return self.display.relay.lose_terminal();
            }
            Ok(count) => count,
            Err(_) => return,
        };
        let Read { keys, replies } = self.asking.tell_apart(&keys[..count]);
        if let Some(pty) = self.running.pty().filter(|_| !replies.is_empty()) {
            self.display.relay.type_in(&replies, pty);
        }
        if keys.is_empty() {
            return;
        }
        match (self.asking.pressed(&keys), self.running.pty()) {
            (Typed::ForThePanel, _) | (_, None) => {}
            (Typed::ForTheCommand(keys), Some(pty)) => self.display.relay.type_in(&keys, pty),
            (Typed::Interrupt, Some(pty)) if interrupt(pty) => {}
            (Typed::Interrupt, Some(pty)) => self.display.relay.type_in(&keys, pty),
        }
        self.carry_out_answers();
    }
}

/// Sends the signal that Ctrl-C stands for, if it does: it is there before the answer, so that the call which waits returns
/// into it. The key itself could come later, and the command would have ended of the answer.
fn interrupt(pty: BorrowedFd<'_>) -> bool {
    let is_signal = rustix::termios::tcgetattr(pty).is_ok_and(|modes| {
        modes.local_modes.contains(LocalModes::ISIG)
            && modes.special_codes[SpecialCodeIndex::VINTR] == INTERRUPT
    });
    is_signal && palisade_sys::tty::interrupt(pty).is_ok()
}
