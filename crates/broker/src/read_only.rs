//! Writes that fail because a part of the view is read-only, where a grant would help: told once for each directory, so that a
//! person learns at the end which option grants it. The kernel answers them; nothing is decided here.

use crate::NO_MODE;
use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::message::BrokerMessage;
use crate::numbered::name_of_own;
use crate::perform::{CallExecutor, Done};
use crate::place::Start;
use crate::serve::BrokerServer;
use palisade_sys::notify::Response;
use palisade_sys::{Errno, OFlags};
use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, fstat, openat};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// So many directories are told of.
const MAX_TOLD: usize = 64;
/// What tools keep beside their own files and do without where they cannot.
const CACHES: [&str; 5] = ["__pycache__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache"];

impl BrokerServer<'_> {
    pub(crate) fn tell_of_read_only(&mut self, caller: &Caller, call: Call, done: &Done) {
        let may_fail =
            matches!(done, Done::Answer(Response::Continue | Response::Fail(Errno::ROFS)));
        if !may_fail || self.read_only.len() >= MAX_TOLD {
            return;
        }
        let Some(path) = call.target() else { return };
        let Some(directory) = self.executor.read_only_directory(caller, call, path) else { return };
        if self.read_only.insert(directory.clone()) {
            let directory = directory.into_os_string().into_vec();
            self.events.tell(&BrokerMessage::ReadOnly { directory });
        }
    }
}

impl CallExecutor {
    fn read_only_directory(&self, caller: &Caller, call: Call, path: PathArg) -> Option<PathBuf> {
        let written = caller.path(path.address).ok()?;
        let start = Start::Caller(caller, path.dir);
        let stays = if call.follows_target() { OFlags::empty() } else { OFlags::NOFOLLOW };
        match self.map.pin(start, &written, stays) {
            // A name that is taken is what such a call fails with.
            Ok(Some(_)) if call.only_makes() => None,
            Ok(Some(found)) => {
                // Devices and pipes are written wherever they are.
                let kind = FileType::from_raw_mode(fstat(&found).ok()?.st_mode);
                let is_kept = matches!(kind, FileType::RegularFile | FileType::Directory);
                let path = self.held_read_only(&found).filter(|_| is_kept)?;
                path.parent().map(Path::to_owned)
            }
            Err(Errno::NOENT) => {
                let parent = Path::new(OsStr::from_bytes(&written)).parent()?;
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                let directory = OFlags::DIRECTORY;
                let parent = self.map.pin(start, parent.as_os_str().as_bytes(), directory);
                self.held_read_only(&parent.ok()??)
            }
            _ => None,
        }
        .filter(|directory| !is_cache(directory, &written))
    }

    /// The path of something that only its mount keeps from being written: the kernel looks at owner and mode before.
    fn held_read_only(&self, file: &OwnedFd) -> Option<PathBuf> {
        let own = name_of_own(file);
        let tried = accessat(self.map.proc, own, Access::WRITE_OK, AtFlags::EACCESS);
        if tried != Err(Errno::ROFS) {
            return None;
        }
        // What is held on a mount that is attached nowhere has no path.
        let path = self.map.path_of(file.as_fd()).ok()?;
        let there = openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, NO_MODE);
        let inode = |file: &OwnedFd| fstat(file).map(|it| (it.st_dev, it.st_ino));
        (inode(&there.ok()?) == inode(file)).then_some(path)
    }
}

fn is_cache(directory: &Path, written: &[u8]) -> bool {
    let written = Path::new(OsStr::from_bytes(written));
    let mut names = directory.iter().chain(written.file_name());
    names.any(|name| CACHES.iter().any(|cache| name == *cache))
}
