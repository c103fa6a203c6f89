//! The audit events of one run, in the order of its states (LIFE-1).
//!
//! Events are written in batches, so that a start costs few writes; the caller of `commit` decides
//! what must not go on unless it was written. What is recorded as created is recorded as destroyed,
//! however the run went.

use crate::app_dirs::{self, AppDirs};
use crate::error::SessionError;
use palisade_record::metrics::Metrics;
use palisade_record::{AuditLog, Destroyed, Event, EventKind, Failure, RecordError, State};

#[derive(Debug)]
pub(crate) struct Journal {
    log: AuditLog,
    sandbox_id: String,
    state: State,
    pending: Vec<Event>,
    metrics: Metrics,
    /// Whether the log holds this run's creation.
    created: bool,
}

impl Journal {
    pub(crate) fn open(places: &AppDirs, sandbox_id: &str) -> Result<Self, SessionError> {
        let head = places.audit_head();
        app_dirs::make_private_dir(head.parent().unwrap_or(&places.state))?;
        Ok(Self {
            log: AuditLog::open(&places.audit_log(), &head)?,
            sandbox_id: sandbox_id.to_owned(),
            state: State::Created,
            pending: Vec::new(),
            metrics: Metrics::default(),
            created: false,
        })
    }

    /// For a process that is about to lose the right to open files.
    pub(crate) fn pinned(mut self) -> Result<Self, SessionError> {
        self.log = self.log.pinned()?;
        Ok(self)
    }

    pub(crate) fn advance(&mut self, to: State) -> Result<(), SessionError> {
        self.state = self.state.advance(to).map_err(RecordError::from)?;
        Ok(())
    }

    /// Goes to the end by way of `Error`, from wherever the run had come. To be called when nothing of
    /// the sandbox is left.
    pub(crate) fn fail(
        &mut self,
        failure: Failure,
        destroyed: Destroyed,
    ) -> Result<(), SessionError> {
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

    /// What the recorded events of this run count for.
    pub(crate) fn into_metrics(self) -> Metrics {
        self.metrics
    }

    pub(crate) fn add(&mut self, kind: EventKind) {
        self.pending.push(Event::new(&self.sandbox_id, self.state, kind));
    }

    pub(crate) fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        kinds.into_iter().for_each(|kind| self.add(kind));
        self.commit()
    }

    pub(crate) fn commit(&mut self) -> Result<(), RecordError> {
        let events = std::mem::take(&mut self.pending);
        self.log.append_batch(&events)?;
        events.iter().for_each(|event| self.metrics.hear(&event.kind));
        self.created |=
            events.iter().any(|event| matches!(event.kind, EventKind::SandboxCreated(_)));
        Ok(())
    }
}
