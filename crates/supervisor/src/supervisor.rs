//! Watches one running sandbox from outside: its messages, our signals, the terminal, the clock.
//!
//! One poll loop, no threads. It never runs anything of the command's and never waits on it without
//! also listening for signals.

mod claiming;
mod display;
mod end;
mod escape;
mod messages;
mod own_client;
mod requests;
mod session_records;
mod session_requests;
mod sources;
mod starting;

pub use claiming::ClaimRecord;
pub(crate) use display::{Display, ends};
pub(crate) use own_client::OwnClient;
pub use requests::Reply;

use crate::answers::SharedStore;
use crate::asking::Asking;
use crate::control::command_spans::CommandSpans;
use crate::control::commands::Commands;
use crate::control::defaults::Defaults;
use crate::control::endpoint::ClientId;
use crate::control::held::HeldCommands;
use crate::control::interface::Request;
use crate::control::outbox::Outbox;
use crate::deadlines::Deadlines;
use crate::egress::{EgressControl, EgressSummary};
use crate::error::Result;
use crate::escape::{CommandVeto, EscapeWatch};
use crate::expiry::{Expired, Expiry};
use crate::gate::{Gate, Touched};
use crate::incidents::Incidents;
use crate::limits::{Limits, Tally};
use crate::output::Delivered;
use crate::project_work::ProjectWorkers;
use palisade_launch::{
    Checked, ExitCause, FromInit, PrivateHome, RunGroup, Running, TO_END_EVERYBODY, Watched,
};
use palisade_plan::limit::LimitKind;
use palisade_record::{EventKind, RecordError, SignalForwarded, UnaskedQuestions};
use palisade_sys::fault;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Why the supervisor itself ended the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The wall-time limit; it was asked to end first.
    Timeout,
    /// The time of a session was over.
    Expired(Expired),
    /// A fatal signal, and the grace time is over or it came twice.
    Asked,
    /// An attempt to break out, or too many suspicious system calls.
    Escape,
    /// A limit that the supervisor holds, or is told of, was exceeded.
    Limit(LimitKind),
}

/// How it all ended.
#[derive(Debug)]
pub struct ExitState {
    /// `None` if pid 1 went without saying: it was killed.
    pub ending: Option<ExitCause>,
    pub killed: Option<Killed>,
    /// Signals that came from outside and went in.
    pub forwarded: Vec<SignalForwarded>,
    /// Signals beyond those in the list.
    pub forwarded_beyond: u64,
    pub tally: Tally,
    pub incidents: Incidents,
    pub escape: EscapeWatch,
    pub touched: Touched,
    /// What was written there goes with it.
    pub private_home: Option<PrivateHome>,
    /// Of a network that leads nowhere.
    pub network_counters: Vec<OwnedFd>,
    /// None where there was no way out.
    pub egress_summary: Option<EgressSummary>,
    /// None if everything that was to be asked was.
    pub unasked: Option<UnaskedQuestions>,
    /// What did not go well with asking.
    pub notes: Vec<String>,
    pub output: Delivered,
}

/// Who hears what happens while it happens.
#[expect(missing_debug_implementations, reason = "it holds closures")]
pub struct Observers<'a> {
    /// The audit log. If it cannot be written, the run ends.
    pub log: &'a mut dyn FnMut(Vec<EventKind>) -> Result<(), RecordError>,
    /// People, on standard error.
    pub tell: &'a mut dyn FnMut(&str),
}

/// The run's entry in the list of running sandboxes, made when the run has lasted a moment.
pub trait RunRegistration: Debug {
    fn next_deadline(&self) -> Option<Instant>;

    /// Does what is due by now.
    fn act(&mut self);
}

/// What ends a run that goes on for too long, or uses too much.
#[derive(Debug)]
pub(crate) struct Clock<'p> {
    pub(crate) deadlines: Deadlines,
    pub(crate) limits: Limits<'p>,
}

/// Who decides about what the rules do not.
#[derive(Debug)]
pub(crate) struct Endpoints<'p> {
    pub(crate) asking: Asking,
    pub(crate) stores: SharedStore,
    pub(crate) veto: Option<Rc<dyn CommandVeto>>,
    pub(crate) claim_record: Option<Rc<dyn ClaimRecord>>,
    pub(crate) gate: Option<Gate<'p>>,
    pub(crate) egress: Option<EgressControl<'p>>,
}

/// The commands, and who makes requests about them.
#[derive(Debug)]
pub(crate) struct Control<'p> {
    pub(crate) session: String,
    pub(crate) commands: Commands,
    pub(crate) defaults: Defaults,
    pub(crate) spans: CommandSpans,
    pub(crate) outbox: Outbox<'p>,
    /// Commands whose streams we hold.
    pub(crate) held: HeldCommands,
    /// How long it may stay.
    pub(crate) expiry: Expiry,
    /// Who brings an earlier state of the project back: no command runs meanwhile.
    pub(crate) project_holder: Option<ClientId>,
    pub(crate) project_workers: ProjectWorkers,
    /// For commands that have not come to their exec.
    pub(crate) held_back: Vec<Request>,
}

