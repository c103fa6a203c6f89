//! The brokered calls, performed: each resolves, asks the judge, acts through descriptors it holds, and
//! says what the caller gets.
//!
//! `Continue` is for what Landlock does not answer, whatever other threads do meanwhile; each one says why. Everything
//! else is performed here, or gets the errno that was seen here: between our look and the kernel's another thread may
//! have made the missing directory, and Landlock would refuse what the caller may do.

pub(crate) mod descriptor;
pub(crate) mod lent;
mod modes;
pub(crate) mod moving;
mod object;
mod opening;
pub(crate) mod owners;
mod removing;
pub(crate) mod socket;

use crate::call::{Call, PathArg};
use crate::caller::{Caller, Umasks, set_own_umask};
use crate::git;
use crate::judge::Judge;
use crate::lock::{Company, LockError, Locks, Needed};
use crate::numbered::numbered_descriptor;
use crate::operations::Operations;
use crate::overlay_move::DirectoryMove;
use crate::perform::owners::RootOwner;
use crate::place::{Found, Map, ResolvedParent, Start};
use crate::slow;
use crate::staging::StagedConfigs;
use crate::verdict::{Allowed, Coming, Denied};
use palisade_sys::notify::Response;
use palisade_sys::{Errno, Mode};
use rustix::fs::{FileType, mkdirat, mknodat, symlinkat};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What becomes of a brokered call.
#[derive(Debug)]
pub(crate) enum Done {
    Answer(Response),
    /// The caller gets this file.
    File(OwnedFd),
    /// The same, and nobody had made it before.
    Made(OwnedFd),
    /// It may block for long, so a child of ours is to do it.
    Later(slow::Opening),
    /// It may take long, so a thread of its own is to do it.
    Moving(Box<DirectoryMove>),
    Denied {
        path: PathBuf,
        denied: Denied,
    },
    /// It would make a name in scaffolding of ours, where the host may have something.
    Unseen(ResolvedParent),
    /// Done, and worth telling.
    Socket(PathBuf),
    /// Refused as the filter would refuse it, and told like that.
    Refused(Errno),
    /// Another run in the same tree does not finish its call.
    Busy {
        tree: PathBuf,
        is_first: bool,
    },
    /// Nothing was done: it needs what only the server has.
    LeftToServer,
}

impl Done {
    /// Whether something was done, or is about to be.
    fn is_performed(&self) -> bool {
        match self {
            Self::Answer(response) => matches!(response, Response::Value(_)),
            Self::File(_) | Self::Made(_) | Self::Socket(_) => true,
            Self::Later(_) | Self::Moving(_) => true,
            Self::Denied { .. } | Self::Unseen(_) | Self::Refused(_) => false,
            Self::Busy { .. } | Self::LeftToServer => false,
        }
    }
}

pub(crate) const CONTINUE: Done = Done::Answer(Response::Continue);

/// A call in two trees finds out what it needs one after the other, each first shared and then alone.
const MAX_ATTEMPTS: usize = 8;

/// Everything a thread of the broker works with between two calls.
#[derive(Debug)]
pub(crate) struct CallExecutor {
    pub(crate) locks: Locks,
    pub(crate) map: Arc<Map>,
    pub(crate) judge: Arc<Judge>,
    /// Git configuration that is being written; none where that is left to the server.
    pub(crate) staged: StagedConfigs,
    pub(crate) stages: bool,
    /// Whether what the host has behind our scaffolding is to be asked about before something is made there.
    pub(crate) asks_first: bool,
    /// Whether Landlock handles truncation.
    pub(crate) landlock_truncates: bool,
    /// Of a command that root started.
    pub(crate) root_owner: Option<Arc<RootOwner>>,
    pub(crate) umasks: Arc<Umasks>,
    /// Where what was done is told. None: it is not.
    pub(crate) operations: Option<Arc<Operations>>,
    /// What this call writes, as it was judged.
    pub(crate) judged_paths: Vec<PathBuf>,
}

/// How a call ends that is not performed.
pub(crate) enum Stop {
    Fail(Errno),
    /// It has to be tried again with more locks.
    Lock(Needed),
    Denied(PathBuf, Denied),
    /// To be asked about first.
    Unseen(Box<ResolvedParent>),
    /// Left to the kernel, which reads the arguments anew: only where Landlock will not be the one to answer.
    Continue,
    LeftToServer,
}

/// What became of a call, or of a part of it.
pub(crate) type Outcome<T = Done> = Result<T, Stop>;

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

