//! Traces and metrics of one run or session, where its caller's environment says where they go (TEL-1).
//!
//! It hears what the audit log has, and nothing else. No failure here may change what becomes of a run; a wrong setting is told once.

use crate::caller::Caller;
use palisade_record::metrics::Metrics;
use palisade_record::{Event, EventKind, RunReport, SessionClaimed, SpanContext};
use palisade_telemetry::{Exporter, Settings, Tracer, TracerOptions, now};
use std::ffi::{OsStr, OsString};

/// Until a prepared sandbox is claimed, as few things happen in it as a start has.
const MAX_KEPT: usize = 64;

/// What traces and metrics are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traced {
    Run,
    Session,
    /// It becomes a session when somebody claims it. Of one that nobody claims nothing is sent.
    Prepared,
}

#[derive(Debug)]
pub(crate) struct Telemetry {
    exporter: Exporter,
    /// None: no traces are wanted, or the caller's trace is not sampled.
    tracer: Option<Tracer>,
    state: Option<String>,
    is_session: bool,
    began: u64,
    /// While nobody has it.
    unclaimed: Option<Unclaimed>,
}

/// A prepared sandbox: whose trace it belongs to is said when it is claimed.
#[derive(Debug)]
struct Unclaimed {
    session: String,
    caller: Option<SpanContext>,
    /// They describe the session.
    events: Vec<Event>,
}

/// The spans that a sandbox has to know about.
#[derive(Clone, Debug)]
pub(crate) struct SpanInside {
    /// Of the command, or of the session.
    context: SpanContext,
    state: Option<String>,
}

impl Telemetry {
    /// None: nothing is sent. `tell` gets what is wrong with the settings.
    pub(crate) fn of(
        caller: &Caller,
        (session, traced): (&str, Traced),
        tell: &mut dyn FnMut(&str),
    ) -> Option<Self> {
        let variable = |name: &str| {
            let value = caller.facts.env.get(OsStr::new(name))?;
            value.to_str().map(str::to_owned)
        };
        let settings = match Settings::of(&variable) {
            Ok(settings) => settings?,
            Err(error) => {
                tell(&error.to_string());
                return None;
            }
        };
        let parent = variable(SpanContext::VARIABLE).and_then(|text| SpanContext::parse(&text));
        let state = variable(SpanContext::STATE_VARIABLE)
            .filter(|state| parent.is_some() && SpanContext::is_state(state));
        let is_session = traced != Traced::Run;
        let began = now();
        let unclaimed = (traced == Traced::Prepared).then(|| Unclaimed {
            session: session.to_owned(),
            caller: parent,
            events: Vec::new(),
        });
        let environment = caller.facts.env.iter();
        let environment = environment.map(|(name, value)| (name.clone(), value.clone()));
        let exporter = Exporter::new(settings, environment);
        let mut telemetry = Self { exporter, tracer: None, state, is_session, began, unclaimed };
        if telemetry.unclaimed.is_none() {
            telemetry.trace(session.to_owned(), parent);
        }
        Some(telemetry)
    }

    /// Whether spans below this caller's are sent.
    fn is_wanted(&self, caller: Option<&SpanContext>) -> bool {
        let has_traces = self.exporter.settings().has_traces();
        has_traces && caller.is_none_or(SpanContext::is_sampled)
    }

    fn trace(&mut self, session: String, caller: Option<SpanContext>) {
        self.tracer = self.is_wanted(caller.as_ref()).then(|| {
            Tracer::new(TracerOptions {
                session,
                caller,
                state: self.state.clone(),
                is_session: self.is_session,
                shows_commands: self.exporter.settings().shows_commands(),
                began: self.began,
            })
        });
    }

    /// The session begins now: what was before was for nobody.
    fn claimed(&mut self, unclaimed: Unclaimed, claim: &SessionClaimed) {
        self.began = now();
        if claim.traceparent.is_some() {
            self.state.clone_from(&claim.tracestate);
        }
        self.trace(unclaimed.session, claim.traceparent.or(unclaimed.caller));
        if let Some(tracer) = &mut self.tracer {
            for event in &unclaimed.events {
                // The spans of a start that nobody waited for.
                drop(tracer.hear(event));
            }
        }
    }

    /// None: what the caller named goes through.
    pub(crate) fn inside(&self) -> Option<SpanInside> {
        let tracer = self.tracer.as_ref()?;
        let context = if self.is_session { tracer.context() } else { tracer.command_context() };
        Some(SpanInside { context, state: self.state.clone() })
    }

    /// The session's span, for its further commands.
    pub(crate) fn session_span(&self) -> Option<SpanContext> {
        if let Some(Unclaimed { session, caller, .. }) = &self.unclaimed {
            // Until the claim names another caller.
            let caller = caller.as_ref();
            return self.is_wanted(caller).then(|| SpanContext::of_run(session, caller));
        }
        self.tracer.as_ref().filter(|_| self.is_session).map(Tracer::context)
    }

    pub(crate) fn hear(&mut self, events: &[Event]) {
        for event in events {
            self.hear_one(event);
        }
        // The next event of a session may be hours away.
        let is_end = |event: &Event| matches!(event.kind, EventKind::SessionExecEnded(_));
        if self.is_session && events.iter().any(is_end) {
            self.exporter.flush();
        }
    }

    fn hear_one(&mut self, event: &Event) {
        match (&event.kind, self.unclaimed.take()) {
            (_, None) => {}
            (EventKind::SessionClaimed(claim), Some(unclaimed)) => self.claimed(unclaimed, claim),
            (_, Some(mut unclaimed)) => {
                if unclaimed.events.len() < MAX_KEPT {
                    unclaimed.events.push(event.clone());
                }
                self.unclaimed = Some(unclaimed);
                return;
            }
        }
        for span in self.tracer.iter_mut().flat_map(|tracer| tracer.hear(event)) {
            self.exporter.span(span);
        }
    }

    /// Sends the rest, and says what was lost.
    pub(crate) fn finish(
        mut self,
        report: &RunReport,
        metrics: &mut Metrics,
        tell: &mut dyn FnMut(&str),
    ) {
        if self.unclaimed.is_some() {
            return;
        }
        let end = now();
        if let Some(tracer) = self.tracer {
            self.exporter.span(tracer.finish(report.outcome, end));
        }
        let is_told = self.exporter.settings().is_told();
        let loss = self.exporter.finish(metrics, (self.began, end));
        let lost = loss.queue_full.saturating_add(loss.not_sent);
        if lost > 0 {
            metrics.telemetry_lost(loss.queue_full, loss.not_sent);
        }
        if let Some(why) = loss.why.filter(|_| is_told) {
            tell(&format!("OTLP: {lost} spans or sets of metrics were not sent: {why}"));
        }
    }
}

impl SpanInside {
    /// In place of the caller's, whatever the policy passes on: a span is no secret of the caller's.
    pub(crate) fn put(&self, env: &mut Vec<(OsString, OsString)>) {
        env.retain(|(name, _)| {
            name != SpanContext::VARIABLE && name != SpanContext::STATE_VARIABLE
        });
        let variables = self.context.variables(self.state.clone());
        env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
