//! One run, from the request to the report (LIFE-1).
//!
//! Fails closed: what cannot be planned, recorded or set up must never start, and an audit log that cannot be written
//! ends the run.

mod planning;
mod recording;
mod recordings;
mod waiting;

use crate::answers::{self, Answers};
use crate::caches::{CacheUse, Leave};
use crate::caller::Caller;
use crate::config::PolicyRequest;
use crate::core_file;
use crate::discarded;
use crate::egress;
use crate::error::{Result, SessionError};
use crate::escape::{Response as EscapeResponse, Suspect};
use crate::familiar;
use crate::journal::Journal;
use crate::offline;
use crate::quarantine::{self, QuarantineVeto};
use crate::reporting;
use crate::runs::{Announced, FileRegistration};
use crate::session_id::new_session_id;
use crate::sessions::{self, HostedSession, SWEPT_BY_COMMANDS, SWEPT_BY_RUNS, SessionLife, Swept};
use crate::stores::Stores;
use crate::telemetry::{Telemetry, Traced};
use crate::transaction::{ForkOrigin, SessionProject, Transaction};
use crate::tree_locks;
use palisade_egress::config::Authority;
use palisade_gate::Rule;
use palisade_launch::Inherited;
use palisade_launch::probe::RealTree;
use palisade_plan::listed_view::ListedView;
use palisade_plan::model::{Gate, Plan, SandboxLifetime, Weight};
use palisade_policy::LayerKind;
use palisade_record::metrics::Metrics;
use palisade_record::{
    Approval, CacheWritesLost, Created, Destroyed, ErrorKind, EventKind, Failure, Outcome,
    RollBack, RunReport,
};
use palisade_supervisor::asking::AskIn;
use palisade_supervisor::conclusion;
use palisade_supervisor::control::endpoint::Endpoint;
use palisade_supervisor::control::interface::{FromSupervisor, Response};
use palisade_supervisor::egress::EgressSummary;
use palisade_supervisor::escape::Incident;
use palisade_supervisor::normalize;
use palisade_supervisor::project_work::ProjectWork;
use palisade_supervisor::signals::Signals;
use palisade_supervisor::{
    ExitState, Killed, Observers, StartRequest, Supervisor, SupervisorError,
};
use palisade_telemetry::is_setting;
use planning::plan_with;
pub use planning::{Planned, plan};
pub(crate) use planning::{gate_rules, missing};
use recording::{Times, conclude, describe, millis, record_end, record_start};
pub use recordings::kept as kept_recordings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// How many sockets of other sessions a starting run checks, to remove dead ones: enough that they do not accumulate.
const MAX_SWEPT: usize = 32;

/// What to run and under which policy.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub command: Vec<OsString>,
    pub policy: PolicyRequest,
    /// Where and how a person is asked.
    pub ask_in: AskIn,
    /// The session whose changes it begins with.
    pub fork_of: Option<ForkOrigin>,
    /// The file of a recording, where one is made. None: one of ours.
    pub record_to: Option<PathBuf>,
    /// The view, entry by entry, in place of the one that the policy describes.
    pub listed: Option<ListedView>,
    /// No command starts in it: who made it works on its files, and holds the limit on output.
    pub is_for_files: bool,
}

/// The result of a run.
#[derive(Debug)]
pub struct Finished {
    pub report: RunReport,
    /// The metrics of this run.
    pub metrics: Metrics,
    /// Why nothing ran, or why the run was stopped.
    pub error: Option<SessionError>,
}

/// Plans, runs and supervises the command to its end. The calling process must have one thread only; its signals, its
/// terminal and its standard streams belong to the run from here on. `tell` receives the messages for a person.
pub fn run(caller: Caller, request: &RunRequest, tell: &mut dyn FnMut(&str)) -> Finished {
    run_until(caller, request, None, tell)
}