impl CallExecutor {
    /// The same for another thread, which leaves to the server what writes git configuration.
    pub(crate) fn for_another_thread(&self) -> Self {
        Self {
            locks: self.locks.for_another_thread(),
            map: Arc::clone(&self.map),
            judge: Arc::clone(&self.judge),
            staged: StagedConfigs::default(),
            stages: false,
            asks_first: self.asks_first,
            landlock_truncates: self.landlock_truncates,
            root_owner: self.root_owner.clone(),
            umasks: Arc::clone(&self.umasks),
            operations: self.operations.clone(),
            judged_paths: Vec::new(),
        }
    }

    pub(crate) fn perform(&mut self, caller: &Caller, call: Call) -> Done {
        let needed = match call {
            Call::Rename { .. } => self.locks.guess(Company::Alone),
            Call::Remove { .. } => Locks::nothing(),
            _ => self.locks.guess(Company::Shared),
        };
        let turn = if call.may_go_beside_others() { Company::Shared } else { Company::Alone };
        let done = self.with_locks((needed, turn), |shop| shop.attempt(caller, call));
        self.tell_of(caller, &done);
        done
    }

    /// For the audit log, where it has operations on files.
    pub(crate) fn tell_of(&self, caller: &Caller, done: &Done) {
        if let Some(operations) = self.operations.as_ref().filter(|_| done.is_performed()) {
            operations.tell(caller, &self.judged_paths);
        }
    }

    /// Tries it with these locks in such a turn, and again with those that it turned out to need.
    pub(crate) fn with_locks(
        &mut self,
        (mut needed, turn): (Needed, Company),
        mut attempt: impl FnMut(&mut Self) -> Outcome,
    ) -> Done {
        for _ in 0..MAX_ATTEMPTS {
            let turn = match self.locks.take(needed, turn) {
                Ok(turn) => turn,
                Err(LockError::Busy { tree, is_first }) => return Done::Busy { tree, is_first },
                Err(LockError::Failed(errno)) => return Done::Answer(Response::Fail(errno)),
            };
            self.judged_paths.clear();
            let outcome = attempt(self);
            self.locks.release(turn);
            needed = match outcome {
                Ok(done) => return done,
                Err(Stop::Fail(errno)) => return Done::Answer(Response::Fail(errno)),
                Err(Stop::Denied(path, denied)) => return Done::Denied { path, denied },
                Err(Stop::Unseen(place)) => return Done::Unseen(*place),
                Err(Stop::Continue) => return CONTINUE,
                Err(Stop::LeftToServer) => return Done::LeftToServer,
                Err(Stop::Lock(more)) => more,
            };
        }
        Done::Answer(Response::Fail(Errno::BUSY))
    }

    fn attempt(&mut self, caller: &Caller, call: Call) -> Outcome {
        match call {
            Call::Open { path, flags, mode } => self.open(caller, path, flags, mode),
            Call::MakeDirectory { path, mode } => self.make_directory(caller, path, mode),
            Call::MakeNode { path, mode, device } => self.make_node(caller, path, mode, device),
            Call::Rename { from, to, flags } => self.rename(caller, from, to, flags),
            Call::Link { from, to, flags } => self.link(caller, from, to, flags),
            Call::SymbolicLink { target, path } => self.symbolic_link(caller, target, path),
            Call::Remove { path, flags } => self.remove(caller, path, flags),
            Call::Bind { socket, address, length } => self.bind(caller, socket, address, length),
            Call::Truncate { path, length } => self.truncate(caller, path, length),
            Call::ChangeMode { path, mode, flags } => self.change_mode(caller, path, mode, flags),
            Call::ChangeModeOf { file, mode } => self.change_mode_of(caller, file, mode),
            Call::ChangeOwner { path, owner, flags } => {
                self.change_owner(caller, path, owner, flags)
            }
            Call::ChangeOwnerOf { file, owner } => self.change_owner_of(caller, file, owner),
            Call::ChangeTimes { .. } | Call::ChangeAttribute { .. } => {
                self.changed_by_kernel(caller, call)
            }
            Call::Umask => {
                self.umasks.forget();
                // It names no file.
                Ok(CONTINUE)
            }
        }
    }

    fn make_directory(&mut self, caller: &Caller, path: PathArg, mode: u32) -> Outcome {
        let bytes = caller.path(path.address)?;
        let place = self.place(Start::Caller(caller, path.dir), &bytes)?;
        self.make_directory_in(caller, &place, mode)
    }

    pub(crate) fn make_directory_in(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        mode: u32,
    ) -> Outcome {
        let allowed = self.judged_new(place, Coming::Directory)?;
        self.take_umask(caller)?;
        caller.confirm()?;
        let make = || mkdirat(&place.parent, &place.name, Mode::from_raw_mode(mode & 0o7777));
        match allowed {
            Allowed::AsNewborn => self.judge.remember(place.parent.as_fd(), &place.name, make)?,
            allowed => {
                make()?;
                self.note(place, allowed);
            }
        }
        Ok(done())
    }

