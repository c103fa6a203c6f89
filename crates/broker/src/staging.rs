//! Git configuration that is written in place: by `cp`, `tar`, libgit2, a shell's redirection.
//!
//! A descriptor that is open for writing can be written to after its content was judged, and git on the host
//! may read the file at any moment. So a caller never gets the named file: it gets an unnamed staging file with
//! the same content. When a descriptor of it is closed for the last time (inotify reports it), the content is
//! read, judged, and written to a new file that is renamed into place, as in `git::replace`. A descriptor or a
//! mapping that is kept refers to the staging file and nothing else.
//!
//! Until then the name refers to what was judged last. Content that is refused is not committed, and reported.

use crate::git::{self, Attributes, Config};
use crate::numbered::name_of_own;
use crate::slow;
use crate::verdict::{Denied, Verdict};
use crate::{DIRECTORY, NO_MODE};
use palisade_guard::gitconfig;
use palisade_sys::lease::has_writers;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, Stat, fstat, inotify, openat, statat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// At most this many repositories have their configuration open at a time; each takes three of our descriptors.
const MAX_STAGED: usize = 64;
/// Our name for it until it is unlinked, where the file system has no `O_TMPFILE`.
const NAMED: &str = "config.palisade-staging";
/// What a caller's descriptor is opened with.
const PASSED_ON: OFlags = OFlags::RWMODE
    .union(OFlags::APPEND)
    .union(OFlags::TRUNC)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::DIRECT)
    .union(OFlags::NOATIME);

/// The caller that opened a staging file first, for the message if its content is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) pid: u32,
    pub(crate) executable: Vec<u8>,
}

/// The staging files that may still be written to.
#[derive(Debug, Default)]
pub(crate) struct StagedConfigs {
    /// Made with the first of them.
    events: Option<Arc<OwnedFd>>,
    open: Vec<StagedConfig>,
}

#[derive(Debug)]
pub(crate) struct StagedConfig {
    /// What callers write to, opened for reading.
    file: OwnedFd,
    watch: i32,
    pub(crate) dir: OwnedFd,
    pub(crate) name: OsString,
    /// The file that has the name now, held so that its inode number is not reused.
    present: OwnedFd,
    /// Of `present`, as we left it.
    left: Attributes,
    pub(crate) writer: Writer,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No descriptor was closed so far.
    Open,
    /// One was closed since the last look.
    Closed,
    /// What it held then was judged.
    Judged,
    /// The content has no destination any more.
    Superseded,
}

impl StagedConfigs {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Readable when a descriptor was closed.
    pub(crate) fn events(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().filter(|_| !self.is_empty()).map(|events| events.as_fd())
    }

    /// The same for a thread that waits for it while others go on.
    pub(crate) fn shared_events(&self) -> Option<Arc<OwnedFd>> {
        self.events.as_ref().filter(|_| !self.is_empty()).map(Arc::clone)
    }

    /// A descriptor to write to instead of the configuration `name`, which exists in `dir`. `proc` is where our
    /// own descriptors can be reopened.
    pub(crate) fn open(
        &mut self,
        proc: &OwnedFd,
        (dir, name): (BorrowedFd<'_>, &OsStr),
        flags: OFlags,
        writer: impl FnOnce() -> Writer,
    ) -> Result<OwnedFd, Errno> {
        let present = pinned(dir, name)?;
        let found = fstat(&present)?;
        let is_same = |staged: &&StagedConfig| staged.name == name && staged.stands_for(&found);
        if let Some(staged) = self.open.iter().find(is_same) {
            return for_caller(proc, &staged.file, flags);
        }
        if self.open.len() >= MAX_STAGED {
            self.forget_unwritten();
            if self.open.len() >= MAX_STAGED {
                return Err(Errno::NFILE);
            }
        }
        let old = git::read(dir, name)?;
        let made = unnamed(dir)?;
        git::write_all(&made, &old.content)?;
        let file = reopened(proc, &made, OFlags::RDONLY)?;
        // Closing a descriptor of ours must not count as the caller's.
        drop(made);
        let watch = self.watch(proc, &file)?;
        let handed_out = for_caller(proc, &file, flags)?;
        // Last, because the mode may forbid opening it.
        rustix::fs::fchmod(&handed_out, old.attributes.mode)?;
        if !flags.contains(OFlags::TRUNC) {
            rustix::fs::futimens(&handed_out, &old.attributes.times())?;
        }
        let dir = openat(dir, ".", DIRECTORY, NO_MODE)?;
        self.open.push(StagedConfig {
            file,
            watch,
            dir,
            name: name.to_owned(),
            present,
            left: Attributes::of(&found),
            writer: writer(),
            state: State::Open,
        });
        Ok(handed_out)
    }

    fn watch(&mut self, proc: &OwnedFd, file: &OwnedFd) -> Result<i32, Errno> {
        let events = match self.events.take() {
            Some(events) => events,
            None => {
                let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
                Arc::new(inotify::init(flags)?)
            }
        };
        let events = self.events.insert(events);
        // inotify_add_watch(2) takes no directory descriptor. Nothing else here depends on the working
        // directory.
        rustix::process::fchdir(proc)?;
        let path = name_of_own(file);
        let watch = inotify::add_watch(events, path, inotify::WatchFlags::CLOSE_WRITE);
        let _ = rustix::process::chdir("/");
        watch
    }

    /// Records which files were closed. True if there is something to commit.
    pub(crate) fn hear(&mut self) -> bool {
        let Some(events) = &self.events else { return false };
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            let is_lost = event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW);
            for staged in &mut self.open {
                if is_lost || staged.watch == event.wd() {
                    staged.state = State::Closed;
                }
            }
        }
        self.open.iter().any(|staged| staged.state == State::Closed)
    }

    /// As if all were closed: no process is left that could write.
    pub(crate) fn close_all(&mut self) {
        for staged in self.open.iter_mut().filter(|staged| staged.state == State::Open) {
            staged.state = State::Closed;
        }
    }

    /// What was closed and is not judged yet.
    pub(crate) fn closed(&mut self) -> impl Iterator<Item = &mut StagedConfig> {
        self.open.iter_mut().filter(|staged| staged.state == State::Closed)
    }

    /// Drops what can no longer be written to. What was closed meanwhile stays, to be judged.
    pub(crate) fn forget_unwritten(&mut self) {
        // If that is unknown, the first close is taken for the last.
        let is_written = |staged: &StagedConfig| {
            has_writers(&staged.file).unwrap_or(staged.state == State::Open)
        };
        let is_written: Vec<bool> = self.open.iter().map(is_written).collect();
        // A close is told before its file counts as not written to.
        self.hear();
        let events = self.events.as_ref();
        let mut is_written = is_written.into_iter();
        self.open.retain(|staged| {
            let is_written = is_written.next().unwrap_or_default();
            let is_needed = match staged.state {
                State::Superseded => false,
                State::Closed => true,
                State::Open | State::Judged => is_written,
            };
            if !is_needed && let Some(events) = events {
                let _ = inotify::remove_watch(events, staged.watch);
            }
            is_needed
        });
    }
}

