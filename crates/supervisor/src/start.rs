//! Starts one sandbox with everything outside that it needs, in the order that keeps secrets out of it.

use crate::answers::SharedStore;
use crate::asking::{Arming, AskIn, Asking, Backdrop, Setting};
use crate::control::command_spans::CommandSpans;
use crate::control::commands::Commands;
use crate::control::defaults::Defaults;
use crate::control::endpoint::Endpoint;
use crate::control::held::HeldCommands;
use crate::control::outbox::Outbox;
use crate::deadlines::Deadlines;
use crate::egress::EgressControl;
use crate::error::SupervisorError;
use crate::escape::{CommandVeto, EscapeWatch};
use crate::expiry::Expiry;
use crate::gate::Gate;
use crate::incidents::Incidents;
use crate::limits::Limits;
use crate::log_budget::Excess;
use crate::output::Outputs;
use crate::project_work::{ProjectWork, ProjectWorkers};
use crate::recording::RecordingDirectory;
use crate::signals::Signals;
use crate::supervisor::{ClaimRecord, Clock, Control, Display, Endpoints, OwnClient, Supervisor};
use crate::terminal::HostTerminal;
use palisade_broker::TreeLocks;
use palisade_egress::config::Config;
use palisade_gate::Rule;
use palisade_launch::{Inherited, Streams};
use palisade_plan::model::{Plan, SandboxLifetime};
use palisade_record::SpanContext;
use palisade_record::cast::CastWriter;
use palisade_sys::fault;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Open at once, where the plan has no gate that says it. A person answers none of more than this.
const MAX_OPEN_QUESTIONS: usize = 256;

/// What one sandbox is started with.
#[derive(Debug)]
pub struct StartRequest<'p> {
    pub plan: &'p Plan,
    /// What the caller had set for itself.
    pub inherited: Inherited,
    pub locks: TreeLocks,
    pub session: String,
    /// The command, as a log would show it.
    pub command: String,
    pub project: PathBuf,
    /// The caller's home directory.
    pub home: Option<PathBuf>,
    /// Where the approval sockets of all sessions are.
    pub runtime: PathBuf,
    pub ask_in: AskIn,
    /// For the gate.
    pub rules: Vec<Rule>,
    pub stores: SharedStore,
    /// The clients, for a sandbox that outlives its commands.
    pub control: Option<&'p mut Endpoint>,
    /// Of commands that are started later.
    pub veto: Option<Rc<dyn CommandVeto>>,
    /// Of a sandbox that is prepared for a client that may claim it.
    pub claim_record: Option<Rc<dyn ClaimRecord>>,
    /// Where the output of commands is kept, one directory a command. None: not in files.
    pub output_logs: Option<OwnedFd>,
    /// Of the one command, if its terminal is recorded.
    pub recording: Option<CastWriter>,
    /// Of further commands, if they are recorded.
    pub recordings: Option<RecordingDirectory>,
    /// On the project's changes, if there is a transaction.
    pub project_work: Option<Rc<dyn ProjectWork>>,
    /// The session's, if spans are sent: further commands are below it.
    pub span: Option<SpanContext>,
}

/// Launches the sandbox. `egress` reads secrets, so it is called when pid 1 and the broker have been forked: they hold
/// none of them in their memory.
pub fn start<'p, E: From<SupervisorError>>(
    request: StartRequest<'p>,
    signals: Signals,
    egress: impl FnOnce() -> Result<Option<Config>, E>,
) -> Result<Supervisor<'p>, E> {
    let StartRequest { plan, inherited, locks, stores, .. } = request;
    let terminal = match plan.sandbox.lifetime {
        SandboxLifetime::OneCommand => HostTerminal::of_caller()?,
        // Each command has a terminal of its own, or none.
        SandboxLifetime::UntilEnded => None,
    };
    let now = Instant::now();
    let mut expiry = Expiry::of(plan, now);
    let mut deadlines = Deadlines::of(plan, now);
    if request.claim_record.is_some() {
        expiry.pause();
        deadlines.pause();
    }
    let control = Control {
        session: request.session.clone(),
        commands: Commands::new(),
        defaults: Defaults::of(plan),
        spans: CommandSpans::new(request.session.clone(), request.span),
        outbox: Outbox::new(request.control),
        held: HeldCommands::new(request.output_logs, request.recordings),
        expiry,
        project_holder: None,
        project_workers: ProjectWorkers::new(request.project_work, plan),
        held_back: Vec::new(),
    };
    let streams = Streams { pty: terminal.as_ref().map(HostTerminal::size_for_pty) };
    let limits = Limits::prepare(plan)?;
    fault::point("launching", "");
    let launched = palisade_launch::launch(plan, &streams, &inherited, locks);
    let mut running = launched.map_err(SupervisorError::from)?;
    fault::point("launched", "");
    let egress = egress()?;
    let outputs = Outputs::of(
        running.take_outputs(),
        plan.supervision.max_output,
        request.recording.is_some(),
    )?;
    release_streams();
    let asking = Asking::new(Setting {
        session: request.session,
        runtime: request.runtime,
        command: request.command,
        project: request.project,
        most_questions: plan
            .sandbox
            .gate
            .as_ref()
            .map_or(MAX_OPEN_QUESTIONS, |gate| gate.most_questions),
        on_ask: plan.supervision.on_ask,
        ask_in: request.ask_in,
        key: plan.supervision.ask_key.into(),
        backdrop: Backdrop::of(&plan.sandbox.hardening),
        arming: Arming::of(&plan.sandbox.hardening),
    });
    let gate = Gate::of(plan, request.rules, request.home, SharedStore::clone(&stores));
    let egress = EgressControl::of(plan, egress, SharedStore::clone(&stores));
    let endpoints = Endpoints {
        asking,
        stores,
        veto: request.veto,
        claim_record: request.claim_record,
        gate,
        egress,
    };
    let display = Display::new(
        terminal,
        outputs,
        plan.supervision.max_output,
        request.recording.zip(plan.supervision.recording),
    );
    let incidents = Incidents::new(plan.sandbox.seccomp.as_ref(), Excess::of(plan));
    let escape = EscapeWatch::new(&plan.supervision.escape);
    let clock = Clock { deadlines, limits };
    let clients = (control, OwnClient::new(signals));
    Ok(Supervisor::new(running, clients, display, clock, (incidents, escape), endpoints))
}

/// Lets go of pipes that are the command's now: who reads or writes them must see when the command
/// closes its end. Standard error stays, for our own words.
fn release_streams() {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let Ok(null) = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()) else { return };
    // Without /dev/null, or if this fails, a pipe merely closes with us, a moment after the command.
    if !rustix::termios::isatty(rustix::stdio::stdin()) {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
    if !rustix::termios::isatty(rustix::stdio::stdout()) {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}