    /// A pipe is judged like a file: one called `.git/config` or `.envrc` would feed a program of the host whatever
    /// somebody inside writes into it. So is a socket: git takes a directory for a repository if something executable
    /// in it is called `objects` and `refs`, and does not ask what.
    fn make_node(&mut self, caller: &Caller, path: PathArg, mode: u32, device: u64) -> Outcome {
        node_kind(mode)?;
        let bytes = caller.path(path.address)?;
        let place = self.place(Start::Caller(caller, path.dir), &bytes)?;
        self.make_node_in(caller, &place, mode, device)
    }

    pub(crate) fn make_node_in(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        mode: u32,
        device: u64,
    ) -> Outcome {
        let kind = node_kind(mode)?;
        let is_whiteout = kind == FileType::CharacterDevice && device == 0;
        if place.is_directory_meant {
            return Err(nothing_is_made(place).into());
        }
        let allowed = self.judged_new(place, Coming::Written)?;
        if allowed == Allowed::AsJudgedContent && kind != FileType::RegularFile {
            return Err(Stop::Denied(place.path.clone(), git::config_denied()));
        }
        if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) && !is_whiteout {
            // Nobody inside has CAP_MKNOD, and we do not try whether we have.
            let exists = crate::exists::exists(place.parent.as_fd(), &place.name);
            return Err(if exists { Errno::EXIST } else { Errno::PERM }.into());
        }
        self.take_umask(caller)?;
        caller.confirm()?;
        mknodat(&place.parent, &place.name, kind, Mode::from_raw_mode(mode & 0o7777), 0)?;
        self.note(place, allowed);
        Ok(done())
    }

    fn symbolic_link(&mut self, caller: &Caller, target: u64, path: PathArg) -> Outcome {
        let target = caller.path(target)?;
        if target.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let bytes = caller.path(path.address)?;
        let place = self.place(Start::Caller(caller, path.dir), &bytes)?;
        self.symbolic_link_in(caller, &target, &place)
    }

    pub(crate) fn symbolic_link_in(
        &mut self,
        caller: &Caller,
        target: &[u8],
        place: &ResolvedParent,
    ) -> Outcome {
        if place.is_directory_meant {
            return Err(nothing_is_made(place).into());
        }
        let allowed = self.judged_new(place, Coming::SymbolicLink)?;
        self.may_lead(place, target)?;
        caller.confirm()?;
        symlinkat(OsStr::from_bytes(target), &place.parent, &place.name)?;
        self.note(place, allowed);
        Ok(done())
    }

    /// With mounts of our own Landlock does not handle truncation, which would slow down every open: then it is never left
    /// to the kernel, and outside of the trees the mounts say what may be written. Without them Landlock does, and answers
    /// for all that is not in a tree.
    fn truncate(&mut self, caller: &Caller, path: PathArg, length: u64) -> Outcome {
        if length > i64::MAX.cast_unsigned() {
            return Err(Errno::INVAL.into());
        }
        let bytes = caller.path(path.address)?;
        let start = Start::Caller(caller, path.dir);
        let held = numbered_descriptor(&bytes, caller);
        let is_held = held.is_some();
        let file = match held {
            Some(number) => self.held_for_writing(caller, number)?,
            None => self.map.open_to_truncate(start, &bytes)?,
        };
        let place = match self.present_place(&file) {
            // Too deep to be told by its file: by the directory it is in.
            Err(Errno::NAMETOOLONG) => match self.map.locate_target(start, &bytes)? {
                Found::Ours(place) if place.is(&file) => Some(place),
                _ => return Err(Errno::NAMETOOLONG.into()),
            },
            place => place?,
        };
        let mut config = None;
        match &place {
            Some(place) => {
                let allowed = self.judged(place, Coming::Written)?;
                config = (allowed == Allowed::AsJudgedContent).then_some(place);
            }
            None if self.landlock_truncates && !is_held => return Err(Stop::Continue),
            None => {}
        }
        let limit = caller.largest_file().ok_or(Errno::SRCH)?;
        caller.confirm()?;
        let found = rustix::fs::fstat(&file)?;
        // setrlimit(2): for the caller's limit it is the broker that would be asked.
        if length > limit && length > found.st_size.cast_unsigned() {
            return Err(Errno::FBIG.into());
        }
        if let Some(place) = config {
            return self.truncate_config(caller, place, length);
        }
        rustix::fs::ftruncate(&file, length)?;
        Ok(done())
    }

    /// Where a path leads, if that is where calls are performed.
    pub(crate) fn place_of(
        &self,
        caller: &Caller,
        path: PathArg,
        follow: bool,
    ) -> Option<ResolvedParent> {
        let bytes = caller.path(path.address).ok()?;
        let start = Start::Caller(caller, path.dir);
        let found = if follow {
            self.map.locate_target(start, &bytes)
        } else {
            self.map.locate(start, &bytes)
        };
        match found {
            Ok(Found::Ours(place)) => Some(place),
            _ => None,
        }
    }

    pub(crate) fn place(&self, start: Start<'_>, path: &[u8]) -> Outcome<ResolvedParent> {
        ours(self.map.locate(start, path)?)
    }

    /// Holds what a judgement about `tree` depends on until the call is performed.
    pub(crate) fn hold(&mut self, tree: Option<&Path>, company: Company) -> Outcome<()> {
        self.locks.missing_for(tree, company).map_or(Ok(()), |needed| Err(Stop::Lock(needed)))
    }

    pub(crate) fn judged(
        &mut self,
        place: &ResolvedParent,
        coming: Coming<'_>,
    ) -> Outcome<Allowed> {
        let company = match coming {
            Coming::Moved | Coming::MovedLink | Coming::MovedDirectory(_) => Company::Alone,
            _ => company_of(&place.name),
        };
        if self.operations.is_some() {
            self.judged_paths.push(place.path.clone());
        }
        self.hold(place.tree.as_deref(), company)?;
        if self.asks_first
            && place.tree.is_none()
            && !crate::exists::exists(place.parent.as_fd(), &place.name)
        {
            return Err(Stop::Unseen(Box::new(place.duplicate()?)));
        }
        self.judge
            .may_come(place, coming)
            .map_err(|denied| Stop::Denied(place.path.clone(), denied))
    }

    /// For what only makes something new: that a name is taken is said before whether it may be had.
    pub(crate) fn judged_new(
        &mut self,
        place: &ResolvedParent,
        coming: Coming<'_>,
    ) -> Outcome<Allowed> {
        match self.judged(place, coming) {
            Err(Stop::Denied(..)) if crate::exists::exists(place.parent.as_fd(), &place.name) => {
                Err(Errno::EXIST.into())
            }
            judged => judged,
        }
    }

    pub(crate) fn may_lead(&self, place: &ResolvedParent, target: &[u8]) -> Outcome<()> {
        self.judge
            .may_lead(place, target)
            .map_err(|denied| Stop::Denied(place.path.clone(), denied))
    }

    /// Whether what stands there may be written by another name than its own, or without one.
    pub(crate) fn may_be_written(&mut self, place: &ResolvedParent) -> Outcome<()> {
        self.hold(place.tree.as_deref(), company_of(&place.name))?;
        self.judge.may_be_linked(place).map_err(|denied| Stop::Denied(place.path.clone(), denied))
    }

    pub(crate) fn note(&self, place: &ResolvedParent, allowed: Allowed) {
        match allowed {
            Allowed::AsOldRepository => self.judge.forget(place.parent.as_fd()),
            // A directory is remembered as it is made.
            Allowed::Plainly | Allowed::AsNewborn | Allowed::AsJudgedContent => {}
        }
    }

    /// What is made gets the modes the caller would have given it.
    pub(crate) fn take_umask(&self, caller: &Caller) -> Result<(), Errno> {
        let umask = self.umasks.of(caller)?;
        set_own_umask(umask);
        Ok(())
    }
}