impl StagedConfig {
    /// Whether it is written instead of the file that `found` describes.
    fn stands_for(&self, found: &Stat) -> bool {
        fstat(&self.present)
            .is_ok_and(|own| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
    }

    /// Judges what was written, and puts a copy of it in place. Does nothing if another file has the name by
    /// now, or none: as with any file that is removed while it is open.
    pub(crate) fn commit(&mut self, place: &gitconfig::ConfigLocation<'_>) -> Verdict<()> {
        let found = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let Some(found) = found.ok().filter(|found| self.stands_for(found)) else {
            self.state = State::Superseded;
            return Ok(());
        };
        self.state = State::Judged;
        let mut new = git::read_open(&self.file).map_err(|_| git::config_denied())?;
        let old = git::read(self.dir.as_fd(), &self.name).map_err(|_| git::config_denied())?;
        git::judge(&self.name, Some(&old.content), &new.content, place)?;
        // What was set through the name meanwhile, for example by `os.utime(path)`, is newer.
        let now = Attributes::of(&found);
        new.attributes.take_changes(&self.left, &now);
        self.put(&old, &new, &now).map_err(|errno| Denied {
            rule: "git config".to_owned(),
            why: format!("what was written cannot be put in place: {errno}"),
        })
    }

    /// `seen` is what the file that has the name had when it was judged.
    fn put(&mut self, old: &Config, new: &Config, seen: &Attributes) -> Result<(), Errno> {
        let (dir, name) = (self.dir.as_fd(), self.name.as_os_str());
        if old.content != new.content {
            git::replace(dir, name, new)?;
            // Static mode does not notify us of utimensat(2) and chmod(2): the last writer may have set the file that was
            // just replaced.
            let replaced = Attributes::of(&fstat(&self.present)?);
            self.present = pinned(dir, name)?;
            let mut late = new.attributes;
            late.take_changes(seen, &replaced);
            if late != new.attributes {
                set_attributes(dir, name, &late)?;
            }
        } else if old.attributes != new.attributes {
            set_attributes(dir, name, &new.attributes)?;
        }
        self.left = Attributes::of(&fstat(&self.present)?);
        Ok(())
    }
}

fn set_attributes(dir: BorrowedFd<'_>, name: &OsStr, attributes: &Attributes) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let present = openat(dir, name, flags, NO_MODE)?;
    rustix::fs::fchmod(&present, attributes.mode)?;
    rustix::fs::futimens(&present, &attributes.times())
}

fn pinned(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, NO_MODE)
}

/// The same file as another open file description.
fn reopened(proc: &OwnedFd, file: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = name_of_own(file);
    openat(proc, path, flags | OFlags::CLOEXEC, NO_MODE)
}

/// Non-blocking: a process that has it open can take a lease on it, which would block us for as long as the
/// kernel allows.
fn for_caller(proc: &OwnedFd, file: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = reopened(proc, file, (flags & PASSED_ON) | OFlags::NONBLOCK)?;
    rustix::fs::fcntl_setfl(&opened, flags & slow::SETTABLE)?;
    Ok(opened)
}

/// An unnamed file that cannot get a name, beside the one it replaces: same file system and owner.
fn unnamed(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    const OURS: Mode = Mode::RUSR.union(Mode::WUSR);
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let made = match openat(dir, ".", flags | OFlags::TMPFILE, OURS) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let _ = unlinkat(dir, NAMED, AtFlags::empty());
            let made = openat(dir, NAMED, flags | OFlags::CREATE | OFlags::NOFOLLOW, OURS)?;
            unlinkat(dir, NAMED, AtFlags::empty())?;
            made
        }
        made => made?,
    };
    // The umask that is set is a caller's.
    rustix::fs::fchmod(&made, OURS)?;
    Ok(made)
}

#[cfg(test)]
#[path = "staging_tests.rs"]
pub(crate) mod tests;
