//! Watches one running sandbox from outside: its messages, our signals, the terminal, the clock.
//!
//! One poll loop, no threads. It never runs anything of the command's and never waits on it without
//! also listening for signals.

mod sources;

use crate::answers::SharedStore;
use crate::asking::Asking;
use crate::control::commands::Commands;
use crate::deadlines::Deadlines;
use crate::egress::{EgressControl, EgressSummary};
use crate::error::SupervisorError;
use crate::gate::{Gate, Touched};
use crate::incidents::Incidents;
use crate::limits::{Limits, Tally};
use crate::output::{Delivered, Outputs};
use crate::relay::{Ends, Relay, Typed};
use crate::signals::{self, Signals, Wish};
use crate::terminal::HostTerminal;
use palisade_launch::{
    Checked, ExitCause, FromInit, LaunchError, PrivateHome, RunGroup, Running, TO_END_EVERYBODY,
    Watched,
};
use palisade_plan::limit::LimitKind;
use palisade_record::{EventKind, RecordError, SignalForwarded, UnaskedQuestions};
use rustix::process::Signal;
use sources::DEATH_OF_INIT;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

/// How many signals are recorded one by one; more are only counted.
const MAX_RECORDED: usize = 200;

/// Why the supervisor itself ended the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The wall-time limit; it was asked to end first.
    Timeout,
    /// A fatal signal, and the grace time is over or it came twice.
    Asked,
    /// Too many suspicious system calls.
    Suspicious,
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

/// Where the command's outputs go, as far as they go through us.
#[derive(Debug)]
pub(crate) struct Displayed {
    pub(crate) terminal: Option<HostTerminal>,
    pub(crate) outputs: Outputs,
    /// Bytes of each that its reader gets.
    pub(crate) limit: Option<u64>,
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
    pub(crate) gate: Option<Gate<'p>>,
    pub(crate) egress: Option<EgressControl<'p>>,
    /// None where the sandbox ends with its command.
    pub(crate) commands: Option<Commands>,
}

