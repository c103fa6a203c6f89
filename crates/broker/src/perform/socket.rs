//! Sockets that are bound to a name in a tree of the host's.
//!
//! Not left to the kernel, though nobody can run a socket: with the right to make one under any name, a command could give
//! a directory the `objects` and `refs` by which git takes it for a repository, with a configuration in it that nobody
//! judged.

use crate::call::CWD;
use crate::caller::Caller;
use crate::git;
use crate::perform::{CallExecutor, Done, Outcome, Stop};
use crate::place::{ResolvedParent, Start};
use crate::verdict::{Allowed, Coming};
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::Errno;
use rustix::fs::{ResolveFlags, fstat, openat2};
use rustix::net::{SocketAddrUnix, bind};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// `struct sockaddr_un`: a family and a path that need not end in NUL.
const FAMILY: usize = 2;
const MAX_ADDRESS_BYTES: u64 = 110;

impl CallExecutor {
    pub(crate) fn bind(
        &mut self,
        caller: &Caller,
        socket: i32,
        address: u64,
        length: u64,
    ) -> Outcome {
        // Another family, or a name that is not in the file system. If it were one by the time the kernel reads it,
        // Landlock would refuse.
        let path = path_in(caller, address, length)?.ok_or(Stop::Continue)?;
        let place = match self.place(Start::Caller(caller, CWD), &path) {
            Err(Stop::Fail(Errno::EXIST)) => return Err(Errno::ADDRINUSE.into()),
            place => place?,
        };
        let cwd = caller.directory(CWD)?;
        self.bind_in(caller, socket, &place, |socket| bind_as_written(socket, &place, &cwd, &path))
    }

    /// Where the socket would be, if that is where calls are performed.
    pub(crate) fn socket_place(
        &self,
        caller: &Caller,
        address: u64,
        length: u64,
    ) -> Option<ResolvedParent> {
        let path = path_in(caller, address, length).ok()??;
        self.place(Start::Caller(caller, CWD), &path).ok()
    }

    /// By its last name, in a directory that is shown nowhere.
    pub(crate) fn bind_unseen(
        &mut self,
        caller: &Caller,
        socket: i32,
        place: &ResolvedParent,
    ) -> Outcome {
        self.bind_in(caller, socket, place, |socket| bind_by_name(socket, place))
    }

    fn bind_in(
        &mut self,
        caller: &Caller,
        socket: i32,
        place: &ResolvedParent,
        bind: impl FnOnce(&OwnedFd) -> Result<(), Errno>,
    ) -> Outcome {
        let allowed = match self.judged_new(place, Coming::Written) {
            // bind(2) has a word of its own for it.
            Err(Stop::Fail(Errno::EXIST)) => return Err(Errno::ADDRINUSE.into()),
            judged => judged?,
        };
        if allowed == Allowed::AsJudgedContent {
            return Err(Stop::Denied(place.path.clone(), git::config_denied()));
        }
        let socket = caller.take(socket)?;
        self.take_umask(caller)?;
        caller.confirm()?;
        let bound = bind(&socket);
        // Nothing else here depends on the working directory.
        let _ = rustix::process::chdir("/");
        bound?;
        self.note(place, allowed);
        Ok(Done::Socket(place.path.clone()))
    }
}

/// The path in an address; none if it names no file.
pub(crate) fn path_in(
    caller: &Caller,
    address: u64,
    length: u64,
) -> Result<Option<Vec<u8>>, Errno> {
    let Some(length) =
        usize::try_from(length.min(MAX_ADDRESS_BYTES)).ok().filter(|len| *len > FAMILY)
    else {
        return Ok(None);
    };
    let bytes = caller.bytes(address, length)?;
    let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
    let path = bytes[FAMILY..].split(|byte| *byte == 0).next().unwrap_or_default();
    let is_unix = u32::from(family) == u32::from(rustix::net::AddressFamily::UNIX.as_raw());
    Ok((is_unix && !path.is_empty()).then(|| path.to_vec()))
}

fn bind_by_name(socket: &OwnedFd, place: &ResolvedParent) -> Result<(), Errno> {
    rustix::process::fchdir(&place.parent)?;
    bind(socket, &SocketAddrUnix::new(&*place.name_as_written())?)
}

/// bind(2) knows no directory descriptors, and the name it is given is what getsockname(2) and `/proc/net/unix` tell:
/// servers hand it to their clients. So it is bound under the caller's own words, if these can lead nowhere but to the
/// place that was judged; else under its real path; and if that is too long, under its last name.
fn bind_as_written(
    socket: &OwnedFd,
    place: &ResolvedParent,
    cwd: &OwnedFd,
    written: &[u8],
) -> Result<(), Errno> {
    let address = if leads_there_only(place, cwd, written) {
        rustix::process::fchdir(cwd)?;
        SocketAddrUnix::new(OsStr::from_bytes(written))
    } else {
        SocketAddrUnix::new(place.path.as_path())
    };
    match address {
        Err(Errno::NAMETOOLONG) => bind_by_name(socket, place),
        address => bind(socket, &address?),
    }
}

/// Whether every name on the way is that of a directory. Those in a tree, and those that a tree stands in, are made
/// and moved by brokers alone, and this one is busy with us while others in the tree wait for its lock. A link or a `..`
/// may lie where the command can change it.
fn leads_there_only(place: &ResolvedParent, cwd: &OwnedFd, written: &[u8]) -> bool {
    let end = written.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let start = written[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let directory = &written[..start];
    if directory.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return false;
    }
    let directory = if directory.is_empty() { b"." } else { directory };
    let inode = |fd: &OwnedFd| fstat(fd).map(|found| (found.st_dev, found.st_ino));
    openat2(
        cwd.as_fd(),
        OsStr::from_bytes(directory),
        DIRECTORY,
        NO_MODE,
        ResolveFlags::NO_SYMLINKS,
    )
    .and_then(|found| Ok(inode(&found)? == inode(&place.parent)?))
    .unwrap_or(false)
}
