//! Renames and links: what gets another name, judged by the name it gets.

use crate::call::{CWD, PathArg};
use crate::caller::{Caller, set_own_umask};
use crate::git;
use crate::judge::{is_among_modules, is_git_directory, setting};
use crate::lock::Company;
use crate::numbered::numbered_descriptor;
use crate::overlay_move::DirectoryMove;
use crate::perform::{CallExecutor, Done, Outcome, Stop, done, nothing_is_made, ours};
use crate::place::{Found, ResolvedParent, Start};
use crate::replacing::{Movable, TO_WRITE, stands_on_a_mount_of_its_own};
use crate::verdict::{Allowed, Coming};
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, FileType, RenameFlags, linkat, openat, renameat_with, statat};
use std::os::fd::{AsFd as _, OwnedFd};

impl CallExecutor {
    pub(crate) fn rename(
        &mut self,
        caller: &Caller,
        from: PathArg,
        to: PathArg,
        flags: u32,
    ) -> Outcome {
        let flags = RenameFlags::from_bits_retain(flags);
        let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        if !known.contains(flags) || flags == known {
            // Whiteouts included, which few file systems know.
            return Err(Errno::INVAL.into());
        }
        let (old, new) = (caller.path(from.address)?, caller.path(to.address)?);
        if let Some(movement) = self.move_in_transaction(caller, (from, &old), (to, &new), flags)? {
            return movement;
        }
        let old = self.map.locate(Start::Caller(caller, from.dir), &old)?;
        let new = self.map.locate(Start::Caller(caller, to.dir), &new)?;
        // One of them elsewhere is on another mount: EXDEV, before Landlock is asked. Where there are no mounts of our
        // own, Landlock lets nothing into a tree or out of it, at any time.
        let (old, new) = (ours(old)?, ours(new)?);
        self.rename_places(caller, &old, &new, flags)
    }

    /// Renames a directory in a transaction, or says that it is none: the kernel does the rest there.
    fn move_in_transaction(
        &self,
        caller: &Caller,
        (from, old): (PathArg, &[u8]),
        (to, new): (PathArg, &[u8]),
        flags: RenameFlags,
    ) -> Outcome<Option<Outcome>> {
        if !self.map.ground.has_transaction() {
            return Ok(None);
        }
        let locate = |at: PathArg, path: &[u8]| {
            self.map.locate_in_transaction(Start::Caller(caller, at.dir), path)
        };
        let (Some(old), Some(new)) = (locate(from, old)?, locate(to, new)?) else {
            return Ok(None);
        };
        if directory_at(&old).is_none() || flags.contains(RenameFlags::EXCHANGE) {
            return Ok(None);
        }
        caller.confirm()?;
        Ok(Some(match renameat_with(&old.parent, &old.name, &new.parent, &new.name, flags) {
            Ok(()) => Ok(done()),
            Err(Errno::XDEV) => Ok(Done::Moving(Box::new(DirectoryMove { old, new, flags }))),
            Err(errno) => Err(errno.into()),
        }))
    }

