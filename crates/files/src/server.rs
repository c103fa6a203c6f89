//! The process inside: takes a client's requests one by one until the client is gone.

use crate::handles::{Handles, Open};
use crate::listing::Walk;
use crate::names::{self, At as _};
use crate::protocol::{FileError, FileInfo, MAX_CONTENT, Reply, Request, Response, VERSION};
use crate::watching::Watch;
use crate::writing::Writing;
use palisade_sys::{Errno, Mode, OFlags};
use palisade_wire::{WireError, WireMessage as _};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType as KernelType;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Serves the client at the other end of this socket.
pub fn serve(socket: BorrowedFd<'_>) -> Result<(), WireError> {
    let mut handles = Handles::default();
    let mut buffer = vec![0; Request::MAX_BYTES];
    loop {
        if tell_changes(socket, &mut handles)? == Waiting::Yes {
            let received = match palisade_wire::receive::<Request>(socket, &mut buffer) {
                Err(WireError::Closed) => return Ok(()),
                received => received?,
            };
            let response = perform(&mut handles, received.message).unwrap_or_else(Response::Failed);
            palisade_wire::send(socket, &Reply::Response(response), &[])?;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Yes,
    No,
}

/// Waits for a request or a change, and tells the changes. Whether a request waits.
fn tell_changes(socket: BorrowedFd<'_>, handles: &mut Handles) -> Result<Waiting, WireError> {
    let mut ready = Vec::new();
    let request = {
        let watched: Vec<_> = handles.watches().map(|(handle, watch)| (handle, &*watch)).collect();
        if watched.is_empty() {
            return Ok(Waiting::Yes);
        }
        let mut polled = vec![PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        polled.extend(
            watched
                .iter()
                .map(|(_, watch)| PollFd::from_borrowed_fd(watch.events(), PollFlags::IN)),
        );
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Nothing is told any more; requests still are answered.
            Err(_) => return Ok(Waiting::Yes),
        }
        for ((handle, _), poll) in watched.iter().zip(&polled[1..]) {
            if !poll.revents().is_empty() {
                ready.push(*handle);
            }
        }
        polled.first().is_some_and(|socket| !socket.revents().is_empty())
    };
    let watches = handles.watches().filter(|(handle, _)| ready.contains(handle));
    for (handle, watch) in watches {
        // Only some of them: who makes changes without end must not keep requests waiting.
        let changes = watch.next_changes();
        if !changes.is_empty() {
            palisade_wire::send(socket, &Reply::Changed { handle, changes }, &[])?;
        }
    }
    Ok(if request { Waiting::Yes } else { Waiting::No })
}

fn perform(handles: &mut Handles, request: Request) -> Result<Response, FileError> {
    Ok(match request {
        Request::Hello { .. } => Response::Hello { version: VERSION },
        Request::Stat { path, follow_links } => Response::Info(names::info(&path, follow_links)?),
        Request::OpenDirectory { path, depth } => {
            let (walk, info) = Walk::new(&path, depth)?;
            opened(handles, Open::Walking(walk), info, &path)?
        }
        Request::NextEntries { handle } => match handles.get(handle)? {
            Open::Walking(walk) => Response::Entries(walk.next_entries()?),
            _ => return Err(wrong_handle("list")),
        },
        Request::OpenForReading { path } => {
            let (file, info) = open_for_reading(&path)?;
            opened(handles, Open::Reading(file), info, &path)?
        }
        Request::Read { handle, offset, length } => match handles.get(handle)? {
            Open::Reading(file) => Response::Content(read(file, offset, length)?),
            _ => return Err(wrong_handle("read")),
        },
        Request::OpenForWriting { path, options } => {
            let (writing, info) = Writing::open(&path, &options)?;
            opened(handles, Open::Writing(writing), info, &path)?
        }
        Request::Write { handle, bytes } => match handles.get(handle)? {
            Open::Writing(writing) => {
                writing.write(&bytes)?;
                Response::Done
            }
            _ => return Err(wrong_handle("write")),
        },
        Request::Commit { handle } => match handles.take(handle)? {
            Open::Writing(writing) => Response::Info(writing.commit()?),
            _ => return Err(wrong_handle("commit")),
        },
        Request::Close { handle } => {
            handles.take(handle)?;
            Response::Done
        }
        Request::MakeDirectory { path, make_parents } => {
            Response::Info(names::make_directory(&path, make_parents)?)
        }
        Request::Rename { from, to, replace } => {
            Response::Info(names::rename(&from, &to, replace)?)
        }
        Request::Remove { path, recursive } => {
            names::remove(&path, recursive)?;
            Response::Done
        }
        Request::Watch { path, recursive } => {
            let (watch, info) = Watch::new(&path, recursive)?;
            opened(handles, Open::Watching(watch), info, &path)?
        }
    })
}

fn opened(
    handles: &mut Handles,
    open: Open,
    info: FileInfo,
    path: &Path,
) -> Result<Response, FileError> {
    Ok(Response::Opened { handle: handles.add(open, path)?, info })
}

fn wrong_handle(call: &str) -> FileError {
    FileError { call: call.to_owned(), path: "".into(), errno: Errno::BADF }
}

fn open_for_reading(path: &Path) -> Result<(File, FileInfo), FileError> {
    // A FIFO or a device must not keep the client waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).at("open", path)?;
    let stat = rustix::fs::fstat(&file).at("stat", path)?;
    match KernelType::from_raw_mode(stat.st_mode) {
        KernelType::RegularFile => Ok((file.into(), FileInfo::new(&stat, None))),
        KernelType::Directory => Err(Errno::ISDIR).at("open", path),
        _ => Err(Errno::OPNOTSUPP).at("open", path),
    }
}

fn read(file: &File, offset: u64, length: u32) -> Result<Vec<u8>, FileError> {
    let length = usize::try_from(length).unwrap_or(MAX_CONTENT).min(MAX_CONTENT);
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let from = offset.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(&mut bytes[filled..], from) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).at("read", Path::new("")),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
