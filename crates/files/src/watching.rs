//! Tells what happens to the entries of a directory, and of those below it, by inotify(7). Directories that appear are watched
//! too; what happened in them before is found by listing them, so nothing is missed, and something may be told twice.

use crate::names::At as _;
use crate::protocol::{Change, ChangeKind, FileError, FileInfo};
use palisade_sys::Errno;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR);

/// Directories of one watch: each costs the kernel a kilobyte, and a user has some ten thousand.
const MAX_DIRECTORIES: usize = 8192;
/// Changes in one message: with paths as long as they get, half of what it has room for.
const MAX_CHANGES: usize = 16;

#[derive(Debug)]
pub(crate) struct Watch {
    events: OwnedFd,
    root: PathBuf,
    recursive: bool,
    /// Each watched directory, relative to the root.
    directories: HashMap<i32, PathBuf>,
    /// Found, and not told yet.
    found: Vec<Change>,
}

impl Watch {
    pub(crate) fn new(path: &Path, recursive: bool) -> Result<(Self, FileInfo), FileError> {
        let events =
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).at("inotify_init", path)?;
        let info = crate::names::info(path, true)?;
        let directories = HashMap::new();
        let mut watch =
            Self { events, root: path.to_owned(), recursive, directories, found: Vec::new() };
        watch.add(PathBuf::new()).at("inotify_add_watch", path)?;
        if recursive {
            watch.add_below(&PathBuf::new(), IsNew::No);
        }
        Ok((watch, info))
    }

    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// What happened since, at most one message of it; empty if there is nothing more.
    pub(crate) fn next_changes(&mut self) -> Vec<Change> {
        if self.found.is_empty() {
            self.read();
        }
        let count = self.found.len().min(MAX_CHANGES);
        self.found.drain(..count).collect()
    }

    fn read(&mut self) {
        let mut happened = Vec::new();
        {
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = inotify::Reader::new(&self.events, &mut buffer);
            while let Ok(event) = reader.next() {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                happened.push((event.wd(), event.events(), name.map(OsStr::to_owned)));
                if reader.is_buffer_empty() {
                    break;
                }
            }
        }
        for (directory, events, name) in happened {
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.found.push(Change { kind: ChangeKind::Overflow, path: PathBuf::new() });
                continue;
            }
            if events.contains(ReadFlags::IGNORED) {
                self.directories.remove(&directory);
                continue;
            }
            let (Some(above), Some(name)) = (self.directories.get(&directory), name) else {
                continue;
            };
            let path = above.join(name);
            let is_directory = events.contains(ReadFlags::ISDIR);
            self.found.extend(kind_of(events).map(|kind| Change { kind, path: path.clone() }));
            let appeared = events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            if self.recursive && is_directory && appeared && self.add(path.clone()).is_ok() {
                self.add_below(&path, IsNew::Yes);
            }
        }
    }

    fn add(&mut self, path: PathBuf) -> Result<(), Errno> {
        if self.directories.len() >= MAX_DIRECTORIES {
            return Err(Errno::NOSPC);
        }
        let directory = self.root.join(&path);
        // Of the root a link may lead there, as the client named it.
        let follow =
            if path.as_os_str().is_empty() { WatchFlags::empty() } else { WatchFlags::DONT_FOLLOW };
        let number = inotify::add_watch(&self.events, &directory, WATCHED | follow)?;
        self.directories.insert(number, path);
        Ok(())
    }

    /// What is below a directory: watched, and told if the directory is new.
    fn add_below(&mut self, top: &Path, is_new: IsNew) {
        let mut left = vec![top.to_owned()];
        while let Some(above) = left.pop() {
            let Ok(entries) = std::fs::read_dir(self.root.join(&above)) else { continue };
            for entry in entries.flatten() {
                let path = above.join(entry.file_name());
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_new == IsNew::Yes {
                    self.found.push(Change { kind: ChangeKind::Created, path: path.clone() });
                }
                if !is_directory {
                    continue;
                }
                match self.add(path.clone()) {
                    Ok(()) => left.push(path),
                    // What happens there is not told, and it says so.
                    Err(Errno::NOSPC) => {
                        self.found.push(Change { kind: ChangeKind::Overflow, path });
                        return;
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

fn kind_of(events: ReadFlags) -> Option<ChangeKind> {
    let kinds = [
        (ReadFlags::CREATE, ChangeKind::Created),
        (ReadFlags::CLOSE_WRITE, ChangeKind::Written),
        (ReadFlags::DELETE, ChangeKind::Removed),
        (ReadFlags::MOVED_FROM, ChangeKind::RenamedFrom),
        (ReadFlags::MOVED_TO, ChangeKind::RenamedTo),
        (ReadFlags::ATTRIB, ChangeKind::Attributes),
    ];
    kinds.into_iter().find(|(flag, _)| events.contains(*flag)).map(|(_, kind)| kind)
}