    pub(crate) fn rename_places(
        &mut self,
        caller: &Caller,
        old: &ResolvedParent,
        new: &ResolvedParent,
        flags: RenameFlags,
    ) -> Outcome {
        self.hold(new.tree.as_deref(), Company::Alone)?;
        self.hold(old.tree.as_deref(), Company::Alone)?;
        would_fail(old, new, flags)?;
        if self.operations.is_some() {
            self.judged_paths.push(old.path.clone());
        }
        if old.tree.is_none() && stands_on_a_mount_of_its_own(old) {
            // Nothing of the new name helps. Beside itself, its directory may be asked about; elsewhere it can be copied.
            let is_beside = old.directory() == new.directory();
            return Err(if is_beside { Errno::BUSY } else { Errno::XDEV }.into());
        }
        let allowed = self.judge_move(old, new)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            let back = self.judge_move(new, old)?;
            if [allowed, back].contains(&Allowed::AsJudgedContent) {
                return Err(Stop::Denied(new.path.clone(), git::config_denied()));
            }
        }
        caller.confirm()?;
        if allowed == Allowed::AsJudgedContent {
            if is_same_file(old, new) {
                // rename(2): two names of one file stay as they are.
                return Ok(done());
            }
            if flags.contains(RenameFlags::NOREPLACE)
                && crate::exists::exists(new.parent.as_fd(), &new.name)
            {
                return Err(Errno::EXIST.into());
            }
            // As the caller itself would: what it may not remove it may not rename.
            set_own_umask(Mode::empty());
            let source = (old.parent.as_fd(), old.name.as_os_str());
            let setting = setting(new, new.directory());
            match git::commit_config(source, new.parent.as_fd(), &new.name, &setting) {
                Ok(result) => result?,
                Err(denied) => return Err(Stop::Denied(new.path.clone(), denied)),
            }
        } else {
            match renameat_with(&old.parent, &old.name, &new.parent, &new.name, flags) {
                Err(Errno::BUSY | Errno::XDEV)
                    if flags.is_empty() && stands_on_a_mount_of_its_own(new) =>
                {
                    write_over(caller, old, new)?;
                }
                // What was granted for longer behaves as what was granted once.
                Err(Errno::XDEV) if RenameFlags::NOREPLACE.contains(flags) && new.is_granted() => {
                    set_own_umask(Mode::empty());
                    Movable::open(old.duplicate()?, caller)?.move_to(new, flags)?;
                }
                renamed => renamed?,
            }
            self.note(new, allowed);
        }
        Ok(done())
    }

    fn judge_move(&mut self, from: &ResolvedParent, to: &ResolvedParent) -> Outcome<Allowed> {
        let directory = directory_at(from);
        let link = from.link_target();
        let coming = match &directory {
            Some(directory) => Coming::MovedDirectory(directory.as_fd()),
            None if link.is_some() => Coming::MovedLink,
            None => Coming::Moved,
        };
        if let Some(target) = &link {
            self.may_lead(to, target)?;
        }
        if let Some(directory) = &directory {
            if self.map.ground.leaves_build_dir(&from.path, &to.path) {
                // As from a file system of its own: it can be copied, name by name.
                return Err(Errno::XDEV.into());
            }
            let refused = |denied| Stop::Denied(from.path.clone(), denied);
            if is_among_modules(from) {
                return Err(refused(git::config_denied()));
            }
            // From beside its old place every relative path leads where it did.
            if from.directory() != to.directory() && is_git_directory(&from.name, directory.as_fd())
            {
                git::may_be_moved(directory.as_fd()).map_err(refused)?;
            }
        }
        self.judged(to, coming)
    }

    pub(crate) fn link(
        &mut self,
        caller: &Caller,
        from: PathArg,
        to: PathArg,
        flags: u32,
    ) -> Outcome {
        let flags = AtFlags::from_bits_retain(flags);
        if !flags.difference(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_FOLLOW).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let (old, new) = (caller.path(from.address)?, caller.path(to.address)?);
        let start = Start::Caller(caller, from.dir);
        let old = if old.is_empty() && flags.contains(AtFlags::EMPTY_PATH) && from.dir != CWD {
            Source::Descriptor(from.dir)
        } else if flags.contains(AtFlags::SYMLINK_FOLLOW)
            && let Some(number) = numbered_descriptor(&old, caller)
        {
            Source::Descriptor(number)
        } else {
            self.source(start, &old, flags)?
        };
        let new = ours(self.map.locate(Start::Caller(caller, to.dir), &new)?)?;
        match old {
            // On another mount: EXDEV, before Landlock is asked (see `rename`).
            Source::Elsewhere => Err(Stop::Continue),
            // A directory gets no second name, but other errors come first.
            Source::Directory(directory) => {
                linkat(&directory, ".", &new.parent, &*new.name_as_written(), AtFlags::empty())?;
                Err(Errno::PERM.into())
            }
            _ if new.is_directory_meant => Err(nothing_is_made(&new).into()),
            Source::Descriptor(number) => self.link_descriptor(caller, number, &new),
            Source::ResolvedParent(old) => self.link_place(caller, &old, &new),
        }
    }

    /// As do_linkat() has it, that it is missing is said before anything of the new name.
    fn source(&self, start: Start<'_>, path: &[u8], flags: AtFlags) -> Result<Source, Errno> {
        let directory = || {
            let found = self.map.directory(start, path)?;
            Ok(found.map_or(Source::Elsewhere, |(directory, _)| Source::Directory(directory)))
        };
        if path.ends_with(b"/") {
            return directory();
        }
        let found = if flags.contains(AtFlags::SYMLINK_FOLLOW) {
            self.map.locate_target(start, path)?
        } else {
            self.map.locate(start, path)?
        };
        match found {
            // By a link with a slash behind what it leads to.
            Found::Ours(place) if place.is_directory_meant => directory(),
            Found::Ours(place) if crate::exists::exists(place.parent.as_fd(), &place.name) => {
                Ok(Source::ResolvedParent(place))
            }
            Found::Ours(_) => Err(Errno::NOENT),
            Found::NoName => directory(),
            Found::Descriptor(number) => Ok(Source::Descriptor(number)),
            Found::Elsewhere => Ok(Source::Elsewhere),
        }
    }

    fn link_place(
        &mut self,
        caller: &Caller,
        old: &ResolvedParent,
        new: &ResolvedParent,
    ) -> Outcome {
        let allowed = self.judged_new(new, Coming::Link)?;
        if allowed == Allowed::AsJudgedContent {
            return self.link_config(caller, old, new);
        }
        if let Some(target) = old.link_target() {
            self.may_lead(new, &target)?;
        }
        self.may_be_written(old)?;
        caller.confirm()?;
        linkat(&old.parent, &old.name, &new.parent, &new.name, AtFlags::empty())?;
        self.note(new, allowed);
        Ok(done())
    }
}

