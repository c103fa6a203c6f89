//! Attempts to break out, and what the policy does about them (ESC-1).
//!
//! Every layer puts its attempts among the events for the audit log. Here they are counted, and the hardest action decides.
//! An attempt was denied before anybody heard of it: nothing here is needed to hold a wall.

mod processes;

pub(crate) use processes::descendants;

use crate::error::SupervisorError;
use palisade_launch::CommandId;
use palisade_policy::model::{Escape, EscapeAction as Wanted};
use palisade_record::indicators::{self, TOO_MANY_CALLS};
use palisade_record::{
    Digest, EscapeAction, EscapeAttempt, EscapeReport, EventKind, SeenIndicator, SeenProcess,
    Severity, SyscallBlocked,
};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fmt::Debug;

/// So many attempts of each indicator are recorded and reported one by one; further ones are counted.
const MAX_OF_EACH: usize = 20;
/// The refused calls that are remembered, for whoever looks into an incident.
const MAX_CALLS: usize = 64;

/// A command that was started, as a quarantine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedTool {
    /// The program's name.
    pub program: String,
    pub hash: Digest,
    /// The masked beginning of the command line.
    pub preview: String,
}

/// What is known about a run that was ended, or would have been.
#[derive(Clone, Debug, Default)]
pub struct Incident {
    /// The attempt that decided.
    pub attempt: Option<EscapeAttempt>,
    /// The processes at that moment; none if they were gone.
    pub processes: Vec<SeenProcess>,
    /// The commands of a session that may have done it; none in a run of one command.
    pub tools: Vec<StartedTool>,
    /// The last refused calls.
    pub calls: Vec<SyscallBlocked>,
}

/// A sandbox of which nothing is left, but whose end could not be settled. What it attempted is known all the same.
#[derive(Debug)]
pub struct FailedEnd {
    pub error: SupervisorError,
    pub report: Option<EscapeReport>,
    pub incident: Option<Incident>,
}

/// Who knows which commands must not be started.
pub trait CommandVeto: Debug {
    /// Why it must not, if so.
    fn refuses(&self, argv: &[&OsStr]) -> Option<String>;
}

#[derive(Debug)]
pub struct EscapeWatch {
    policy: Escape,
    seen: Vec<SeenIndicator>,
    counts: BTreeMap<String, usize>,
    more: u64,
    action: EscapeAction,
    calls: VecDeque<SyscallBlocked>,
    incident: Incident,
    has_acted: bool,
}

impl EscapeWatch {
    pub(crate) fn new(policy: &Escape) -> Self {
        Self {
            policy: policy.clone(),
            seen: Vec::new(),
            counts: BTreeMap::new(),
            more: 0,
            action: EscapeAction::Ignore,
            calls: VecDeque::new(),
            incident: Incident::default(),
            has_acted: false,
        }
    }

    /// Looks through new events from `from` on, adds the attempts that some of them are, and leaves out what is not to be
    /// recorded. Whether the run has to end, for the first time.
    pub(crate) fn look(&mut self, events: &mut Vec<EventKind>, from: usize) -> bool {
        let before = self.action;
        for event in events.split_off(from.min(events.len())) {
            let derived = match &event {
                EventKind::EscapeAttempt(attempt) => {
                    if self.admit(attempt) {
                        events.push(event);
                    }
                    continue;
                }
                EventKind::NetworkAttempt(attempt) => indicators::of_connection(attempt),
                EventKind::NameQueried(queried) => indicators::of_query(queried),
                EventKind::SyscallBlocked(call) => {
                    if self.calls.len() >= MAX_CALLS {
                        self.calls.pop_front();
                    }
                    self.calls.push_back(call.clone());
                    None
                }
                _ => None,
            };
            events.push(event);
            if let Some(attempt) = derived.filter(|attempt| self.admit(attempt)) {
                events.push(EventKind::EscapeAttempt(attempt));
            }
        }
        self.action.ends() && !before.ends()
    }

