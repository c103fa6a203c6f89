//! Work on the changes of a session's project while the session lives. It takes as long as a disk takes, so processes of their
//! own do it, one for each kind of work: clients and other commands wait for none of it here.

use crate::poll_set::{PollSet, Ready};
use palisade_launch::{CommandId, CommandStart, LaunchError, Running, Worker};
use palisade_plan::model::Plan;
use rustix::event::PollFlags;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a session can do. Called in a process that has no descriptor of this one.
pub trait ProjectWork: Debug {
    /// Sees to it that what is written down about the changes is on disk: without that, nobody could tell what is in them.
    fn write_records(&self) -> Result<(), String>;

    /// Keeps the present state, since a command is about to start.
    fn keep_state(&self) -> Result<(), String>;

    /// Sees to it that the checkpoints that were made so far are on disk.
    fn write_checkpoints(&self) -> Result<(), String>;
}

const WRITING: usize = 0;
const KEEPING: usize = 1;
const RECORDING: usize = 2;
/// When records are written to disk. Most runs are over by then, and nothing that a command wrote is on disk much earlier:
/// nothing of a transaction is synced while it runs.
const RECORDS_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct ProjectWorkers {
    /// None in a sandbox without a transaction.
    work: Option<Rc<dyn ProjectWork>>,
    writing: Option<Worker>,
    /// Asked for while one was writing, which may not have seen the last of it.
    is_wanted_again: bool,
    /// None once it has been done, or is not needed.
    records_due: Option<Instant>,
    recording: Option<Worker>,
    keeps_states: bool,
    /// For the first of those that wait.
    keeping: Option<Worker>,
    waiting: VecDeque<WaitingCommand>,
    /// For commands that waited, until they have started: before its exec our own code would get a signal.
    signals: BTreeMap<CommandId, BTreeSet<i32>>,
}

/// A command that starts when the state before it has been kept.
#[derive(Debug)]
pub(crate) struct WaitingCommand {
    pub(crate) start: CommandStart,
    pub(crate) streams: Vec<OwnedFd>,
}

impl ProjectWorkers {
    pub(crate) fn new(work: Option<Rc<dyn ProjectWork>>, plan: &Plan) -> Self {
        let transaction = plan.supervision.transaction.as_ref();
        let keeps_states = transaction.is_some_and(|planned| planned.checkpoint_each_command);
        Self {
            keeps_states: keeps_states && work.is_some(),
            records_due: work.as_ref().map(|_| Instant::now() + RECORDS_AFTER),
            recording: None,
            work,
            writing: None,
            is_wanted_again: false,
            keeping: None,
            waiting: VecDeque::new(),
            signals: BTreeMap::new(),
        }
    }

    /// Begins to write checkpoints to disk. False in a sandbox that has none.
    pub(crate) fn write_checkpoints(&mut self, running: &Running) -> Result<bool, LaunchError> {
        let Some(work) = &self.work else { return Ok(false) };
        match self.writing {
            Some(_) => self.is_wanted_again = true,
            None => self.writing = Some(Worker::start(running, || work.write_checkpoints())?),
        }
        Ok(true)
    }

    /// Whether a state is kept before each command, whoever starts it.
    pub(crate) fn keeps_states(&self) -> bool {
        self.keeps_states
    }

    /// A command waits until the state before it has been kept. Each has its own, in the order in which they came.
    pub(crate) fn keep_before(
        &mut self,
        start: CommandStart,
        streams: Vec<OwnedFd>,
        running: &Running,
    ) -> Result<(), LaunchError> {
        if self.keeping.is_none() {
            self.keeping = self.start_keeping(running)?;
        }
        self.signals.insert(start.id, BTreeSet::new());
        self.waiting.push_back(WaitingCommand { start, streams });
        Ok(())
    }

    fn start_keeping(&self, running: &Running) -> Result<Option<Worker>, LaunchError> {
        self.work.as_ref().map(|work| Worker::start(running, || work.keep_state())).transpose()
    }

    /// A signal for a command that waited and has not started. False if it has.
    pub(crate) fn hold_signal(&mut self, command: CommandId, signal: i32) -> bool {
        self.signals.get_mut(&command).map(|held| held.insert(signal)).is_some()
    }

    /// It has started, or never will: the signals that came before that.
    pub(crate) fn take_signals(&mut self, command: CommandId) -> BTreeSet<i32> {
        self.signals.remove(&command).unwrap_or_default()
    }

    /// The sandbox ends: none of them starts.
    pub(crate) fn cancel_starts(&mut self) -> Vec<CommandId> {
        self.keeping = None;
        self.waiting.drain(..).map(|waiting| waiting.start.id).collect()
    }

    pub(crate) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        let workers =
            [(WRITING, &self.writing), (KEEPING, &self.keeping), (RECORDING, &self.recording)];
        for (key, worker) in workers {
            if let Some(worker) = worker {
                set.add(key, worker.watched(), PollFlags::IN);
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.records_due
    }

    /// Has the records written when it is time. Says what went wrong.
    pub(crate) fn write_records_if_due(&mut self, running: &Running) -> Option<String> {
        self.records_due.take_if(|due| *due <= Instant::now())?;
        let work = self.work.as_ref()?;
        match Worker::start(running, || work.write_records()) {
            Ok(worker) => {
                self.recording = Some(worker);
                None
            }
            Err(error) => Some(not_recorded(&error.to_string())),
        }
    }

    /// Says what went wrong with the records.
    pub(crate) fn handle_recording(&mut self, ready: &Ready) -> Option<String> {
        let worker = self.recording.take_if(|_| !ready.at(RECORDING).is_empty())?;
        worker.result().err().as_deref().map(not_recorded)
    }

    /// Says what went wrong with writing.
    pub(crate) fn handle_writing(&mut self, ready: &Ready, running: &Running) -> Option<String> {
        let worker = self.writing.take_if(|_| !ready.at(WRITING).is_empty())?;
        let mut failure = worker.result().err();
        if std::mem::take(&mut self.is_wanted_again) {
            failure = self.write_checkpoints(running).err().map(|error| error.to_string());
        }
        failure.map(|why| format!("checkpoints are not on disk yet: {why}"))
    }

    /// Commands that need not wait any longer, and whether the state before each was kept.
    pub(crate) fn handle_keeping(
        &mut self,
        ready: &Ready,
        running: &Running,
    ) -> Vec<(WaitingCommand, Result<(), String>)> {
        let mut done = Vec::new();
        let Some(worker) = self.keeping.take_if(|_| !ready.at(KEEPING).is_empty()) else {
            return done;
        };
        done.extend(self.waiting.pop_front().map(|command| (command, worker.result())));
        while self.keeping.is_none() && !self.waiting.is_empty() {
            match self.start_keeping(running) {
                Ok(worker) => self.keeping = worker,
                Err(error) => {
                    let failed = self.waiting.pop_front();
                    done.extend(failed.map(|command| (command, Err(error.to_string()))));
                }
            }
        }
        done
    }
}

fn not_recorded(why: &str) -> String {
    format!("what is written down about the changes is not on disk yet: {why}")
}
