//! Traces and metrics of one run or session, where its caller's environment says where they go (TEL-1).
//!
//! It hears what the audit log has, and nothing else. No failure here may change what becomes of a run; a wrong setting is told once.

use crate::caller::Caller;
use palisade_record::metrics::Metrics;
use palisade_record::{Event, EventKind, RunReport, SpanContext};
use palisade_telemetry::{Exporter, Settings, Tracer, TracerOptions, now};
use std::ffi::{OsStr, OsString};

#[derive(Debug)]
pub(crate) struct Telemetry {
    exporter: Exporter,
    /// None: no traces are wanted, or the caller's trace is not sampled.
    tracer: Option<Tracer>,
    state: Option<String>,
    is_session: bool,
    began: u64,
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
        (session, is_session): (&str, bool),
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
        let is_wanted = settings.has_traces() && parent.is_none_or(|it| it.is_sampled());
        let began = now();
        let tracer = is_wanted.then(|| {
            Tracer::new(TracerOptions {
                session: session.to_owned(),
                caller: parent,
                state: state.clone(),
                is_session,
                shows_commands: settings.shows_commands(),
                began,
            })
        });
        let environment = caller.facts.env.iter();
        let environment = environment.map(|(name, value)| (name.clone(), value.clone()));
        let exporter = Exporter::new(settings, environment);
        Some(Self { exporter, tracer, state, is_session, began })
    }

    /// None: what the caller named goes through.
    pub(crate) fn inside(&self) -> Option<SpanInside> {
        let tracer = self.tracer.as_ref()?;
        let context = if self.is_session { tracer.context() } else { tracer.command_context() };
        Some(SpanInside { context, state: self.state.clone() })
    }

    /// The session's span, for its further commands.
    pub(crate) fn session_span(&self) -> Option<SpanContext> {
        self.tracer.as_ref().filter(|_| self.is_session).map(Tracer::context)
    }

    pub(crate) fn hear(&mut self, events: &[Event]) {
        let Some(tracer) = &mut self.tracer else { return };
        for event in events {
            for span in tracer.hear(event) {
                self.exporter.span(span);
            }
        }
        // The next event of a session may be hours away.
        let is_end = |event: &Event| matches!(event.kind, EventKind::SessionExecEnded(_));
        if self.is_session && events.iter().any(is_end) {
            self.exporter.flush();
        }
    }

    /// Sends the rest, and says what was lost.
    pub(crate) fn finish(
        mut self,
        report: &RunReport,
        metrics: &mut Metrics,
        tell: &mut dyn FnMut(&str),
    ) {
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
        env.push((SpanContext::VARIABLE.into(), self.context.to_string().into()));
        if let Some(state) = &self.state {
            env.push((SpanContext::STATE_VARIABLE.into(), state.into()));
        }
    }
}
