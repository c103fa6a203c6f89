//! Questions in a turn: what was touched, connected to and answered, and the terminal while a question stands in it.

use super::Watch;
use crate::answers::Answers;
use crate::asking::{INTERRUPT, Read, Stage, Typed};
use crate::egress::WayOut;
use crate::error::SessionError;
use crate::relay::Settled;
use crate::signals::Wish;
use crate::terminal::read_now;
use palisade_ask::Subject;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// How many descriptors of a poll set are whose, in this order; the rest are the desk's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polled {
    keeper: usize,
    egress: usize,
}

impl Watch<'_> {
    pub(super) fn interests_of_questions<'fd>(&'fd self, set: &mut Vec<PollFd<'fd>>) -> Polled {
        let before = set.len();
        if let Some(gate) = &self.gate {
            gate.interests(set);
        }
        let with_keeper = set.len();
        let egress = self.way_out.as_ref().and_then(WayOut::socket);
        set.extend(egress.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        let with_egress = set.len();
        self.asking.interests(set);
        Polled { keeper: with_keeper - before, egress: with_egress - with_keeper }
    }

    /// What was asked and answered in this turn, and what it leads to.
    pub(super) fn serve_questions(
        &mut self,
        polled: Polled,
        ready: &[PollFlags],
    ) -> Result<(), SessionError> {
        let (keeper, rest) = ready.split_at(polled.keeper);
        let (egress, desk) = rest.split_at(polled.egress);
        self.asking.serve(desk);
        self.asking.pass(self.terminal.as_ref());
        // Before anybody joins a question that is answered already.
        self.carry_out_answers();
        let (asking, terminal) = (&mut self.asking, self.terminal.as_ref());
        let unlogged = &mut self.unlogged;
        if let Some(gate) = &mut self.gate {
            gate.serve(keeper, asking, terminal);
            gate.act(&self.running, asking, &mut |kind| unlogged.push(kind))?;
        }
        if let Some(way_out) = &mut self.way_out {
            let heard = match egress.iter().any(|ready| !ready.is_empty()) {
                true => way_out.hear(asking, terminal),
                false => Ok(()),
            };
            // What was told before it went is recorded first.
            way_out.act(asking, &mut |kind| unlogged.push(kind))?;
            heard?;
        }
        self.save_answers();
        self.asking.flush();
        self.show_questions()
    }

    /// Hands answers to those who asked.
    pub(super) fn carry_out_answers(&mut self) {
        while let Some(decided) = self.asking.next_decided() {
            match &decided.question.subject {
                Subject::File(_) => {
                    if let Some(gate) = &mut self.gate {
                        gate.decided(decided);
                    }
                }
                Subject::Host(_) => {
                    if let Some(way_out) = &mut self.way_out {
                        way_out.decided(decided);
                    }
                }
            }
        }
    }

    /// A client wants what was answered for the session kept for good.
    fn save_answers(&mut self) {
        for wish in self.asking.take_saves() {
            let rules = self.gate.as_ref().map(|gate| gate.answered().to_vec());
            let hosts = self.way_out.as_ref().map(|way_out| way_out.answered().to_vec());
            let answers =
                Answers { rules: rules.unwrap_or_default(), hosts: hosts.unwrap_or_default() };
            let saved = self.stores.save(&answers, wish.store);
            self.asking.saved(&wish, saved.map(drop).map_err(|error| error.to_string()));
        }
    }

    fn show_questions(&mut self) -> Result<(), SessionError> {
        let stage = match &mut self.terminal {
            Some(terminal) if self.asking.is_elsewhere() && !terminal.only_shows() => Stage::Taken,
            Some(terminal) if terminal.is_alone() => {
                // Also before the command's exec, which may be what is asked about.
                if self.asking.has_questions() {
                    terminal.take()?;
                }
                match terminal.may_read() {
                    true if terminal.is_covered() || !self.asking.wants_panel() => Stage::Panel,
                    true => match self.relay.settle(terminal.output(), Instant::now()) {
                        Settled::Yes => Stage::Panel,
                        Settled::NotYet => Stage::Settling,
                    },
                    false => Stage::Later,
                }
            }
            Some(terminal) if !terminal.only_shows() => Stage::Taken,
            Some(_) | None => Stage::Apart,
        };
        if stage == Stage::Panel && !self.asking.wants_keys() && self.asking.has_questions() {
            self.pass_on_typed();
        }
        self.asking.show(self.terminal.as_mut(), &mut self.relay, stage);
        if let Some(terminal) = self.terminal.as_ref()
            && stage != Stage::Settling
            && !terminal.is_covered()
        {
            self.relay.release(terminal.output());
        }
        Ok(())
    }

    /// What was typed before a question is shown is the command's.
    fn pass_on_typed(&mut self) {
        let (Some(terminal), Some(pty)) = (&self.terminal, self.running.pty()) else { return };
        let mut keys = [0; 1024];
        if terminal.is_covered() || !self.started {
            return;
        }
        if let Ok(count) = read_now(terminal.input(), &mut keys) {
            self.relay.type_in(&keys[..count], pty);
        }
    }

    /// Keys that are typed while a question is open in the terminal.
    pub(super) fn hear_keys(&mut self) -> Result<(), SessionError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let mut keys = [0; 256];
        let count = match read_now(terminal.input(), &mut keys) {
            // It hung up. A shell may have told everybody of that, or nobody (nohup).
            Ok(0) | Err(Errno::IO) => {
                self.is_hung_up = true;
                return self.obey(Wish::End(Signal::HUP));
            }
            Ok(count) => count,
            Err(_) => return Ok(()),
        };
        let Read { keys, replies } = self.asking.tell_apart(&keys[..count]);
        if let Some(pty) = self.running.pty().filter(|_| !replies.is_empty()) {
            self.relay.type_in(&replies, pty);
        }
        if keys.is_empty() {
            return Ok(());
        }
        match (self.asking.pressed(&keys), self.running.pty()) {
            (Typed::ForThePanel, _) | (_, None) => {}
            (Typed::ForTheCommand(keys), Some(pty)) => self.relay.type_in(&keys, pty),
            (Typed::Interrupt, Some(pty)) if interrupt(pty) => {}
            (Typed::Interrupt, Some(pty)) => self.relay.type_in(&keys, pty),
        }
        self.carry_out_answers();
        Ok(())
    }

    pub(super) fn tell_notices(&mut self, tell: &mut dyn FnMut(&str)) {
        self.asking.take_notices().iter().for_each(|notice| tell(notice));
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