    /// Counts an attempt. Whether it is recorded by itself.
    fn admit(&mut self, attempt: &EscapeAttempt) -> bool {
        let action = self.action_for(attempt);
        if action == EscapeAction::Ignore {
            return false;
        }
        if action > self.action {
            self.action = action;
            self.incident.attempt = Some(attempt.clone());
        }
        let is_known = self
            .seen
            .iter()
            .any(|seen| seen.id == attempt.id && seen.description == attempt.description);
        let count = self.counts.entry(attempt.id.clone()).or_default();
        if is_known || *count >= MAX_OF_EACH {
            self.more += 1;
            return false;
        }
        *count += 1;
        self.seen.push(SeenIndicator {
            id: attempt.id.clone(),
            kind: attempt.indicator,
            severity: attempt.severity,
            description: attempt.description.clone(),
            pid: attempt.pid,
            action,
        });
        true
    }

    fn action_for(&self, attempt: &EscapeAttempt) -> EscapeAction {
        if self.policy.strict {
            return EscapeAction::Quarantine;
        }
        let wanted = match attempt.severity {
            Severity::Low => self.policy.on_low,
            Severity::Medium => self.policy.on_medium,
            Severity::High => self.policy.on_high,
            Severity::Critical => self.policy.on_critical,
        };
        let action = match wanted {
            Wanted::Ignore => EscapeAction::Ignore,
            Wanted::Warn => EscapeAction::Warn,
            Wanted::Kill => EscapeAction::Kill,
            Wanted::Quarantine => EscapeAction::Quarantine,
        };
        // `syscalls.maxBlocked` is a limit of its own.
        if attempt.id == TOO_MANY_CALLS.id { action.max(EscapeAction::Kill) } else { action }
    }

    pub fn action(&self) -> EscapeAction {
        self.action
    }

    /// The moment is over soon: what can be known only now is kept.
    pub(crate) fn keep(&mut self, processes: Vec<SeenProcess>, tools: Vec<StartedTool>) {
        self.incident.processes = processes;
        self.incident.tools = tools;
    }

    /// Whether the sandbox is to be ended now. Says so once.
    pub(crate) fn take_order(&mut self) -> bool {
        self.action.ends() && !std::mem::replace(&mut self.has_acted, true)
    }

    pub(crate) fn attempt_pid(&self) -> Option<u32> {
        self.incident.attempt.as_ref().and_then(|attempt| attempt.pid)
    }

    /// The same before the end.
    pub(crate) fn take(&mut self) -> (Option<EscapeReport>, Option<Incident>) {
        let next = Self::new(&self.policy);
        std::mem::replace(self, next).end()
    }

    /// What the report says of it, and what is known about the incident if there is one.
    pub fn end(self) -> (Option<EscapeReport>, Option<Incident>) {
        let Self { seen, more, action, calls, mut incident, .. } = self;
        incident.calls = calls.into();
        let report = (!seen.is_empty()).then(|| EscapeReport {
            action,
            indicators: seen,
            more,
            response: None,
            quarantined: Vec::new(),
        });
        (report, action.ends().then_some(incident))
    }
}

/// The command that a process belongs to: the one among its ancestors.
pub(crate) fn command_of(
    pid: u32,
    processes: &[SeenProcess],
    commands: &[(CommandId, Option<u32>)],
) -> Option<CommandId> {
    let mut current = pid;
    // A chain is no longer than the list; what changed meanwhile must not make it endless.
    for _ in 0..=processes.len() {
        if let Some((command, _)) = commands.iter().find(|(_, pid)| *pid == Some(current)) {
            return Some(*command);
        }
        current = processes.iter().find(|process| process.pid == current)?.parent;
    }
    None
}

/// For tests: the default.
#[cfg(test)]
pub(crate) fn warning() -> Escape {
    Escape {
        on_low: Wanted::Warn,
        on_medium: Wanted::Warn,
        on_high: Wanted::Warn,
        on_critical: Wanted::Warn,
        strict: false,
        desktop: false,
        webhook: None,
    }
}

#[cfg(test)]
#[path = "escape_tests.rs"]
mod tests;
