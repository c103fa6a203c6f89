//! The brokered calls, performed: each resolves, asks the judge, acts through descriptors it holds, and
//! says what the caller gets.

use crate::call::{CWD, Call, PathArg};
use crate::caller::{Caller, Umasks};
use crate::descriptor::own_descriptor;
use crate::git;
use crate::judge::{Allowed, Coming, Denied, Judge};
use crate::lock::{Company, Lock};
use crate::place::{Found, Map, Place, Start};
use crate::slow;
use crate::staging::StagedConfigs;
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::notify::Response;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, FileType, RenameFlags, linkat, mkdirat, mknodat, openat, renameat_with, statat,
    symlinkat,
};
use rustix::net::{SocketAddrUnix, bind};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// What becomes of a brokered call.
#[derive(Debug)]
pub(crate) enum Done {
    Answer(Response),
    /// The caller gets this file.
    File(OwnedFd),
    /// It may block for long, so a child of ours is to do it.
    Later(slow::Opening),
    Denied {
        path: PathBuf,
        denied: Denied,
    },
    /// Done, and worth telling.
    Socket(PathBuf),
}

const CONTINUE: Done = Done::Answer(Response::Continue);

/// Everything the broker works with between two calls.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) lock: Lock,
    /// How the lock is held in this call.
    pub(crate) company: Company,
    pub(crate) map: Map,
    pub(crate) judge: Judge,
    /// Git configuration that is being written.
    pub(crate) staged: StagedConfigs,
    pub(crate) umasks: Umasks,
    /// What was set last.
    pub(crate) own_umask: Mode,
}

/// How a call ends that is not performed.
pub(crate) enum Stop {
    Fail(Errno),
    /// It has to be tried again with nobody else at work.
    NotAlone,
    Denied(PathBuf, Denied),
    Continue,
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

impl Workshop {
    pub(crate) fn perform(&mut self, caller: &Caller, call: Call) -> Done {
        let is_rename = matches!(call, Call::Rename { .. });
        let mut company = if is_rename { Company::Alone } else { Company::Shared };
        loop {
            if let Err(errno) = self.lock.take(company) {
                return Done::Answer(Response::Fail(errno));
            }
            self.company = company;
            let outcome = self.attempt(caller, call);
            self.lock.release();
            return match outcome {
                Ok(done) => done,
                Err(Stop::Fail(errno)) => Done::Answer(Response::Fail(errno)),
                Err(Stop::Denied(path, denied)) => Done::Denied { path, denied },
                Err(Stop::Continue) => CONTINUE,
                Err(Stop::NotAlone) => {
                    company = Company::Alone;
                    continue;
                }
            };
        }
    }

    fn attempt(&mut self, caller: &Caller, call: Call) -> Result<Done, Stop> {
        match call {
            Call::Open { path, flags, mode } => self.open(caller, path, flags, mode),
            Call::MakeDirectory { path, mode } => self.make_directory(caller, path, mode),
            Call::MakeNode { path, mode } => self.make_node(caller, path, mode),
            Call::Rename { from, to, flags } => self.rename(caller, from, to, flags),
            Call::Link { from, to, flags } => self.link(caller, from, to, flags),
            Call::SymbolicLink { target, path } => self.symbolic_link(caller, target, path),
            Call::Bind { socket, address, length } => self.bind(caller, socket, address, length),
            Call::Truncate { path, length } => self.truncate(caller, path, length),
            Call::Umask => {
                self.umasks.forget();
                Ok(CONTINUE)
            }
        }
    }

