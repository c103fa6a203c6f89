//! From the events of one run or session to spans: what the audit log says happened, as a tree of durations.
//!
//! It only listens. Which span something is follows from the session's id, so that the process that starts a command knows its span without
//! asking. What a command wrote never comes here; its arguments and paths only if the person wants command lines.

use crate::attributes::names;
use crate::model::{Attribute, Nanoseconds, Span, SpanEvent, SpanKind};
use palisade_record::network::{HostDecided, NetworkAttempt};
use palisade_record::{
    AccessDecided, Created, Decision, Event, EventKind, Exited, Outcome, SessionExec,
    SessionExecEnded, SpanContext,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Commands of a session that run at the same time.
const MAX_RUNNING: usize = 1024;

/// The number of the command that a run is for.
const OF_RUN: u64 = 0;

#[derive(Clone, Debug)]
pub struct TracerOptions {
    pub session: String,
    /// The span of the program that called us.
    pub caller: Option<SpanContext>,
    /// What vendors added to it.
    pub state: Option<String>,
    /// Whether it takes commands until it is ended.
    pub is_session: bool,
    pub shows_commands: bool,
    pub began: Nanoseconds,
}

/// Makes the spans of one run or session.
#[derive(Debug)]
pub struct Tracer {
    options: TracerOptions,
    run: SpanContext,
    root: Span,
    /// When planning was over.
    created: Option<Nanoseconds>,
    /// When the command of a run could start.
    started: Option<Nanoseconds>,
    running: BTreeMap<u64, (Nanoseconds, Box<SessionExec>)>,
}

impl Tracer {
    pub fn new(options: TracerOptions) -> Self {
        let run = SpanContext::of_run(&options.session, options.caller.as_ref());
        let name = if options.is_session { "session" } else { "run" };
        let times = (options.began, options.began);
        let mut root = Span::new(name, &run, options.caller.as_ref(), times)
            .with(names::SESSION, options.session.as_str());
        root.state = options.state.clone().unwrap_or_default();
        Self { options, run, root, created: None, started: None, running: BTreeMap::new() }
    }

    /// The span of the run or session.
    pub fn context(&self) -> SpanContext {
        self.run
    }

    /// The span of the command that the run is for.
    pub fn command_context(&self) -> SpanContext {
        self.run.of_command(&self.options.session, OF_RUN)
    }

    /// The spans that this event completes.
    pub fn hear(&mut self, event: &Event) -> Vec<Span> {
        let at = at(event);
        match &event.kind {
            EventKind::SandboxCreated(created) => {
                self.describe(created);
                self.created = Some(at);
                vec![self.part("plan", event, (self.options.began, at))]
            }
            EventKind::SandboxExecuted(_) => {
                self.started = Some(at);
                let since = self.created.unwrap_or(self.options.began);
                vec![self.part("launch", event, (since, at))]
            }
            EventKind::SandboxValidated(validated) => {
                self.note(
                    at,
                    "self-check passed",
                    &[Attribute::new(names::PROBES, validated.probes as u64)],
                );
                Vec::new()
            }
            EventKind::SandboxExited(exited) => self.exited(exited, at).into_iter().collect(),
            EventKind::SandboxFailed(failure) => {
                let kind = word(&failure.kind);
                self.root.add(names::ERROR_TYPE, kind.as_str());
                self.root.fail(&kind);
                Vec::new()
            }
            EventKind::SessionExec(exec) => {
                if self.running.len() < MAX_RUNNING {
                    self.running.insert(exec.command, (at, exec.clone()));
                }
                Vec::new()
            }
            EventKind::SessionExecEnded(ended) => self.exec_ended(ended, at).into_iter().collect(),
            EventKind::AccessDecided(decided) if decided.question.is_some() => {
                vec![self.question(decided, event)]
            }
            EventKind::HostDecided(decided) => vec![self.host_decided(decided, event)],
            EventKind::NetworkAttempt(attempt) => vec![self.attempted(attempt, event)],
            EventKind::ResourceLimitExceeded(limit) => {
                let name = Attribute::new(names::LIMIT, limit.resource.as_str());
                self.note(at, "limit reached", &[name]);
                Vec::new()
            }
            EventKind::EscapeAttempt(attempt) => {
                let indicator = Attribute::new(names::INDICATOR, attempt.id.as_str());
                let severity = Attribute::new(names::SEVERITY, word(&attempt.severity));
                self.note(at, "escape attempt", &[indicator, severity]);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The span of the whole, when everything is over.
    pub fn finish(mut self, outcome: Outcome, end: Nanoseconds) -> Span {
        self.root.end = end.max(self.root.start);
        let outcome_word = word(&outcome);
        self.root.add(names::OUTCOME, outcome_word.as_str());
        let is_error = !matches!(outcome, Outcome::Completed | Outcome::OutputCapped);
        // A session is killed when it is no longer needed.
        let is_usual_end = self.options.is_session && outcome == Outcome::Killed;
        let is_told = self.root.attributes.iter().any(|it| it.name == names::ERROR_TYPE);
        if is_error && !is_usual_end && !is_told {
            self.root.add(names::ERROR_TYPE, outcome_word.as_str());
            self.root.fail(&outcome_word);
        }
        self.root
    }

    fn describe(&mut self, created: &Created) {
        let run = &created.run;
        for (name, value) in [
            (names::LEVEL, &run.sandbox_level),
            (names::MODE, &run.sandbox_mode),
            (names::NETWORK_MODE, &run.network_mode),
        ] {
            self.root.add(name, value.as_str());
        }
        if !self.options.is_session {
            self.root.add(names::TOOL, run.tool.as_str());
        }
    }

    fn exited(&mut self, exited: &Exited, at: Nanoseconds) -> Option<Span> {
        if self.options.is_session {
            return None;
        }
        let context = self.command_context();
        let program = exited.run.tool.as_str();
        let mut span = self.span(program, &context, (self.started?, at));
        span.add(names::EXECUTABLE_NAME, program);
        if self.options.shows_commands {
            span.add(names::COMMAND_LINE, exited.run.command.preview());
        }
        ended(&mut span, exited.exit_code, exited.signal);
        if !matches!(exited.outcome, Outcome::Completed | Outcome::Signalled) {
            let outcome = word(&exited.outcome);
            span.add(names::OUTCOME, outcome.as_str());
            span.fail(&outcome);
        }
        Some(span.of_kind(SpanKind::Client))
    }

    fn exec_ended(&mut self, end: &SessionExecEnded, at: Nanoseconds) -> Option<Span> {
        let known = self.running.remove(&end.command);
        // Both events of a short command are recorded together, so that their times say little.
        let before = at.saturating_sub(end.duration_ms.saturating_mul(1_000_000));
        let (start, exec) =
            known.map_or((before, None), |(start, exec)| (start.min(before), Some(exec)));
        let caller = exec.as_ref().and_then(|exec| exec.traceparent);
        if caller.is_some_and(|caller| !caller.is_sampled()) {
            return None;
        }
        let parent = caller.unwrap_or(self.run);
        let context = parent.of_command(&self.options.session, end.command);
        let preview = exec.as_ref().map(|exec| exec.digest.preview());
        let program = preview.map_or("command", program_of);
        let mut span = Span::new(program, &context, Some(&parent), (start, at))
            .of_kind(SpanKind::Client)
            .with(names::SESSION, self.options.session.as_str())
            .with(names::COMMAND, end.command)
            .with(names::EXECUTABLE_NAME, program);
        if let Some(exec) = &exec {
            span.add(names::PID, u64::from(exec.pid));
            if self.options.shows_commands {
                span.add(names::COMMAND_LINE, exec.digest.preview());
            }
        }
        match &end.failure {
            Some(_) => {
                span.add(names::ERROR_TYPE, "not-started");
                span.fail("not started");
            }
            None => ended(&mut span, end.exit_code, end.signal),
        }
        Some(span)
    }

    fn question(&self, decided: &AccessDecided, event: &Event) -> Span {
        let mut span = self.waited("question", decided.latency_us, event);
        span.add(names::ACCESS, decided.access.as_str());
        if self.options.shows_commands {
            span.add(names::FILE_PATH, decided.path.as_str());
        }
        say_decision(&mut span, decided.decision, &decided.source, decided.question);
        span
    }

    fn host_decided(&self, decided: &HostDecided, event: &Event) -> Span {
        let name = if decided.question.is_some() { "question" } else { "host decision" };
        let mut span = self.waited(name, decided.latency_us, event);
        span.add(names::SERVER_ADDRESS, decided.host.as_str());
        span.add(names::SERVER_PORT, u64::from(decided.port));
        say_decision(&mut span, decided.decision, &decided.source, decided.question);
        span
    }

    fn attempted(&self, attempt: &NetworkAttempt, event: &Event) -> Span {
        let mut span = self.waited("network request", 0, event);
        span.add(names::SERVER_ADDRESS, attempt.host.as_str());
        span.add(names::SERVER_PORT, u64::from(attempt.port));
        let verdict = word(&attempt.action);
        span.add(names::VERDICT, verdict.as_str());
        if attempt.count > 1 {
            span.add(names::COUNT, attempt.count);
        }
        if !attempt.action.is_allowed() {
            span.add(names::ERROR_TYPE, verdict.as_str());
            span.fail(&verdict);
        }
        span
    }

    /// A span that ends with its event.
    fn waited(&self, name: &str, latency_us: u64, event: &Event) -> Span {
        let at = at(event);
        self.part(name, event, (at.saturating_sub(latency_us.saturating_mul(1000)), at))
    }

    /// Below the command of a run; which command of a session it was is not known.
    fn part(&self, name: &str, event: &Event, times: (Nanoseconds, Nanoseconds)) -> Span {
        let is_of_command = !self.options.is_session && self.started.is_some() && name != "launch";
        let parent = if is_of_command { self.command_context() } else { self.run };
        let context = parent.child(&format!("{} {name} {}", self.options.session, event.event_id));
        let mut span = Span::new(name, &context, Some(&parent), times);
        span.state = self.root.state.clone();
        span.with(names::SESSION, self.options.session.as_str())
    }

    fn span(&self, name: &str, context: &SpanContext, times: (Nanoseconds, Nanoseconds)) -> Span {
        let mut span = Span::new(name, context, Some(&self.run), times);
        span.state = self.root.state.clone();
        span.with(names::SESSION, self.options.session.as_str())
    }

    fn note(&mut self, at: Nanoseconds, name: &str, attributes: &[Attribute]) {
        let attributes = attributes.to_vec();
        self.root.add_event(SpanEvent { name: name.to_owned(), at, attributes });
    }
}

fn at(event: &Event) -> Nanoseconds {
    Nanoseconds::try_from(event.timestamp.as_nanosecond()).unwrap_or(0)
}

/// How a process ended, as the conventions for CLI programs say it.
fn ended(span: &mut Span, exit_code: Option<i32>, signal: Option<i32>) {
    if let Some(code) = exit_code {
        span.add(names::EXIT_CODE, i64::from(code));
    }
    if let Some(signal) = signal {
        span.add(names::SIGNAL, i64::from(signal));
        span.add(names::ERROR_TYPE, "signal");
        span.fail(&format!("signal {signal}"));
    } else if let Some(code @ 1..) = exit_code {
        span.add(names::ERROR_TYPE, "exit-code");
        span.fail(&format!("exit code {code}"));
    }
}

fn say_decision(span: &mut Span, decision: Decision, by: &str, question: Option<u64>) {
    span.add(names::DECISION, word(&decision));
    span.add(names::DECIDED_BY, by);
    if let Some(question) = question {
        span.add(names::QUESTION, question);
    }
}

/// The base name of the program at the beginning of a command line.
fn program_of(preview: &str) -> &str {
    let first = preview.split_whitespace().next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain);
    if is_name { name } else { "command" }
}

/// The word for it in events, in lower case.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.to_lowercase(),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "tracer_tests.rs"]
mod tests;