/// What makes a git directory changes what other names in it mean.
fn company_of(name: &OsStr) -> Company {
    if git::makes_git_directory(name) { Company::Alone } else { Company::Shared }
}

/// As may_mknod() has it, before anything is said of the path.
fn node_kind(mode: u32) -> Result<FileType, Errno> {
    match FileType::from_raw_mode(mode) {
        kind @ (FileType::RegularFile
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice) => Ok(kind),
        _ if mode & 0o170_000 == 0 => Ok(FileType::RegularFile),
        FileType::Directory => Err(Errno::PERM),
        _ => Err(Errno::INVAL),
    }
}

pub(crate) fn done() -> Done {
    Done::Answer(Response::Value(0))
}

pub(crate) fn ours(found: Found) -> Outcome<ResolvedParent> {
    match found {
        Found::Ours(place) => Ok(place),
        // Of each kind the definition says why the kernel may answer.
        Found::Descriptor(_) | Found::NoName | Found::Elsewhere => Err(Stop::Continue),
    }
}

/// With a slash behind its name nothing but a directory is made (filename_create()).
pub(crate) fn nothing_is_made(place: &ResolvedParent) -> Errno {
    if crate::exists::exists(place.parent.as_fd(), &place.name) {
        Errno::EXIST
    } else {
        Errno::NOENT
    }
}
