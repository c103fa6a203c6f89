//! Work on the changes of a session's project while the session lives. It takes as long as a disk takes, so processes of their
//! own do it, one for each kind of work: clients and commands wait for none of it here.

use crate::poll_set::{PollSet, Ready};
use palisade_launch::{LaunchError, Running, Worker};
use rustix::event::PollFlags;
use std::fmt::Debug;
use std::rc::Rc;

/// What a session can do. Called in a process that has no descriptor of this one.
pub trait ProjectWork: Debug {
    /// Sees to it that the checkpoints that were made so far are on disk.
    fn write_checkpoints(&self) -> Result<(), String>;
}

const WRITING: usize = 0;

#[derive(Debug)]
pub(crate) struct ProjectWorkers {
    /// None in a sandbox without a transaction.
    work: Option<Rc<dyn ProjectWork>>,
    writing: Option<Worker>,
    /// Asked for while one was writing, which may not have seen the last of it.
    is_wanted_again: bool,
}

impl ProjectWorkers {
    pub(crate) fn new(work: Option<Rc<dyn ProjectWork>>) -> Self {
        Self { work, writing: None, is_wanted_again: false }
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

    pub(crate) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        if let Some(worker) = &self.writing {
            set.add(WRITING, worker.watched(), PollFlags::IN);
        }
    }

    /// Says what went wrong.
    pub(crate) fn handle(&mut self, ready: &Ready, running: &Running) -> Option<String> {
        let worker = self.writing.take_if(|_| !ready.at(WRITING).is_empty())?;
        let mut failure = worker.result().err();
        if std::mem::take(&mut self.is_wanted_again) {
            failure = self.write_checkpoints(running).err().map(|error| error.to_string());
        }
        failure.map(|why| format!("checkpoints are not on disk yet: {why}"))
    }
}
