//! What the process's own client is told, message by message, from the start of a sandbox to its end.

use crate::control::interface::{Event, FromSupervisor};
use crate::egress::EgressControl;
use crate::error::{Result, SupervisorError};
use crate::escape::FailedEnd;
use crate::gate::Gate;
use crate::signals::Signals;
use crate::supervisor::sources::DEATH_OF_INIT;
use crate::supervisor::{Clock, ExitState, Observers, OwnClient, Phase, Supervisor, Turn, sources};
use palisade_launch::{ExitCause, FromInit, RunUsage};
use palisade_sys::fault;

impl Supervisor<'_> {
    /// The next message, as a client at a socket gets it: the sandbox that was asked for is there
    /// ([`Response::Created`](crate::control::interface::Response::Created)), then events. None when nothing of the
    /// sandbox is left. After an error that comes before that response, nothing of a command ran.
    pub fn next_message(&mut self, observers: Observers<'_>) -> Result<Option<FromSupervisor>> {
        let Observers { log, tell } = observers;
        loop {
            if let Some(message) = self.control.outbox.next() {
                return Ok(Some(message));
            }
            if self.phase == Phase::Gone {
                return Ok(None);
            }
            // What came before the start as well.
            if self.is_started() && !self.unlogged.is_empty() {
                self.mark_events();
                log(self.take_unlogged())?;
            }
            let turn = self.turn();
            if turn.is_err() && self.is_started() {
                self.sum_up();
                // What led to it is what somebody will look for.
                log(self.take_unlogged())?;
            }
            let turn = turn?;
            self.tell_notices(tell);
            self.hear_init(turn)?;
        }
    }

    fn turn(&mut self) -> Result<Turn> {
        sources::turn(self)?;
        Ok(std::mem::replace(&mut self.turn, Turn::Nothing))
    }

    /// What pid 1 says, or that it is gone.
    fn hear_init(&mut self, turn: Turn) -> Result<()> {
        let message = match turn {
            Turn::Message(message) => message,
            Turn::Gone if self.is_started() => {
                self.enter(Phase::Gone);
                return Ok(());
            }
            Turn::Gone => return Err(self.why_not_started()),
            Turn::Nothing => return Ok(()),
        };
        match message {
            FromInit::PrivateHome { .. }
            | FromInit::Ground { .. }
            | FromInit::OwnFiles { .. }
            | FromInit::NetworkCounters => Ok(()),
            FromInit::Stopped(signal) if self.is_started() => {
                for command in self.control.commands.ids() {
                    self.control.outbox.emit(Event::CommandStopped { command, signal });
                }
                self.suspend()
            }
            FromInit::Exited(cause) if self.is_started() => self.hear_exit(cause),
            _ if self.is_started() => Ok(()),
            FromInit::Terminal => self.accept_pty(),
            FromInit::Network(_) => self.open_way_out(),
            FromInit::Checked(seen) => {
                self.checked = seen;
                Ok(())
            }
            FromInit::Started => self.begin(),
            FromInit::Failed(error) => Err(self.launch_failed(error)?),
            FromInit::Stopped(_) | FromInit::Exited(_) => Err(self.why_not_started()),
        }
    }

    /// Pid 1 has ended everybody inside.
    fn hear_exit(&mut self, cause: ExitCause) -> Result<()> {
        self.ending = Some(cause);
        self.enter(Phase::Leaving);
        self.clock.deadlines.forget();
        self.clock.limits.forget();
        if self.running.spawner().is_none() {
            for command in self.control.commands.ids() {
                self.control.commands.remove(command);
                self.control.outbox.emit(Event::CommandExited { command, cause });
            }
        }
        // Nobody is left to serve; the sandbox's mounts go with the last of the two. What the broker said so far tells
        // whether it has something to finish.
        self.hear_broker(usize::MAX)?;
        self.running.dismiss_helpers();
        Ok(())
    }

    /// To be called when [`Self::next_message`] has said that nothing is left. Gives the signals back to who waits after
    /// that.
    pub fn finish(
        mut self,
        observers: Observers<'_>,
    ) -> Result<(ExitState, Signals), Box<FailedEnd>> {
        let Observers { log, tell } = observers;
        let usage = match self.settle(Observers { log: &mut *log, tell }) {
            Ok(usage) => usage,
            Err(error) => {
                self.sum_up();
                let (report, incident) = self.take_escape();
                // What led to it is what somebody will look for. If it is the log that failed, that is the error.
                let _ = log(self.take_unlogged());
                return Err(Box::new(FailedEnd { error, report, incident }));
            }
        };
        let private_home = self.running.take_private_home();
        let network_counters = self.running.take_network_counters();
        let group = self.running.take_group();
        let Self { ending, killed, incidents, escape, asking, mut control, display, .. } = self;
        let OwnClient { signals, forwarded, forwarded_beyond, .. } = self.own_client;
        let Clock { limits, .. } = self.clock;
        let mut output = display.outputs.end();
        output.capped.extend(display.relay.capped());
        let mut tally = match limits.end(group, ending, &usage, &output.capped) {
            Ok(tally) => tally,
            Err(error) => {
                let (report, incident) = escape.end();
                return Err(Box::new(FailedEnd { error, report, incident }));
            }
        };
        tally.take_untold().into_iter().for_each(|event| control.outbox.emit(event));
        let ended = ExitState {
            ending,
            killed,
            forwarded,
            forwarded_beyond,
            tally,
            incidents,
            escape,
            touched: self.gate.map(Gate::end).unwrap_or_default(),
            private_home,
            network_counters,
            egress_summary: self.egress.map(EgressControl::end),
            unasked: asking.unasked(),
            notes: asking.into_notes(),
            output,
        };
        Ok((ended, signals))
    }

    /// What is left to hear and to record when nobody is there any more.
    fn settle(&mut self, observers: Observers<'_>) -> Result<RunUsage> {
        let Observers { log, tell } = observers;
        self.drain()?;
        self.control.held.conclude(&mut self.control.outbox);
        // What was told before the last of them died; nobody is left to tell more.
        self.hear_broker(usize::MAX)?;
        self.close_way_out();
        self.record_lost_commands();
        self.sum_up();
        // What a group refused since the last look.
        self.clock.limits.hear(&self.running)?;
        sources::tell_reached(self);
        // It may have ended before we could end it.
        self.respond()?;
        if fault::fails("settling the end") {
            return Err(SupervisorError::HelperDied(DEATH_OF_INIT));
        }
        if !self.unlogged.is_empty() {
            log(self.take_unlogged())?;
        }
        self.end_recordings();
        if let Some(terminal) = &mut self.display.terminal {
            terminal.give_back();
        }
        for note in self.display.notes.drain(..) {
            tell(&note);
        }
        self.check_that_nobody_died(self.ending)?;
        self.tell_of_questions();
        Ok(self.running.wait()?)
    }

    /// What was only counted so far comes into the log: nothing more is counted.
    fn sum_up(&mut self) {
        self.unlogged.extend(self.incidents.take_sums());
        self.unlogged.extend(self.gate.as_mut().map(Gate::take_sums).unwrap_or_default());
    }
}
