//! The recording of the one command: what passed to the terminal and to readers in this turn, and what was gathered long enough.

use super::EventSource;
use crate::control::interface::Event;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::{Control, Display, Supervisor};
use palisade_record::cast::CastWriter;
use std::time::Instant;

pub(super) struct Recorder;

impl EventSource for Recorder {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.display.recording.as_ref().and_then(CastWriter::next_flush)
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        supervisor.display.record();
        Ok(())
    }
}

impl Display {
    /// Puts what was shown and typed since the last time into the recording.
    pub(crate) fn record(&mut self) {
        let Some(recording) = &mut self.recording else { return };
        let typed = self.relay.take_typed();
        if !typed.is_empty() {
            recording.input(&typed);
        }
        recording.output(&self.relay.take_shown());
        recording.output(&self.outputs.take_passed());
        recording.flush_if_due(Instant::now());
        self.notes.extend(recording.take_failure());
    }
}

impl Supervisor<'_> {
    /// What stands in recordings as markers, of what is about to be logged: in ours, and in those that clients make of commands
    /// with streams of their own.
    pub(crate) fn mark_events(&mut self) {
        let new =
            self.unlogged.iter().skip(std::mem::replace(&mut self.marked, self.unlogged.len()));
        let Control { held, outbox, .. } = &mut self.control;
        let has_clients = outbox.clients() > 0;
        if self.display.recording.is_none() && !held.is_recording() && !has_clients {
            return;
        }
        for text in new.filter_map(crate::recording::marker) {
            if let Some(recording) = &mut self.display.recording {
                recording.marker(&text);
            }
            held.mark(&text);
            if has_clients {
                outbox.emit(Event::Marked { text });
            }
        }
    }

    /// Nothing more is recorded.
    pub(crate) fn end_recordings(&mut self) {
        self.display.record();
        if let Some(recording) = &mut self.display.recording {
            recording.flush();
            self.display.notes.extend(recording.take_failure());
        }
        self.display.recording = None;
    }
}