/// Who starts commands in a sandbox that outlives them.
#[derive(Debug)]
pub(crate) enum Controller<'a> {
    /// The one client that the sandbox ends with.
    Client(&'a mut Endpoint),
    /// Whoever finds the session.
    Session(&'a mut HostedSession),
}

/// The same for a sandbox that outlives its commands.
pub(crate) fn run_until(
    mut caller: Caller,
    request: &RunRequest,
    control: Option<Controller<'_>>,
    tell: &mut dyn FnMut(&str),
) -> Finished {
    let clock = Instant::now();
    let inherited = Inherited::take();
    let session = match &control {
        Some(Controller::Session(hosted)) => hosted.life.id().to_owned(),
        _ => new_session_id(),
    };
    let mut report = RunReport::begin(&session, &request.command, reporting::versions());
    let mut metrics = Metrics::default();
    let began = Began { clock, inherited };
    let swept = match &control {
        Some(Controller::Session(_)) => sessions::sweep(&caller.places, SWEPT_BY_COMMANDS),
        _ => Swept::default(),
    };
    let is_run = control.is_none();
    let traced = match &control {
        None => Traced::Run,
        Some(Controller::Session(hosted)) if hosted.life.waits() => Traced::Prepared,
        Some(_) => Traced::Session,
    };
    let mut telemetry = Telemetry::of(&caller, (&session, traced), tell);
    let asked = (request, control);
    let counted = (&mut metrics, &mut telemetry);
    let error = attempt(&mut caller, asked, &began, (&mut report, counted), tell).err();
    if let Some(error) = &error {
        report.exit_code = i32::from(error.exit_code());
        report.outcome = match (error, error.kind()) {
            (SessionError::Supervisor(SupervisorError::TimedOut), _) => Outcome::Timeout,
            (SessionError::Supervisor(SupervisorError::OutOfMemory), _) => Outcome::OutOfMemory,
            (
                SessionError::Supervisor(
                    SupervisorError::Cancelled { .. } | SupervisorError::ClientGone,
                ),
                _,
            ) => Outcome::Killed,
            (
                SessionError::Policy(_) | SessionError::Plan(_) | SessionError::Quarantined { .. },
                ErrorKind::Security,
            ) => Outcome::Refused,
            _ => Outcome::Failed,
        };
        if let SessionError::Supervisor(SupervisorError::Cancelled { number, .. }) = error {
            report.signal = Some(*number);
        }
        report.failure = Some(Failure::of(error.kind(), error));
    }
    // At its end: a start has to be quick.
    let swept = if is_run { sessions::sweep(&caller.places, SWEPT_BY_RUNS) } else { swept };
    metrics.swept(swept.marked, swept.removed, swept.failed);
    metrics.conclude(&report);
    if let Some(telemetry) = telemetry {
        telemetry.finish(&report, &mut metrics, tell);
    }
    Finished { report, metrics, error }
}

/// The start of a run: its time, and the limits and signal settings that were inherited.
#[derive(Clone, Copy, Debug)]
struct Began {
    clock: Instant,
    inherited: Inherited,
}

fn attempt(
    caller: &mut Caller,
    (request, control): (&RunRequest, Option<Controller<'_>>),
    began: &Began,
    (report, (metrics, telemetry)): (&mut RunReport, (&mut Metrics, &mut Option<Telemetry>)),
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut journal = Journal::open(&caller.places, &report.session_id)?;
    let span = telemetry.as_ref().and_then(Telemetry::inside);
    journal.set_telemetry(telemetry.take());
    let lifetime =
        if control.is_some() { SandboxLifetime::UntilEnded } else { SandboxLifetime::OneCommand };
    let declared = request.policy.tool.as_deref();
    let checked = quarantine::check(&caller.places, declared, &request.command);
    let prepared = checked.and_then(|()| prepare(caller, (request, lifetime), report, tell));
    let waits = matches!(&control, Some(Controller::Session(hosted)) if hosted.life.waits());
    let prepared = prepared.and_then(|prepared| match waits {
        true => waiting::check(&prepared.plan, prepared.authority.is_some()).map(|()| prepared),
        false => Ok(prepared),
    });
    let outcome = prepared.and_then(|mut prepared| {
        if let Some(span) = &span {
            span.put(&mut prepared.plan.command.env);
        }
        let journal = &mut journal;
        let caches = prepared.caches.begin(&prepared.plan, &report.session_id)?;
        let begun = Transaction::begin(
            caller,
            &prepared.plan,
            (&request.policy, request.fork_of.as_ref()),
            report,
            tell,
        );
        let (caches, transaction) = match begun {
            Ok(transaction) => (caches, transaction),
            Err(error) => {
                // The first error is the one that matters; the next run of the project tries again.
                let _ = caches.map(|caches| caches.end(Leave::Nothing, None));
                return Err(error);
            }
        };
        let (mut incident, mut has_expired) = (None, false);
        let scene = Scene {
            caller,
            request,
            control,
            journal: &mut *journal,
            began,
            report: &mut *report,
            incident: &mut incident,
            has_expired: &mut has_expired,
            tell: &mut *tell,
        };
        let plan = &prepared.plan;
        let outcome = carry_out(plan, (prepared.rules, prepared.authority), scene);
        let places = &caller.places;
        // The command of a sandbox that outlives its commands is none.
        let argv = (lifetime == SandboxLifetime::OneCommand).then_some(&*request.command);
        let suspect = Suspect { argv, declared };
        let response = EscapeResponse::begin(places, incident, &suspect, report, tell);
        let discards = response.as_ref().is_some_and(EscapeResponse::discards);
        let leave = match &outcome {
            // Whoever had to be stopped leaves nothing to the next.
            Err(error) if error.kind() == ErrorKind::Security => Leave::Nothing,
            _ if discards => Leave::Nothing,
            _ => Leave::Everything,
        };
        let left = caches.map_or(Ok(None), |caches| caches.end(leave, prepared.cache_size));
        let lost =
            left.map_or_else(|error| Some(error.to_string()), |lost| lost.map(|it| it.to_string()));
        let recorded = lost.map_or(Ok(()), |reason| {
            // The command's work is done, and its result counts.
            tell(&format!("what was written to caches is not kept: {reason}"));
            journal.record(vec![EventKind::CacheWritesLost(CacheWritesLost { reason })])
        });
        let (ended, roll_back) = match transaction {
            Some(transaction) if discards => match transaction.roll_back() {
                Ok(()) => (Ok(()), RollBack::Discarded),
                Err(error) => (Err(error), RollBack::Failed),
            },
            // What an attempt to break out left is for somebody to look at.
            Some(transaction) if has_expired && outcome.is_ok() && response.is_none() => {
                let by = (&*caller, &request.policy);
                (transaction.expire(by, report, tell), RollBack::NotAsked)
            }
            Some(transaction) => {
                let by = (&*caller, &request.policy);
                (transaction.end(by, report, outcome.is_err(), tell), RollBack::NotAsked)
            }
            None => (Ok(()), RollBack::NotRolledBack),
        };
        let respond = |response: EscapeResponse<'_>| {
            response.finish((plan, journal), roll_back, report, tell)
        };
        let responded = response.map_or(Ok(()), respond);
        outcome.and(ended).and(responded).and(recorded.map_err(Into::into))
    });
    let recorded = match &outcome {
        Ok(()) => Ok(()),
        Err(error) => {
            let destroyed = Destroyed { duration_ms: millis(began.clock.elapsed()) };
            journal.fail(Failure::of(error.kind(), error), destroyed)
        }
    };
    (*metrics, *telemetry) = journal.into_metrics();
    recorded.and(outcome)
}

/// Everything that is decided before the first action.
struct Prepared {
    plan: Plan,
    /// For the gate.
    rules: Vec<Rule>,
    /// For the egress process, if TLS is intercepted.
    authority: Option<Authority>,
    caches: CacheUse,
    /// What all caches of sandboxes may hold, in bytes.
    cache_size: Option<u64>,
}

fn prepare(
    caller: &mut Caller,
    (request, lifetime): (&RunRequest, SandboxLifetime),
    report: &mut RunReport,
    tell: &mut dyn FnMut(&str),
) -> Result<Prepared> {
    caller.facts.canary = Some(caller.places.make_canary()?);
    let caches = CacheUse::default();
    let take = |project: &Path| caches.take(&caller.places, project, &report.session_id);
    let Planned { policy, plan, authority } =
        plan_with(caller, request, &report.session_id, &take)?;
    for note in &policy.notes {
        let note = note.to_string();
        tell(&note);
        report.notes.push(note);
    }
    let mode_was_chosen = policy.merged.provenance.get("mode").is_some_and(|sources| {
        sources.iter().any(|source| source.layer != LayerKind::BuiltIn.name())
    });
    for note in &plan.explanation.notes {
        let is_told = match note.weight {
            Weight::Important => true,
            Weight::OfMode => mode_was_chosen,
            Weight::Routine => false,
        };
        if is_told {
            tell(&note.text);
        }
    }
    #[cfg(feature = "layers-off")]
    let plan = crate::layers_off::apply(plan, &caller.facts)?;
    let plan = match lifetime {
        SandboxLifetime::OneCommand => plan,
        SandboxLifetime::UntilEnded if request.is_for_files => plan.for_files().until_ended()?,
        SandboxLifetime::UntilEnded => plan.until_ended()?,
    };
    reporting::planned(report, &plan);
    for directory in &plan.sandbox.create_dirs {
        create_without_following(directory)
            .map_err(|source| SessionError::io("create the directory", directory, source))?;
    }
    let rules = gate_rules(&policy.merged.policy, caller);
    let cache_size = policy.merged.policy.filesystem.cache_size;
    Ok(Prepared { plan, rules, authority, caches, cache_size })
}

/// Creates it step by step below the root's descriptor: the path had no links when the plan was made, but a process
/// that can write above it may have created one since (CVE-2024-45310).
fn create_without_following(directory: &Path) -> std::io::Result<()> {
    let root = std::fs::File::open("/")?;
    let mode = rustix::fs::Mode::from_raw_mode(0o777);
    palisade_sys::beneath::mkdir_p_beneath(&root, directory, mode)
        .map(drop)
        .map_err(|error| error.errno.into())
}

/// Everything that a run uses besides its plan.
struct Scene<'a> {
    caller: &'a Caller,
    request: &'a RunRequest,
    /// Who starts commands, in a sandbox that outlives them.
    control: Option<Controller<'a>>,
    journal: &'a mut Journal,
    began: &'a Began,
    report: &'a mut RunReport,
    /// Filled in if the run was ended for an attempt to break out.
    incident: &'a mut Option<Incident>,
    /// Set if it ended because a session's time to live was over.
    has_expired: &'a mut bool,
    tell: &'a mut dyn FnMut(&str),
}

