//! Calls that write git configuration in place, by name: performed on staging files, and committed when those
//! are closed.

use crate::brokered_trees::Placement;
use crate::caller::Caller;
use crate::caller::no_callers_remain;
use crate::git;
use crate::judge::setting;
use crate::lock::Company;
use crate::message::{BrokerMessage, Protected};
use crate::perform::{CallExecutor, Done, Outcome, Stop, done};
use crate::place::ResolvedParent;
use crate::serve::{BrokerServer, number_of};
use crate::slow;
use crate::staging::Writer;
use crate::verdict::Denied;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{FileType, fstat, openat};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Content that was written and not committed.
#[derive(Debug)]
pub(crate) struct NotCommitted {
    pub(crate) path: PathBuf,
    pub(crate) denied: Denied,
    pub(crate) writer: Writer,
}

impl CallExecutor {
    /// The umask is the caller's at this point.
    pub(crate) fn open_config(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        flags: OFlags,
        mode: Mode,
    ) -> Outcome {
        if !self.stages {
            return Err(Stop::LeftToServer);
        }
        // Creates it if requested, and returns the kernel's answer if it cannot be opened.
        let untouched = flags.difference(OFlags::TRUNC)
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC
            | OFlags::NOCTTY
            | OFlags::NONBLOCK;
        caller.confirm()?;
        let present = openat(&place.parent, &place.name, untouched, mode)?;
        if FileType::from_raw_mode(fstat(&present)?.st_mode) != FileType::RegularFile {
            return Err(Stop::Denied(place.path.clone(), git::config_denied()));
        }
        if flags & OFlags::RWMODE != OFlags::RDONLY {
            return self.stage(caller, place, flags).map(Done::File);
        }
        if flags.contains(OFlags::TRUNC) {
            self.stage(caller, place, OFlags::WRONLY | OFlags::TRUNC)?;
        }
        rustix::fs::fcntl_setfl(&present, flags & slow::SETTABLE)?;
        Ok(Done::File(present))
    }

    pub(crate) fn truncate_config(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        length: u64,
    ) -> Outcome {
        if !self.stages {
            return Err(Stop::LeftToServer);
        }
        let file = self.stage(caller, place, OFlags::WRONLY)?;
        rustix::fs::ftruncate(&file, length)?;
        Ok(done())
    }

    /// Returns a copy of the configuration that would be linked: a file with two names could be written through
    /// the other.
    pub(crate) fn link_config(
        &mut self,
        caller: &Caller,
        old: &ResolvedParent,
        new: &ResolvedParent,
    ) -> Outcome {
        self.hold(new.tree.as_deref(), Company::Alone)?;
        if crate::exists::exists(new.parent.as_fd(), &new.name) {
            return Err(Errno::EXIST.into());
        }
        caller.confirm()?;
        let source = (old.parent.as_fd(), old.name.as_os_str());
        let setting = setting(new, new.directory());
        match git::copy_config(source, new.parent.as_fd(), &new.name, &setting) {
            Ok(result) => result?,
            Err(denied) => return Err(Stop::Denied(new.path.clone(), denied)),
        }
        Ok(done())
    }

    fn stage(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        flags: OFlags,
    ) -> Outcome<OwnedFd> {
        let writer = || Writer { pid: number_of(caller.thread), executable: caller.program() };
        let name = (place.parent.as_fd(), place.name.as_os_str());
        Ok(self.staged.open(self.map.proc, name, flags, writer)?)
    }

    /// Commits what was closed since the last call, and returns what could not be.
    pub(crate) fn settle(&mut self) -> Vec<NotCommitted> {
        let mut refused = Vec::new();
        if self.staged.is_empty() {
            return refused;
        }
        self.commit_closed(&mut refused);
        self.staged.forget_unwritten();
        if self.staged.closed().next().is_some() {
            // Closed an instant ago, and nothing more will be told of it.
            self.commit_closed(&mut refused);
            self.staged.forget_unwritten();
        }
        refused
    }

    fn commit_closed(&mut self, refused: &mut Vec<NotCommitted>) {
        if self.staged.hear() {
            for staged in self.staged.closed() {
                let Ok(git_dir) = self.map.path_of(staged.dir.as_fd()) else { continue };
                let path = git_dir.join(&staged.name);
                let tree = match self.map.ground.standing(&path) {
                    Placement::In(tree) => tree,
                    Placement::Unjudged | Placement::Elsewhere => &git_dir,
                };
                let Some(needed) = self.locks.missing_for(Some(tree), Company::Alone) else {
                    continue;
                };
                // Otherwise tried again with the next call.
                let Ok(turn) = self.locks.take(needed, Company::Alone) else { continue };
                let committed = staged.commit(&git::setting(&git_dir, tree));
                self.locks.release(turn);
                if let Err(denied) = committed {
                    refused.push(NotCommitted { path, denied, writer: staged.writer.clone() });
                }
            }
        }
    }

    /// The same after the last process that could write has ended.
    pub(crate) fn settle_all(&mut self) -> Vec<NotCommitted> {
        self.staged.close_all();
        self.settle()
    }
}

impl BrokerServer<'_> {
    /// Called before every answer, so that a caller finds in place what any process has closed before.
    pub(crate) fn settle(&mut self) {
        if !self.executor.staged.is_empty() {
            let refused = self.executor.settle();
            self.tell_of_refused(refused);
            self.tell_of_staging(true);
        }
    }

    /// No caller is left, or the supervisor asked us to stop.
    pub(crate) fn leave(&mut self) -> ! {
        let refused = self.executor.settle_all();
        self.tell_of_refused(refused);
        // Whatever a worker performs for a caller that has just ended is done as a whole.
        let _none = self.parallel.wait_for_workers();
        self.moves.wait();
        no_callers_remain()
    }

    /// The supervisor waits for us at the end only if something is pending.
    pub(crate) fn tell_of_staging(&mut self, was_open: bool) {
        let is_open = !self.executor.staged.is_empty();
        if is_open != was_open && !self.moves.have_begun() {
            self.events.tell(&BrokerMessage::Staging { is_open });
        }
    }

    fn tell_of_refused(&mut self, refused: Vec<NotCommitted>) {
        for NotCommitted { path, denied, writer } in refused {
            self.events.tell(&BrokerMessage::Protected(Protected {
                call: "close".to_owned(),
                path: path.into_os_string().into_vec(),
                rule: denied.rule,
                why: denied.why,
                pid: writer.pid,
                executable: writer.executable,
            }));
        }
    }
}