    fn open(
        &mut self,
        caller: &Caller,
        path: PathArg,
        flags: u32,
        mode: u32,
    ) -> Result<Done, Stop> {
        let flags = OFlags::from_bits_retain(flags);
        let bytes = caller.path(path.address)?;
        let start = Start::Caller(caller, path.dir);
        if flags.contains(OFlags::TMPFILE) {
            // A file without a name, which a link could give one later. Callers know how to do without.
            let inside = [bytes.as_slice(), b"/x"].concat();
            self.place(start, &inside)?;
            return Err(Errno::OPNOTSUPP.into());
        }
        if flags.intersects(OFlags::PATH | OFlags::DIRECTORY) {
            return Err(Stop::Continue);
        }
        if bytes.ends_with(b"/") {
            // Only a directory can be meant, and those are not written.
            return Err(Stop::Continue);
        }
        let stays =
            flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::CREATE | OFlags::EXCL);
        let found = if stays {
            self.map.locate(start, &bytes)?
        } else {
            self.map.locate_target(start, &bytes)?
        };
        if let Found::Descriptor(number) = found {
            return self.open_descriptor(caller, number, flags);
        }
        let place = ours(found)?;
        if place.is_directory_meant {
            return Err(Stop::Continue);
        }
        let allowed = self.judged(&place, Coming::Written)?;
        self.take_umask(caller)?;
        if allowed == Allowed::AsGitConfig {
            let mode = Mode::from_raw_mode(mode & 0o7777);
            return self.open_config(caller, &place, flags, mode);
        }
        let is_new = flags.contains(OFlags::CREATE | OFlags::EXCL);
        // A pipe without a reader, or a file with a lease, would keep us; a new file has neither.
        let waiting = if is_new { OFlags::empty() } else { OFlags::NONBLOCK };
        let safely = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | waiting;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        caller.confirm()?;
        let file = match openat(&place.parent, &place.name, safely, mode) {
            Ok(file) => file,
            Err(Errno::NXIO | Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => {
                return Ok(slow::Opening::of(&place, flags)
                    .map_or_else(|errno| Done::Answer(Response::Fail(errno)), Done::Later));
            }
            Err(errno) => return Err(errno.into()),
        };
        if !waiting.is_empty() && !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&file, flags & slow::SETTABLE)?;
        }
        self.note(&place, allowed);
        Ok(Done::File(file))
    }

    fn make_directory(&mut self, caller: &Caller, path: PathArg, mode: u32) -> Result<Done, Stop> {
        let bytes = caller.path(path.address)?;
        let place = self.place(Start::Caller(caller, path.dir), &bytes)?;
        let allowed = self.judged(&place, Coming::Directory)?;
        self.take_umask(caller)?;
        caller.confirm()?;
        mkdirat(&place.parent, &place.name, Mode::from_raw_mode(mode & 0o7777))?;
        self.note(&place, allowed);
        Ok(done())
    }

    fn make_node(&mut self, caller: &Caller, path: PathArg, mode: u32) -> Result<Done, Stop> {
        let kind = FileType::from_raw_mode(mode);
        let kind = match kind {
            FileType::RegularFile | FileType::Fifo | FileType::Socket => kind,
            FileType::Unknown if mode & 0o170_000 == 0 => FileType::RegularFile,
            // Devices: the kernel refuses them itself.
            _ => return Err(Stop::Continue),
        };
        let bytes = caller.path(path.address)?;
        let place = self.file_place(Start::Caller(caller, path.dir), &bytes)?;
        let allowed = self.judged(&place, Coming::Written)?;
        if allowed == Allowed::AsGitConfig && kind != FileType::RegularFile {
            return Err(Stop::Denied(place.path, git::config_denied()));
        }
        self.take_umask(caller)?;
        caller.confirm()?;
        mknodat(&place.parent, &place.name, kind, Mode::from_raw_mode(mode & 0o7777), 0)?;
        self.note(&place, allowed);
        Ok(done())
    }

    fn rename(
        &mut self,
        caller: &Caller,
        from: PathArg,
        to: PathArg,
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = RenameFlags::from_bits_retain(flags);
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::INVAL.into());
        }
        let (old, new) = (caller.path(from.address)?, caller.path(to.address)?);
        let old = self.place(Start::Caller(caller, from.dir), &old)?;
        let new = self.place(Start::Caller(caller, to.dir), &new)?;
        // As in do_renameat2(): a slash is for directories, and behind the new name it is about what comes
        // to stand there.
        let into_new = if flags.contains(RenameFlags::EXCHANGE) { &new } else { &old };
        if (old.is_directory_meant && directory_at(&old).is_none())
            || (new.is_directory_meant && directory_at(into_new).is_none())
        {
            return Err(Stop::Continue);
        }
        let allowed = self.judge_move(&old, &new)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            let back = self.judge_move(&new, &old)?;
            if [allowed, back].contains(&Allowed::AsGitConfig) {
                return Err(Stop::Denied(new.path, git::config_denied()));
            }
        }
        caller.confirm()?;
        if allowed == Allowed::AsGitConfig {
            if is_same_file(&old, &new) {
                // rename(2): two names of one file stay as they are.
                return Ok(done());
            }
            if flags.contains(RenameFlags::NOREPLACE) && git::exists(new.parent.as_fd(), &new.name)
            {
                return Err(Errno::EXIST.into());
            }
            // As the caller itself would: what it may not remove it may not rename.
            self.set_umask(Mode::empty());
            let source = (old.parent.as_fd(), old.name.as_os_str());
            let setting = palisade_guard::gitconfig::Place {
                git_dir: new.directory(),
                tree: new.tree.as_deref().unwrap_or(new.directory()),
            };
            match git::commit_config(source, new.parent.as_fd(), &new.name, &setting) {
                Ok(result) => result?,
                Err(denied) => return Err(Stop::Denied(new.path, denied)),
            }
        } else {
            renameat_with(&old.parent, &old.name, &new.parent, &new.name, flags)?;
            self.note(&new, allowed);
        }
        Ok(done())
    }

    fn judge_move(&self, from: &Place, to: &Place) -> Result<Allowed, Stop> {
        let directory = directory_at(from);
        let coming = match &directory {
            Some(directory) => Coming::MovedDirectory(directory.as_fd()),
            None if from.link_target().is_some() => Coming::MovedLink,
            None => Coming::Moved,
        };
        if directory.is_some() && git::is_among_modules(&from.path) {
            return Err(Stop::Denied(from.path.clone(), git::config_denied()));
        }
        self.judged(to, coming)
    }

    fn link(
        &mut self,
        caller: &Caller,
        from: PathArg,
        to: PathArg,
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = AtFlags::from_bits_retain(flags);
        if !flags.difference(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_FOLLOW).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let (old, new) = (caller.path(from.address)?, caller.path(to.address)?);
        if old.ends_with(b"/") {
            // A directory, which gets no second name, or nothing at all.
            return Err(Stop::Continue);
        }
        let new = self.file_place(Start::Caller(caller, to.dir), &new)?;
        let allowed = self.judged(&new, Coming::Link)?;
        let is_config = allowed == Allowed::AsGitConfig;
        let number = if old.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            Some(from.dir)
        } else if flags.contains(AtFlags::SYMLINK_FOLLOW) {
            own_descriptor(&old)
        } else {
            None
        };
        if let Some(number) = number {
            if is_config {
                return Err(Stop::Denied(new.path, git::config_denied()));
            }
            return self.link_descriptor(caller, number, &new);
        }
        let start = Start::Caller(caller, from.dir);
        let found = if flags.contains(AtFlags::SYMLINK_FOLLOW) {
            self.map.locate_target(start, &old)?
        } else {
            self.map.locate(start, &old)?
        };
        let old = ours(found)?;
        if is_config {
            return self.link_config(caller, &old, &new);
        }
        self.judge.may_be_linked(&old).map_err(|denied| Stop::Denied(old.path.clone(), denied))?;
        caller.confirm()?;
        linkat(&old.parent, &old.name, &new.parent, &new.name, AtFlags::empty())?;
        self.note(&new, allowed);
        Ok(done())
    }

    fn symbolic_link(&mut self, caller: &Caller, target: u64, path: PathArg) -> Result<Done, Stop> {
        let target = caller.path(target)?;
        if target.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let bytes = caller.path(path.address)?;
        let place = self.file_place(Start::Caller(caller, path.dir), &bytes)?;
        let allowed = self.judged(&place, Coming::SymbolicLink)?;
        caller.confirm()?;
        symlinkat(OsStr::from_bytes(&target), &place.parent, &place.name)?;
        self.note(&place, allowed);
        Ok(done())
    }

    /// Never left to the kernel: Landlock does not handle truncation, which would slow down every open.
    fn truncate(&mut self, caller: &Caller, path: PathArg, length: u64) -> Result<Done, Stop> {
        if length > i64::MAX.cast_unsigned() {
            return Err(Errno::INVAL.into());
        }
        let bytes = caller.path(path.address)?;
        let file = match own_descriptor(&bytes) {
            Some(number) => self.held_for_writing(caller, number)?,
            None => self.map.open_to_truncate(Start::Caller(caller, path.dir), &bytes)?,
        };
        let place = self.present_place(&file)?;
        let mut config = None;
        if let Some(place) = &place {
            let judged = self.judge.may_come(place, Coming::Written);
            let allowed = judged.map_err(|denied| Stop::Denied(place.path.clone(), denied))?;
            config = (allowed == Allowed::AsGitConfig).then_some(place);
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

    fn bind(
        &mut self,
        caller: &Caller,
        socket: i32,
        address: u64,
        length: u64,
    ) -> Result<Done, Stop> {
        // `struct sockaddr_un`: a family and a path that need not end in NUL.
        const FAMILY: usize = 2;
        const LONGEST: u64 = 110;
        let Some(length) = usize::try_from(length.min(LONGEST)).ok().filter(|len| *len > FAMILY)
        else {
            return Err(Stop::Continue);
        };
        let bytes = caller.bytes(address, length)?;
        let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
        let path = bytes[FAMILY..].split(|byte| *byte == 0).next().unwrap_or_default();
        // Another family, or a name that is not in the file system.
        if u32::from(family) != u32::from(rustix::net::AddressFamily::UNIX.as_raw())
            || path.is_empty()
        {
            return Err(Stop::Continue);
        }
        let place = self.file_place(Start::Caller(caller, CWD), path)?;
        let allowed = self.judged(&place, Coming::Written)?;
        if allowed == Allowed::AsGitConfig {
            return Err(Stop::Denied(place.path, git::config_denied()));
        }
        let socket = caller.take(socket)?;
        self.take_umask(caller)?;
        caller.confirm()?;
        // bind(2) knows no directory descriptors. Nothing else here depends on the working directory.
        rustix::process::fchdir(&place.parent)?;
        let bound =
            SocketAddrUnix::new(place.name.as_os_str()).and_then(|address| bind(&socket, &address));
        let _ = rustix::process::chdir("/");
        bound?;
        self.note(&place, allowed);
        Ok(Done::Socket(place.path))
    }

    fn place(&self, start: Start<'_>, path: &[u8]) -> Result<Place, Stop> {
        ours(self.map.locate(start, path)?)
    }

    /// For something that is no directory: with a slash behind its name it is none of ours.
    fn file_place(&self, start: Start<'_>, path: &[u8]) -> Result<Place, Stop> {
        let place = self.place(start, path)?;
        if place.is_directory_meant { Err(Stop::Continue) } else { Ok(place) }
    }

    pub(crate) fn judged(&self, place: &Place, coming: Coming<'_>) -> Result<Allowed, Stop> {
        if self.company == Company::Shared && git::makes_git_directory(&place.name) {
            return Err(Stop::NotAlone);
        }
        self.judge
            .may_come(place, coming)
            .map_err(|denied| Stop::Denied(place.path.clone(), denied))
    }

    fn note(&mut self, place: &Place, allowed: Allowed) {
        match allowed {
            Allowed::AsNewborn => self.judge.remember(place.parent.as_fd(), &place.name),
            Allowed::AsOldRepository => self.judge.forget(place.parent.as_fd()),
            Allowed::Plainly | Allowed::AsGitConfig => {}
        }
    }

    /// What is made gets the modes the caller would have given it.
    fn take_umask(&mut self, caller: &Caller) -> Result<(), Errno> {
        let umask = self.umasks.of(caller)?;
        self.set_umask(umask);
        Ok(())
    }

    fn set_umask(&mut self, umask: Mode) {
        if umask != self.own_umask {
            rustix::process::umask(umask);
            self.own_umask = umask;
        }
    }
}

pub(crate) fn done() -> Done {
    Done::Answer(Response::Value(0))
}

fn ours(found: Found) -> Result<Place, Stop> {
    match found {
        Found::Ours(place) => Ok(place),
        Found::Descriptor(_) | Found::Elsewhere => Err(Stop::Continue),
    }
}

fn directory_at(place: &Place) -> Option<OwnedFd> {
    let found = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return None;
    }
    openat(&place.parent, &place.name, DIRECTORY | OFlags::NOFOLLOW, NO_MODE).ok()
}

fn is_same_file(one: &Place, other: &Place) -> bool {
    let inode = |place: &Place| {
        statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|found| (found.st_dev, found.st_ino))
    };
    inode(one).is_some_and(|found| inode(other) == Some(found))
}