fn carry_out(
    plan: &Plan,
    (rules, authority): (Vec<Rule>, Option<Authority>),
    scene: Scene<'_>,
) -> Result<()> {
    let Scene { caller, request, control, journal, began, report, incident, has_expired, tell } =
        scene;
    let Began { clock, inherited } = *began;
    let located = &plan.explanation.project;
    if let Some(note) = familiar::introduce(&caller.places, located, &caller.facts.cwd) {
        tell(&note);
    }
    let project = located.root.clone();
    let run = describe(plan, request.policy.tool.as_deref(), project.clone());
    journal.add(EventKind::SandboxCreated(Box::new(Created {
        run: run.clone(),
        pid: std::process::id(),
        uid: caller.facts.uid,
        working_directory: plan.command.cwd.clone(),
    })));
    if let Some(origin) = &request.fork_of {
        origin.record(journal);
    }
    for approval in &plan.supervision.approvals {
        let (what, reason) = (approval.what.clone(), approval.reason.clone());
        journal.add(EventKind::ApprovalRecorded(Approval { what, reason }));
    }
    // Left by killed runs. Costs one call if the directory does not exist.
    palisade_ask::leftover::sweep(&caller.places.runtime, MAX_SWEPT);
    // From here on a signal ends the run in an orderly way, with its end in the log.
    let signals = Signals::take()?;
    journal.commit()?;

    let (control, mut life) = match control {
        Some(Controller::Client(endpoint)) => (Some(endpoint), None),
        Some(Controller::Session(HostedSession { endpoint, life })) => (Some(endpoint), Some(life)),
        None => (None, None),
    };
    let stores = Stores::new(caller);
    if request.ask_in == AskIn::Approve && plan.sandbox.gate.as_ref().is_some_and(Gate::uses_on_ask)
    {
        tell("answer the questions of this run with `sandbox approve` in another terminal");
    }
    let recording = match plan.sandbox.lifetime {
        SandboxLifetime::OneCommand => {
            recordings::begin(&caller.places, request.record_to.as_deref(), plan, report, tell)?
        }
        SandboxLifetime::UntilEnded => {
            if plan.supervision.recording.is_some() && life.is_none() {
                let note = "a client of the control interface holds the streams of its commands: they are not recorded";
                tell(note);
                report.notes.push(note.to_owned());
            }
            None
        }
    };
    let start = StartRequest {
        plan,
        inherited,
        locks: tree_locks::register(&caller.places.state, plan)?,
        session: report.session_id.clone(),
        command: report.command.join(" "),
        project,
        home: caller.facts.home.clone(),
        runtime: caller.places.runtime.clone(),
        ask_in: request.ask_in,
        rules,
        stores: Rc::new(stores.clone()),
        control,
        veto: Some(Rc::new(QuarantineVeto {
            places: caller.places.clone(),
            tool: request.policy.tool.clone(),
        })),
        claim_record: life.as_deref().and_then(SessionLife::claim_record),
        output_logs: life.as_deref().map(SessionLife::output_logs).transpose()?,
        recording,
        recordings: match life.as_deref() {
            Some(life) => life.recordings(plan)?,
            None => None,
        },
        project_work: project_work(plan, caller, report),
        span: journal.telemetry().and_then(Telemetry::session_span),
    };
    let mut supervisor = palisade_supervisor::start(start, signals, || {
        let mut config = egress::config(plan, &caller.facts, authority)?;
        if let Some(note) = config.as_mut().and_then(egress::bound_by_descriptors) {
            tell(&note);
            report.notes.push(note);
        }
        Ok::<_, SessionError>(config)
    })?;
    let mut setup = None;
    loop {
        let mut log = |records| journal.record(records);
        let next = supervisor.next_message(Observers { log: &mut log, tell });
        let next = next.inspect_err(|error| {
            // A helper may have died by the same attempt.
            (report.escape, *incident) = supervisor.take_escape();
            if setup.is_none() {
                supervisor.take_unlogged().into_iter().for_each(|event| journal.add(event));
                report.signals_forwarded = supervisor.forwarded().to_vec();
                supervisor.limits_so_far().report(report, plan, conclusion::not_started_for(error));
            }
        });
        let handled = match next? {
            Some(FromSupervisor::Response(Response::Created { .. })) => {
                setup = Some(clock.elapsed());
                reporting::observed(report, plan, &supervisor.checked().observations);
                record_start(journal, plan, &supervisor, clock).and_then(|()| {
                    let announced = announced(plan, report, &supervisor);
                    supervisor.announce(FileRegistration::new(&caller.places, announced));
                    life.as_mut().map_or(Ok(()), |life| life.started(plan, &mut supervisor))
                })
            }
            Some(FromSupervisor::Event(event)) => {
                life.as_mut().map_or(Ok(()), |life| life.hear(&event, &mut supervisor))
            }
            // All other messages, about commands, questions and limits, end up in the report.
            Some(_) => Ok(()),
            None => break,
        };
        handled.inspect_err(|_| (report.escape, *incident) = supervisor.take_escape())?;
    }
    let mut log = |records| journal.record(records);
    let finished = supervisor.finish(Observers { log: &mut log, tell });
    let (ended, mut signals) = finished.map_err(|failed| {
        (report.escape, *incident) = (failed.report, failed.incident);
        failed.error
    })?;

    *has_expired = matches!(ended.killed, Some(Killed::Expired(_)));
    let setup = setup.unwrap_or_default();
    let times = Times::of(plan, setup, clock.elapsed());
    let waited = match plan.supervision.normalize_ms {
        Some(_) => normalize::wait_out(clock, times.total(), &mut signals).map(drop),
        None => Ok(()),
    };
    conclude(report, plan, &ended, times);
    (report.escape, *incident) = ended.escape.end();
    waited?;
    record_end(journal, run, report, times.total())?;
    ended.incidents.report(report);
    report.unasked_questions = ended.unasked;
    report.saved_answers = stores.take_kept();
    report.removed_variables = removed_variables(plan, caller);
    for line in ended.output.losses() {
        tell(&line);
    }
    let crash = report.signal.filter(|_| report.outcome == Outcome::Signalled);
    if let Some(note) = crash.and_then(|signal| core_file::note(plan, signal)) {
        tell(&note);
        report.notes.push(note);
    }
    let ExitState { touched, private_home, network_counters, egress_summary, notes, .. } = ended;
    report.offline_attempts = offline::attempts(network_counters);
    report.notes.extend(notes);
    let mut answered = Answers::from(touched.answered.clone());
    let shown = touched.shown.clone();
    touched.report(report);
    if let Some(home) = private_home.filter(|home| discarded::may_hold_files(home, plan)) {
        let leftovers = palisade_plan::leftovers(&caller.facts, &RealTree);
        if let Some(known) = discarded::Known::of(plan, &shown, leftovers) {
            report.discarded_files = discarded::list(&home, &known);
        }
    }
    if let Some(EgressSummary { report: network, answered: hosts, notes }) = egress_summary {
        report.network = Some(network);
        report.notes.extend(notes);
        answered.hosts = hosts;
    }
    // Answers can be given again, so a run does not fail if they cannot be saved.
    if let Err(error) = answers::write(&caller.places, &report.session_id, &answered) {
        report.notes.push(format!("the answers of this session were not saved: {error}"));
    }
    Ok(())
}

/// Variables that look like secrets. Others are left out because the policy says so, or because they name something
/// that is not inside.
fn removed_variables(plan: &Plan, caller: &Caller) -> Vec<String> {
    let is_inside = |name: &OsString| plan.command.env.iter().any(|(known, _)| known == name);
    let names = caller.facts.env.keys();
    names
        .filter(|name| palisade_plan::is_secret_variable(name) && !is_inside(name))
        // They are for us: the command does not miss them.
        .filter(|name| !is_setting(name))
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn project_work(plan: &Plan, caller: &Caller, report: &RunReport) -> Option<Rc<dyn ProjectWork>> {
    plan.supervision.transaction.as_ref()?;
    let (places, session) = (caller.places.clone(), report.session_id.clone());
    Some(Rc::new(SessionProject { places, session }))
}

fn announced(plan: &Plan, report: &RunReport, supervisor: &Supervisor<'_>) -> Announced {
    Announced {
        session: report.session_id.clone(),
        init: supervisor.pid(),
        spawner: supervisor.spawner(),
        command: report.command.join(" "),
        started_at: report.started_at,
        cgroups: supervisor.cgroups(),
        limits: plan.supervision.limits.iter().map(Into::into).collect(),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