/// How far a sandbox has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Before the first command's exec, or before commands can be started.
    Starting,
    Running,
    /// Commands were asked to end.
    Ending,
    /// They did not, and were killed one by one. Only in a sandbox that outlives its commands.
    Killing,
    /// Pid 1 ends everybody else.
    Leaving,
    /// Nothing of it is left.
    Gone,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Killing => "killing",
            Self::Leaving => "leaving",
            Self::Gone => "gone",
        }
    }
}

/// A running sandbox and everything outside that it needs.
#[derive(Debug)]
pub struct Supervisor<'p> {
    pub(crate) running: Running,
    pub(crate) phase: Phase,
    pub(crate) control: Control<'p>,
    pub(crate) own_client: OwnClient,
    pub(crate) display: Display,
    pub(crate) clock: Clock<'p>,
    /// None before the command runs.
    pub(crate) registration: Option<Box<dyn RunRegistration + 'p>>,
    pub(crate) killed: Option<Killed>,
    pub(crate) incidents: Incidents,
    pub(crate) escape: EscapeWatch,
    /// How many of `unlogged` the escape watch has looked at.
    pub(crate) looked_at: usize,
    /// How many of `unlogged` stand in recordings.
    pub(crate) marked: usize,
    pub(crate) asking: Asking,
    pub(crate) stores: SharedStore,
    pub(crate) veto: Option<Rc<dyn CommandVeto>>,
    /// Of a sandbox that was prepared.
    pub(crate) claim_record: Option<Rc<dyn ClaimRecord>>,
    /// None where nothing on the host is asked about.
    pub(crate) gate: Option<Gate<'p>>,
    /// None where there is none, or no wall around it.
    pub(crate) egress: Option<EgressControl<'p>>,
    /// What of it is yet to be logged.
    pub(crate) unlogged: Vec<EventKind>,
    /// What the self-check saw.
    pub(crate) checked: Checked,
    /// How pid 1 says that everything ended.
    pub(crate) ending: Option<ExitCause>,
    /// Whose end is waited for.
    pub(crate) serving: Vec<Watched>,
    /// What pid 1 said last.
    pub(crate) turn: Turn,
}

/// What one turn of the loop brought.
#[derive(Debug)]
pub(crate) enum Turn {
    Message(FromInit),
    /// Pid 1 is gone.
    Gone,
    Nothing,
}

impl<'p> Supervisor<'p> {
    pub(crate) fn new(
        running: Running,
        (mut control, own_client): (Control<'p>, OwnClient),
        display: Display,
        clock: Clock<'p>,
        (incidents, escape): (Incidents, EscapeWatch),
        endpoints: Endpoints<'p>,
    ) -> Self {
        let Endpoints { asking, stores, veto, claim_record, gate, egress } = endpoints;
        if running.spawner().is_none() {
            // The one command that the launch brings with it.
            control.commands.add(None, None);
        }
        Self {
            running,
            phase: Phase::Starting,
            control,
            own_client,
            display,
            clock,
            registration: None,
            killed: None,
            incidents,
            escape,
            looked_at: 0,
            marked: 0,
            asking,
            stores,
            veto,
            claim_record,
            gate,
            egress,
            unlogged: Vec::new(),
            checked: Checked::default(),
            ending: None,
            serving: Vec::new(),
            turn: Turn::Nothing,
        }
    }

    /// Goes on to this phase. The audit log gets what belongs to it with the next turn of the loop.
    pub(crate) fn enter(&mut self, phase: Phase) {
        fault::point("phase", phase.name());
        self.phase = phase;
    }

    /// Whether commands run, or can be started, and the terminal is theirs.
    pub(crate) fn is_started(&self) -> bool {
        self.phase > Phase::Starting
    }

    /// What the self-check saw.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// For the report of a run whose command did not start.
    pub fn limits_so_far(&self) -> Tally {
        self.clock.limits.so_far(self.running.group())
    }

    /// The signals that came so far.
    pub fn forwarded(&self) -> &[SignalForwarded] {
        &self.own_client.forwarded
    }

    /// What came so far and is yet to be logged.
    pub fn take_unlogged(&mut self) -> Vec<EventKind> {
        (self.looked_at, self.marked) = (0, 0);
        std::mem::take(&mut self.unlogged)
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The process beside the sandbox that starts further commands, on the host.
    pub fn spawner(&self) -> Option<u32> {
        self.running.roots().get(1).copied()
    }

    /// From now on others may find the run.
    pub fn announce(&mut self, registration: impl RunRegistration + 'p) {
        self.registration = Some(Box::new(registration));
    }

    /// Directories of the control group.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        self.running.group().map(RunGroup::directories).unwrap_or_default()
    }

    pub(crate) fn kill(&mut self, why: Killed) -> Result<()> {
        self.killed.get_or_insert(why);
        self.clock.deadlines.insist(Instant::now() + TO_END_EVERYBODY);
        self.clock.limits.forget();
        Ok(self.running.kill()?)
    }
}
