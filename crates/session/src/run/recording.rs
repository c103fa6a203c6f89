//! What is recorded of a run: its steps in the audit log, and how it ended in its report.

use crate::error::Result;
use crate::journal::Journal;
use crate::reporting::word;
use palisade_plan::limit::LimitKind;
use palisade_plan::model::{Confinement, Plan};
use palisade_record::{
    CommandDigest, Destroyed, Entered, EventKind, Executed, Exited, LimitExceeded, Run, RunReport,
    State, Validated,
};
use palisade_supervisor::conclusion::{self, Conclusion};
use palisade_supervisor::normalize;
use palisade_supervisor::{ExitState, Supervisor};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The parts of a run's duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    setup: Duration,
    wall: Duration,
}

impl Times {
    /// Where times are rounded, set-up time is not reported separately: it would reveal what the rounding hides.
    pub(super) fn of(plan: &Plan, setup: Duration, total: Duration) -> Self {
        match plan.supervision.normalize_ms {
            None => Self { setup, wall: total.saturating_sub(setup) },
            Some(step) => {
                let wall = normalize::rounded_up(total, Duration::from_millis(step));
                Self { setup: Duration::ZERO, wall }
            }
        }
    }

    pub(super) fn total(self) -> Duration {
        self.setup + self.wall
    }
}

pub(super) fn record_start(
    journal: &mut Journal,
    plan: &Plan,
    supervisor: &Supervisor<'_>,
    clock: Instant,
) -> Result<()> {
    journal.advance(State::Initialized)?;
    journal.add(EventKind::SandboxEntered(Entered {
        pid: supervisor.pid(),
        namespaces: namespaces(plan),
    }));
    journal.add(EventKind::SandboxValidated(Validated {
        probes: supervisor.checked().observations.len(),
        duration_us: micros(supervisor.checked().took),
    }));
    journal.advance(State::Running)?;
    journal
        .add(EventKind::SandboxExecuted(Executed { pid: None, setup_us: micros(clock.elapsed()) }));
    journal.advance(State::Monitoring)?;
    Ok(journal.commit()?)
}

/// Fills in how the run ended.
pub(super) fn conclude(report: &mut RunReport, plan: &Plan, ended: &ExitState, times: Times) {
    let Conclusion { outcome, exit_code, signal, ended_by } = conclusion::conclude(ended);
    report.outcome = outcome;
    report.exit_code = exit_code;
    report.signal = signal;
    report.signals_forwarded = ended.forwarded.clone();
    if ended.forwarded_beyond > 0 {
        report.notes.push(format!("{} more signals were forwarded", ended.forwarded_beyond));
    }
    report.notes.extend(ended.output.told());
    let mut usage = ended.tally.usage(micros(times.setup), micros(times.wall));
    if let Some(step) = plan.supervision.normalize_ms {
        normalize::round_cpu_time(&mut usage, Duration::from_millis(step));
    }
    report.usage = Some(usage);
    ended.tally.report(report, plan, ended_by);
}

pub(super) fn record_end(
    journal: &mut Journal,
    run: Run,
    report: &RunReport,
    duration: Duration,
) -> Result<()> {
    for limit in &report.limits {
        // Using up the CPU share is not an event: it happens many times a second.
        let reached = limit.reached.as_ref().filter(|_| limit.name != LimitKind::Cpus.name());
        if let Some(reached) = reached {
            journal.add(EventKind::ResourceLimitExceeded(LimitExceeded {
                resource: limit.key.clone(),
                limit: limit.value,
                observed: reached.usage,
                holder: limit.holder.clone(),
            }));
        }
    }
    journal.advance(report.outcome.into())?;
    let duration_ms = millis(duration);
    journal.add(EventKind::SandboxExited(Box::new(Exited {
        run,
        outcome: report.outcome,
        exit_code: Some(report.exit_code),
        signal: report.signal,
        duration_ms,
    })));
    journal.advance(State::Cleanup)?;
    journal.add(EventKind::SandboxDestroyed(Destroyed { duration_ms }));
    Ok(journal.commit()?)
}

pub(super) fn describe(plan: &Plan, tool: Option<&str>, project: PathBuf) -> Run {
    let program = || {
        let name = plan.command.argv.first().map(Path::new).and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Run {
        session_id: plan.session.clone(),
        worker_id: None,
        tool: tool.map_or_else(program, str::to_owned),
        sandbox_level: word(&plan.explanation.level),
        sandbox_mode: word(&plan.explanation.mode),
        network_mode: plan.sandbox.network.name().to_owned(),
        sandbox_root: project,
        command: CommandDigest::of(&plan.command.argv),
    }
}

pub(super) fn namespaces(plan: &Plan) -> Vec<String> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return Vec::new() };
    let made = inside.namespaces.by_name().into_iter().filter(|(_, made)| *made);
    made.map(|(name, _)| name.to_owned()).collect()
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