/// A running sandbox and everything outside that it needs.
#[derive(Debug)]
pub struct Supervisor<'p> {
    pub(crate) running: Running,
    pub(crate) signals: Signals,
    pub(crate) terminal: Option<HostTerminal>,
    pub(crate) relay: Relay,
    /// Outputs that are capped and no terminal.
    pub(crate) outputs: Outputs,
    pub(crate) deadlines: Deadlines,
    pub(crate) limits: Limits<'p>,
    /// None before the command runs.
    pub(crate) registration: Option<Box<dyn RunRegistration + 'p>>,
    pub(crate) killed: Option<Killed>,
    pub(crate) forwarded: Vec<SignalForwarded>,
    pub(crate) forwarded_beyond: u64,
    /// For the command, as soon as there is one.
    pub(crate) held_back: Vec<Signal>,
    /// When it was told to stop, last.
    pub(crate) stop_asked: Option<Instant>,
    pub(crate) incidents: Incidents,
    pub(crate) asking: Asking,
    pub(crate) stores: SharedStore,
    /// None where nothing on the host is asked about.
    pub(crate) gate: Option<Gate<'p>>,
    /// None where there is none, or no wall around it.
    pub(crate) egress: Option<EgressControl<'p>>,
    /// What of it is yet to be logged.
    pub(crate) unlogged: Vec<EventKind>,
    /// Whether the command runs, and the terminal is its.
    pub(crate) started: bool,
    /// Whether the terminal went while a question stood in it: nothing more is typed there.
    pub(crate) is_hung_up: bool,
    /// In a sandbox that outlives them.
    pub(crate) commands: Option<Commands>,
    /// Whether pid 1 was told to end everything.
    pub(crate) is_ending: bool,
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
        signals: Signals,
        shown: Displayed,
        clock: Clock<'p>,
        incidents: Incidents,
        doors: Endpoints<'p>,
    ) -> Self {
        let Endpoints { asking, stores, gate, egress, commands } = doors;
        let Displayed { terminal, outputs, limit } = shown;
        let Clock { deadlines, limits } = clock;
        let typed = terminal.as_ref().map_or(Typed::Keys, HostTerminal::typed);
        let size = terminal.as_ref().map_or((0, 0), HostTerminal::size);
        Self {
            running,
            signals,
            terminal,
            relay: Relay::new(typed, limit, size),
            outputs,
            deadlines,
            limits,
            registration: None,
            killed: None,
            forwarded: Vec::new(),
            forwarded_beyond: 0,
            held_back: Vec::new(),
            stop_asked: None,
            incidents,
            asking,
            stores,
            gate,
            egress,
            unlogged: Vec::new(),
            started: false,
            is_hung_up: false,
            commands,
            is_ending: false,
            serving: Vec::new(),
            turn: Turn::Nothing,
        }
    }

    /// Until the command's exec. After an error nothing of the command ran.
    pub fn until_started(
        &mut self,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Checked, SupervisorError> {
        let mut checked = Checked::default();
        loop {
            let turn = self.turn()?;
            self.tell_notices(tell);
            match turn {
                Turn::Message(FromInit::Terminal) => self.accept_pty()?,
                Turn::Message(FromInit::Network(_)) => self.open_way_out()?,
                Turn::Message(FromInit::Checked(seen)) => checked = seen,
                // Killed already, and faster than that.
                Turn::Message(FromInit::Started) if self.killed.is_some() => {
                    return Err(self.why_not_started());
                }
                Turn::Message(FromInit::Started) => {
                    self.begin()?;
                    return Ok(checked);
                }
                Turn::Message(FromInit::Failed(error)) => return Err(self.launch_failed(error)?),
                Turn::Message(FromInit::Stopped(_) | FromInit::Exited(_)) | Turn::Gone => {
                    return Err(self.why_not_started());
                }
                Turn::Message(FromInit::PrivateHome { .. } | FromInit::NetworkCounters)
                | Turn::Nothing => {}
            }
            match self.commands.as_mut().and_then(Commands::take_launched) {
                None => {}
                Some(Ok(_)) if self.killed.is_some() => return Err(self.why_not_started()),
                Some(Ok(checked)) => {
                    self.begin()?;
                    return Ok(checked);
                }
                Some(Err(error)) => return Err(self.launch_failed(error)?),
            }
        }
    }

    /// Commands run from here on, or can be started.
    fn begin(&mut self) -> Result<(), SupervisorError> {
        self.started = true;
        self.limits.started(&self.running);
        for signal in std::mem::take(&mut self.held_back) {
            self.pass_on(signal)?;
        }
        if self.incidents.is_too_many() {
            self.kill(Killed::Suspicious)?;
        }
        match self.commands.as_mut().map(Commands::announce) {
            Some(outcome) => self.follow(outcome),
            None => Ok(()),
        }
    }

    /// Why, in the words of who knows most.
    fn launch_failed(&mut self, error: LaunchError) -> Result<SupervisorError, SupervisorError> {
        if self.ran_out_of_memory() {
            return Ok(SupervisorError::OutOfMemory);
        }
        let death = self.died_while_starting()?;
        Ok(death.map_or_else(|| error.into(), SupervisorError::HelperDied))
    }

    fn why_not_started(&mut self) -> SupervisorError {
        let asked = self.forwarded.iter().find(|signal| signal.fatal);
        match (self.killed, asked) {
            (Some(Killed::Timeout), _) => SupervisorError::TimedOut,
            (Some(Killed::Asked), Some(asked)) => {
                SupervisorError::Cancelled { number: asked.signal, name: asked.name.clone() }
            }
            _ if self.ran_out_of_memory() => SupervisorError::OutOfMemory,
            _ => match self.died_while_starting() {
                Ok(death) => SupervisorError::HelperDied(death.unwrap_or(DEATH_OF_INIT)),
                Err(error) => error,
            },
        }
    }

    /// What some process holds in the kernel shows in none, and then any may be the one to go.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.limits_so_far().has_reached(LimitKind::Memory)
    }

    /// For the report of a run whose command did not start.
    pub fn limits_so_far(&self) -> Tally {
        self.limits.so_far(self.running.group())
    }

    /// The signals that came so far.
    pub fn forwarded(&self) -> &[SignalForwarded] {
        &self.forwarded
    }

    /// What came so far and is yet to be logged.
    pub fn take_unlogged(&mut self) -> Vec<EventKind> {
        std::mem::take(&mut self.unlogged)
    }

    /// Until nothing of the sandbox is left. Gives the signals back to who waits after that.
    pub fn until_ended(
        mut self,
        ears: Observers<'_>,
    ) -> Result<(ExitState, Signals), SupervisorError> {
        let Observers { log, tell } = ears;
        let mut ending = None;
        loop {
            // What came before the start as well.
            if !self.unlogged.is_empty() {
                log(self.take_unlogged())?;
            }
            let turn = self.turn();
            if turn.is_err() {
                self.sum_up();
                // What led to it is what somebody will look for.
                log(self.take_unlogged())?;
            }
            let turn = turn?;
            self.tell_notices(tell);
            match turn {
                Turn::Message(FromInit::Exited(how)) => {
                    ending = Some(how);
                    self.deadlines.forget();
                    self.limits.forget();
                    // Nobody is left to serve; the sandbox's mounts go with the last of the two. What the broker
                    // said so far tells whether it has something to finish.
                    self.hear_broker(usize::MAX)?;
                    self.running.dismiss_helpers();
                }
                Turn::Message(FromInit::Stopped(_)) => self.suspend()?,
                Turn::Message(_) | Turn::Nothing => {}
                Turn::Gone => break,
            }
        }
        self.drain()?;
        // What was told before the last of them died; nobody is left to tell more.
        self.hear_broker(usize::MAX)?;
        self.close_way_out();
        self.sum_up();
        if !self.unlogged.is_empty() {
            log(self.take_unlogged())?;
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.give_back();
        }
        self.check_that_nobody_died(ending)?;
        let usage = self.running.wait()?;
        let private_home = self.running.take_private_home();
        let network_counters = self.running.take_network_counters();
        let group = self.running.take_group();
        let Self { killed, forwarded, forwarded_beyond, incidents, signals, limits, .. } = self;
        let touched = self.gate.map(Gate::end).unwrap_or_default();
        let egress_summary = self.egress.map(EgressControl::end);
        let unasked = self.asking.unasked();
        let notes = self.asking.into_notes();
        let mut output = self.outputs.end();
        output.capped.extend(self.relay.capped());
        let tally = limits.end(group, ending, &usage, &output.capped)?;
        let ended = ExitState {
            ending,
            killed,
            forwarded,
            forwarded_beyond,
            tally,
            incidents,
            touched,
            private_home,
            network_counters,
            egress_summary,
            unasked,
            notes,
            output,
        };
        Ok((ended, signals))
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// From now on others may find the run.
    pub fn announce(&mut self, registration: impl RunRegistration + 'p) {
        self.registration = Some(Box::new(registration));
    }

    /// Directories of the control group.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        self.running.group().map(RunGroup::directories).unwrap_or_default()
    }

    /// What was only counted so far comes into the log: nothing more is counted.
    fn sum_up(&mut self) {
        self.unlogged.extend(self.incidents.take_sums());
        self.unlogged.extend(self.gate.as_mut().map(Gate::take_sums).unwrap_or_default());
    }

    fn turn(&mut self) -> Result<Turn, SupervisorError> {
        sources::turn(self)?;
        Ok(std::mem::replace(&mut self.turn, Turn::Nothing))
    }

    pub(crate) fn obey(&mut self, wish: Wish) -> Result<(), SupervisorError> {
        match wish {
            Wish::Forward(signal) => {
                self.note(signal, false);
                self.pass_on(signal)
            }
            Wish::End(signal) => {
                self.note(signal, true);
                self.deadlines.asked(Instant::now());
                if self.commands.is_some() && self.started {
                    return self.end_sandbox();
                }
                self.pass_on(signal)
            }
            Wish::EndAtOnce(signal) => {
                self.note(signal, true);
                self.kill(Killed::Asked)
            }
            Wish::Resize => self.resize(),
            Wish::Continue => {
                self.note(Signal::CONT, false);
                self.resize()?;
                Ok(self.running.resume()?)
            }
        }
    }

    pub(crate) fn pass_on(&mut self, signal: Signal) -> Result<(), SupervisorError> {
        // Before its exec our own code would get it.
        if !self.started {
            self.held_back.push(signal);
            return Ok(());
        }
        if self.commands.is_some() {
            self.signal_commands(signal);
            return Ok(());
        }
        if signal == Signal::TSTP {
            self.stop_asked = Some(Instant::now());
        }
        Ok(self.running.signal(signal.as_raw())?)
    }

    pub(crate) fn note(&mut self, signal: Signal, fatal: bool) {
        if self.forwarded.len() >= MAX_RECORDED {
            self.forwarded_beyond += 1;
            return;
        }
        let name = signals::name(signal).to_owned();
        let noted = SignalForwarded { signal: signal.as_raw(), name, fatal };
        self.forwarded.push(noted.clone());
        self.unlogged.push(EventKind::SignalForwarded(noted));
    }

    pub(crate) fn kill(&mut self, why: Killed) -> Result<(), SupervisorError> {
        self.killed.get_or_insert(why);
        self.deadlines.insist(Instant::now() + TO_END_EVERYBODY);
        self.limits.forget();
        Ok(self.running.kill()?)
    }
}

pub(crate) fn ends<'fd>(
    running: &'fd Running,
    terminal: Option<&'fd HostTerminal>,
) -> Option<Ends<'fd>> {
    let terminal = terminal?;
    let pty = running.pty()?;
    let input = terminal.may_read().then(|| terminal.input());
    Some(Ends { input, output: terminal.output(), pty })
}

/// Whether somebody with job control is there to send SIGCONT. In an orphaned process group (the
/// only program of a terminal window) the kernel ignores Ctrl-Z, and so do we.
pub(crate) fn a_shell_could_continue_us() -> bool {
    use palisade_sys::proc::{own_group, session_of};
    let Ok(session) = session_of(None) else { return false };
    let parent_session =
        rustix::process::getppid().and_then(|parent| session_of(Some(parent)).ok());
    own_group() != session && parent_session == Some(session)
}
