//! The audit events of one run, in the order of its states (LIFE-1).
//!
//! Events are written in batches, so that a start costs few writes. The caller of `commit` decides what must not
//! continue unless it was written. A run that is recorded as created must always be recorded as destroyed.

use crate::app_dirs::{self, AppDirs};
use crate::error::Result;
use crate::telemetry::Telemetry;
use crate::trail::Trail;
use palisade_record::metrics::Metrics;
use palisade_record::{AuditLog, Destroyed, Event, EventKind, Failure, RecordError, State};
use palisade_sys::fault;

#[derive(Debug)]
pub(crate) struct Journal {
    log: AuditLog,
    sandbox_id: String,
    state: State,
    pending: Vec<Event>,
    metrics: Metrics,
    /// Whether this run's creation is in the log.
    created: bool,
    trail: Trail,
    telemetry: Option<Telemetry>,
}

impl Journal {
    pub(crate) fn open(places: &AppDirs, sandbox_id: &str) -> Result<Self> {
        let head = places.audit_head();
        app_dirs::make_private_dir(head.parent().unwrap_or(&places.state))?;
        Ok(Self {
            log: AuditLog::open(&places.audit_log(), &head)?,
            sandbox_id: sandbox_id.to_owned(),
            state: State::Created,
            pending: Vec::new(),
            metrics: Metrics::default(),
            created: false,
            trail: Trail::default(),
            telemetry: None,
        })
    }

    /// Adds to what is recorded about a session that others run, or that is over.
    pub(crate) fn add_later(
        places: &AppDirs,
        (session, state): (&str, State),
        kind: EventKind,
    ) -> Result<()> {
        let mut journal = Self::open(places, session)?;
        journal.state = state;
        journal.add(kind);
        Ok(journal.commit()?)
    }

    /// For the end of a run whose own process was killed: its beginning is in the log already, or was lost with it.
    pub(crate) fn resumed(mut self) -> Self {
        self.created = true;
        self
    }

    /// For what happens to a sandbox from outside, after it was set up.
    pub(crate) fn in_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Makes spans of what is recorded from here on.
    pub(crate) fn set_telemetry(&mut self, telemetry: Option<Telemetry>) {
        self.telemetry = telemetry;
    }

    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }

    /// Keeps the log open, for a process that is about to lose the right to open files.
    pub(crate) fn pinned(mut self) -> Result<Self> {
        self.log = self.log.pinned()?;
        Ok(self)
    }

    pub(crate) fn advance(&mut self, to: State) -> Result<()> {
        self.state = self.state.advance(to).map_err(RecordError::from)?;
        Ok(())
    }

    /// Advances to the end through `Error`, from any state. Must be called after everything of the sandbox has ended.
    pub(crate) fn fail(&mut self, failure: Failure, destroyed: Destroyed) -> Result<()> {
        if !matches!(self.state, State::Completed | State::Timeout | State::Error | State::Cleanup)
        {
            self.advance(State::Error)?;
        }
        self.add(EventKind::SandboxFailed(failure));
        if self.created {
            if self.state != State::Cleanup {
                self.advance(State::Cleanup)?;
            }
            self.add(EventKind::SandboxDestroyed(destroyed));
        }
        Ok(self.commit()?)
    }

    /// The metrics of this run's recorded events, and what makes spans of them.
    pub(crate) fn into_metrics(self) -> (Metrics, Option<Telemetry>) {
        (self.metrics, self.telemetry)
    }

    pub(crate) fn add(&mut self, kind: EventKind) {
        self.pending.push(Event::new(&self.sandbox_id, self.state, kind));
    }

    pub(crate) fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        kinds.into_iter().for_each(|kind| self.add(kind));
        self.commit()
    }

    /// Something about a sandbox that is long over.
    pub(crate) fn record_afterwards(mut self, kind: EventKind) -> Result<()> {
        self.state = State::Cleanup;
        self.add(kind);
        Ok(self.commit()?)
    }

    /// The first and the last of what was recorded.
    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    pub(crate) fn commit(&mut self) -> Result<(), RecordError> {
        let events = std::mem::take(&mut self.pending);
        let first = events.first().map_or("nothing", |event| event.kind.name());
        fault::point("recording", first);
        self.log.append_batch(&events)?;
        fault::point("recorded", first);
        for event in &events {
            self.metrics.hear(&event.kind);
            self.trail.add(event);
        }
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.hear(&events);
        }
        self.created |=
            events.iter().any(|event| matches!(event.kind, EventKind::SandboxCreated(_)));
        Ok(())
    }
}
