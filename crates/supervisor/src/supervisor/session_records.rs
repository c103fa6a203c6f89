//! What the audit log has of a session besides what every run has: its commands, and its time (AUD-2, LIFE-1). Every command
//! is recorded: somebody outside starts them, so that they are no flood from inside.

use crate::expiry::Expired;
use crate::supervisor::{Killed, Supervisor};
use palisade_launch::{CommandId, ExitCause};
use palisade_record::{
    EndingCause, EventKind, SessionEnding, SessionExec, SessionExecEnded, SessionExtended,
};
use std::time::Duration;

impl Supervisor<'_> {
    /// Its exec succeeded.
    pub(crate) fn record_exec(&mut self, command: CommandId, pid: u32) {
        let Some(digest) = self.control.commands.digest(command).cloned() else { return };
        let traceparent = self.control.commands.caller(command);
        let exec = SessionExec { command: command.0, digest, pid, traceparent };
        self.unlogged.push(EventKind::SessionExec(Box::new(exec)));
    }

    /// To be called while the command is still known.
    pub(crate) fn record_exec_end(
        &mut self,
        command: CommandId,
        cause: Option<ExitCause>,
        failure: Option<String>,
    ) {
        let Some(time) = self.control.commands.running_for(command) else { return };
        let (exit_code, signal) = match cause {
            Some(ExitCause::Code(code)) => (Some(code), None),
            Some(ExitCause::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let duration_ms = milliseconds(time);
        let command = command.0;
        let ended = SessionExecEnded { command, exit_code, signal, failure, duration_ms };
        self.unlogged.push(EventKind::SessionExecEnded(Box::new(ended)));
    }

    /// The sandbox is gone, and with it those whose end nobody told.
    pub(super) fn record_lost_commands(&mut self) {
        if self.running.spawner().is_some() {
            for command in self.control.commands.ids() {
                self.record_exec_end(command, None, None);
            }
        }
    }

    pub(super) fn record_extension(&mut self, time_ms: u64) {
        self.unlogged.push(EventKind::SessionExtended(SessionExtended { time_ms }));
    }

    pub(super) fn record_ending(&mut self) {
        if self.running.spawner().is_none() {
            return;
        }
        let cause = match self.killed {
            Some(Killed::Expired(Expired::TimeToLive) | Killed::Timeout) => EndingCause::TimeToLive,
            Some(Killed::Expired(Expired::Idle)) => EndingCause::Idle,
            _ => EndingCause::Requested,
        };
        self.unlogged.push(EventKind::SessionEnding(SessionEnding { cause }));
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