/// Gets the content over to what was granted by itself. If that was not for writing: the kernel's own answer, which is asked
/// about.
fn write_over(caller: &Caller, old: &ResolvedParent, new: &ResolvedParent) -> Result<(), Errno> {
    let target = openat(&new.parent, &new.name, TO_WRITE | OFlags::NOFOLLOW, NO_MODE);
    let target = target.map_err(|_| Errno::BUSY)?;
    Movable::open(old.duplicate()?, caller)?.move_into(&target)
}

/// What a link is made of.
enum Source {
    ResolvedParent(ResolvedParent),
    /// A file the caller holds open.
    Descriptor(i32),
    Directory(OwnedFd),
    /// Where nothing is brokered.
    Elsewhere,
}

/// What stands in the way of a rename, whatever it is about, in the order of do_renameat2(): nothing is judged that
/// would not happen.
fn would_fail(old: &ResolvedParent, new: &ResolvedParent, flags: RenameFlags) -> Result<(), Errno> {
    let exists = |place: &ResolvedParent| crate::exists::exists(place.parent.as_fd(), &place.name);
    let exchanges = flags.contains(RenameFlags::EXCHANGE);
    if !exists(old) || (exchanges && !exists(new)) {
        return Err(Errno::NOENT);
    }
    if flags.contains(RenameFlags::NOREPLACE) && exists(new) {
        return Err(Errno::EXIST);
    }
    // A slash is for directories, and behind the new name it is about what comes to stand there.
    let into_new = if exchanges { new } else { old };
    let is_wrong = |meant: &ResolvedParent, found: &ResolvedParent| {
        meant.is_directory_meant && directory_at(found).is_none()
    };
    if is_wrong(old, old) || is_wrong(new, into_new) {
        return Err(Errno::NOTDIR);
    }
    Ok(())
}

fn directory_at(place: &ResolvedParent) -> Option<OwnedFd> {
    let found = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return None;
    }
    openat(&place.parent, &place.name, DIRECTORY | OFlags::NOFOLLOW, NO_MODE).ok()
}

fn is_same_file(one: &ResolvedParent, other: &ResolvedParent) -> bool {
    let inode = |place: &ResolvedParent| {
        statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|found| (found.st_dev, found.st_ino))
    };
    inode(one).is_some_and(|found| inode(other) == Some(found))
}
