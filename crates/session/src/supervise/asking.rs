//! The gate's part of a turn: what was touched and answered, and the terminal while a question stands in it.

use super::Watch;
use crate::error::SessionError;
use crate::gate::{Gate, Polled, Stage};
use rustix::event::PollFlags;

impl Watch<'_> {
    /// What was asked and answered in this turn, and what it leads to.
    pub(super) fn serve_gate(
        &mut self,
        polled: Polled,
        ready: &[PollFlags],
    ) -> Result<(), SessionError> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        gate.serve(polled, ready, self.terminal.as_ref());
        gate.act(&self.running, self.terminal.as_ref(), &mut |kind| self.unlogged.push(kind))?;
        let stage = match &mut self.terminal {
            Some(terminal) if terminal.is_alone() && !self.relay.is_full_screen() => {
                // Also before the command's exec, which may be what is asked about.
                if gate.has_questions() {
                    terminal.take()?;
                }
                if terminal.may_read() && !self.relay.owes_output() {
                    Stage::Line
                } else {
                    Stage::Later
                }
            }
            Some(terminal) if !terminal.only_shows() => Stage::Taken,
            Some(_) | None => Stage::Apart,
        };
        gate.show(self.terminal.as_ref(), stage);
        Ok(())
    }

    /// Keys that are typed while a question stands in the terminal.
    pub(super) fn hear_keys(&mut self) {
        let (Some(terminal), Some(gate)) = (&self.terminal, &mut self.gate) else { return };
        let mut keys = [0; 256];
        let Ok(count) = rustix::io::read(terminal.input(), &mut keys) else { return };
        let passed = gate.pressed(&keys[..count]);
        if let Some(pty) = self.running.pty() {
            self.relay.type_in(&passed, pty);
        }
    }

    pub(super) fn tell_notices(&mut self, tell: &mut dyn FnMut(&str)) {
        let notices = self.gate.as_mut().map(Gate::take_notices).unwrap_or_default();
        notices.iter().for_each(|notice| tell(notice));
    }
}
