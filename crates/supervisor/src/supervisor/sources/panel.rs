//! Questions in the terminal, and answers on their way to the part that asked.

use super::EventSource;
use crate::answers::Answers;
use crate::asking::PanelUse;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::reading::read_now;
use crate::relay::Settled;
use crate::supervisor::Supervisor;
use palisade_ask::Subject;
use std::time::Instant;

pub(super) struct Panel;

impl EventSource for Panel {
    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        supervisor.save_answers();
        supervisor.asking.flush();
        supervisor.tell_of_questions();
        supervisor.show_questions()
    }
}

impl Supervisor<'_> {
    /// Hands answers to those who asked.
    pub(crate) fn carry_out_answers(&mut self) {
        while let Some(decided) = self.asking.next_decided() {
            match &decided.question.subject {
                Subject::File(_) => {
                    if let Some(gate) = &mut self.gate {
                        gate.decided(decided);
                    }
                }
                Subject::Host(_) => {
                    if let Some(egress) = &mut self.egress {
                        egress.decided(decided);
                    }
                }
            }
        }
    }

    /// A client wants the session's answers saved permanently.
    fn save_answers(&mut self) {
        for wish in self.asking.take_saves() {
            let rules = self.gate.as_ref().map(|gate| gate.answered().to_vec());
            let hosts = self.egress.as_ref().map(|egress| egress.answered().to_vec());
            let answers =
                Answers { rules: rules.unwrap_or_default(), hosts: hosts.unwrap_or_default() };
            let saved = self.stores.save(&answers, wish.store);
            self.asking.saved(&wish, saved);
        }
    }

    fn show_questions(&mut self) -> Result<()> {
        let stage = match &mut self.display.terminal {
            Some(terminal) if self.asking.is_elsewhere() && !terminal.only_shows() => {
                PanelUse::Taken
            }
            Some(terminal) if terminal.can_show_panel() => {
                // Also before the command's exec, which may be what is asked about.
                if self.asking.has_questions() {
                    terminal.borrow_for_question()?;
                }
                match terminal.is_raw() {
                    true if terminal.is_covered() || !self.asking.wants_panel() => PanelUse::Panel,
                    true => match self.display.relay.settle(terminal.output(), Instant::now()) {
                        Settled::Yes => PanelUse::Panel,
                        Settled::NotYet => PanelUse::Settling,
                    },
                    // In the background, or the terminal of another session: the panel would come too late, or never.
                    false => PanelUse::Apart,
                }
            }
            Some(terminal) if !terminal.takes_lines() => PanelUse::Taken,
            Some(_) | None => PanelUse::Apart,
        };
        if stage == PanelUse::Panel && !self.asking.wants_keys() && self.asking.has_questions() {
            self.pass_on_typed();
        }
        self.asking.show(self.display.terminal.as_mut(), &mut self.display.relay, stage);
        if let Some(terminal) = self.display.terminal.as_ref()
            && stage != PanelUse::Settling
            && !terminal.is_covered()
        {
            self.display.relay.release(terminal.output());
        }
        if let Some(terminal) =
            self.display.terminal.as_mut().filter(|_| !self.asking.has_questions())
        {
            terminal.return_borrowed();
        }
        Ok(())
    }

    /// What was typed before a question is shown is the command's.
    fn pass_on_typed(&mut self) {
        let (Some(terminal), Some(pty)) = (&self.display.terminal, self.running.pty()) else {
            return;
        };
        let mut keys = [0; 1024];
        if terminal.is_covered() || !self.is_started() {
            return;
        }
        if let Ok(count) = read_now(terminal.input(), &mut keys) {
            self.display.relay.type_in(&keys[..count], pty);
        }
    }

    pub(crate) fn tell_of_questions(&mut self) {
        for event in self.asking.take_events() {
            self.control.outbox.emit(event);
        }
    }

    pub(crate) fn tell_notices(&mut self, tell: &mut dyn FnMut(&str)) {
        let raw = self.display.terminal.as_ref().filter(|terminal| terminal.is_raw());
        let recording = std::mem::take(&mut self.display.notes);
        for notice in self.asking.take_notices().into_iter().chain(recording) {
            match raw {
                // Nobody else ends its lines there.
                Some(terminal) => drop(terminal.write(format!("sandbox: {notice}\r\n").as_bytes())),
                None => tell(&notice),
            }
        }
    }
}
