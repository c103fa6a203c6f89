//! The main loop: requests of the kernel, answers of the supervisor, and the process that builds the view. One thread,
//! which never waits for any of them alone.

use crate::handles::Open;
use crate::message::{FromSetup, ToGateFs, ToSetup};
use crate::server::{Answer, GateFsServer};
use palisade_fuse::{
    Buffer, FileHandle, Handshake, InitFlags, Operation, Received, Reply, Request, Terms,
};
use palisade_sys::Errno;
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_wire::{WireError, WireMessage as _};
use rustix::fs::{AtFlags, SeekFrom, seek};
use std::os::fd::AsFd as _;
use std::time::Instant;

/// So many requests are answered before the supervisor is heard: a flood must not keep an answer from those who wait.
const REQUESTS_A_TURN: usize = 64;
const MAX_WRITE_BYTES: u32 = 256 << 10;
const MAX_READ_BYTES: usize = 1 << 20;
/// Requests that nobody waits for: read-ahead.
const MAX_BACKGROUND: u16 = 64;

const TERMS: Terms = Terms {
    flags: InitFlags::USUAL
        .union(InitFlags::ABORT_ERROR)
        .union(InitFlags::DO_READDIRPLUS)
        .union(InitFlags::READDIRPLUS_AUTO),
    max_write: MAX_WRITE_BYTES,
    max_readahead: 128 << 10,
    max_background: MAX_BACKGROUND,
};

/// Serves until the supervisor is gone or the file system is unmounted.
pub(crate) fn serve(mut server: GateFsServer<'_>) -> ! {
    let mut buffer = Buffer::new(MAX_WRITE_BYTES);
    loop {
        let room = if server.waiting.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
        let mut set = vec![
            PollFd::new(&server.connection, PollFlags::IN),
            PollFd::new(&server.supervisor, PollFlags::IN | room),
            PollFd::new(&server.watcher, PollFlags::IN),
        ];
        set.extend(server.setup.as_ref().map(|setup| PollFd::new(setup, PollFlags::IN)));
        let timeout = server.waiting.next_deadline();
        let timeout = timeout.map(|next| next.saturating_duration_since(Instant::now()));
        if let Err(error) = proc::poll_for_work(&mut set, timeout)
            && error.errno != Errno::INTR
        {
            server.fail(error.to_string());
        }
        let [requests, answers, returned] = [0, 1, 2].map(|number: usize| set[number].revents());
        let has_setup = set.get(3).is_some_and(|polled| !polled.revents().is_empty());
        drop(set);
        if answers.contains(PollFlags::OUT) {
            server.waiting.flush(&server.supervisor);
        }
        if answers.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            server.receive_replies();
        }
        if has_setup {
            server.receive_from_setup();
        }
        if !returned.is_empty() {
            server.report_returned();
        }
        for call in server.waiting.take_dying(&server.supervisor, &server.callers) {
            server.reply(call.unique, &Reply::error(Errno::INTR));
        }
        if !requests.is_empty() {
            server.serve_requests(&mut buffer);
        }
    }
}

impl GateFsServer<'_> {
    fn report_returned(&mut self) {
        match self.watcher.returned() {
            Ok(returned) => {
                for request in returned {
                    self.waiting.has_returned(&self.supervisor, request);
                }
            }
            Err(errno) => self.fail(format!("calls are not watched any more: {errno}")),
        }
    }

    fn serve_requests(&mut self, buffer: &mut Buffer) {
        for _ in 0..REQUESTS_A_TURN {
            // The request borrows the buffer, not the connection.
            let received = match self.connection.receive(buffer) {
                Ok(received) => received,
                Err(error) => self.fail(error.to_string()),
            };
            match received {
                Received::Request(request) => self.serve_one(&request),
                Received::Malformed(error) => {
                    if let Some(unique) = error.unique {
                        self.reply(unique, &Reply::error(Errno::IO));
                    }
                }
                Received::Nothing => return,
                Received::Withdrawn => {}
                // The sandbox and its mounts are gone.
                Received::Closed => proc::exit_now(0),
                Received::Aborted => self.fail("its connection was aborted".to_owned()),
            }
        }
    }

    fn serve_one(&mut self, request: &Request<'_>) {
        match self.answer(request) {
            Ok(Some(reply)) => self.reply(request.unique, &reply),
            Ok(None) => {}
            Err(errno) => self.reply(request.unique, &Reply::error(errno)),
        }
    }

    fn answer(&mut self, request: &Request<'_>) -> Answer {
        match &request.operation {
            Operation::Init(offer) => match offer.agree(&TERMS) {
                Ok(Handshake::Agreed(agreement)) => Ok(Some(Reply::init(&agreement).into_owned())),
                Ok(Handshake::LaterMajor) => Ok(Some(Reply::our_version())),
                Err(_) => Err(Errno::PROTO),
            },
            Operation::Lookup { name } => self.look_up(request, name),
            Operation::Forget { count } => {
                self.nodes.forget(request.node, *count);
                Ok(None)
            }
            Operation::BatchForget(list) => {
                for forgotten in list.iter() {
                    self.nodes.forget(forgotten.node, forgotten.count);
                }
                Ok(None)
            }
            Operation::Interrupt { request } => {
                self.waiting.interrupted(*request);
                Ok(None)
            }
            Operation::GetAttr { handle } => self.get_attributes(request, *handle),
            Operation::ReadLink => self.read_link(request),
            Operation::Open { flags } => self.open(request, *flags),
            Operation::OpenDir { .. } => self.open_directory(request),
            Operation::Access { mask } => self.access(request, *mask),
            Operation::GetXattr { name, size } => self.get_xattr(request, name, *size),
            Operation::ListXattr { size } => self.list_xattr(request, *size),
            Operation::StatFs => self.stat_fs(request),
            Operation::Read { handle, offset, size, .. } => self.read(*handle, *offset, *size),
            Operation::ReadDir { handle, offset, size } => self.list(*handle, *offset, *size),
            Operation::ReadDirPlus { handle, offset, size } => {
                self.list_with_look_ups(request, (*handle, *offset), *size)
            }
            Operation::Release { handle, .. } | Operation::ReleaseDir { handle, .. } => {
                self.close(*handle);
                Ok(Some(Reply::done()))
            }
            Operation::Lseek { handle, offset, whence } => self.seek(*handle, *offset, *whence),
            Operation::FSync { .. } | Operation::FSyncDir { .. } | Operation::Destroy => {
                Ok(Some(Reply::done()))
            }
            Operation::SetAttr(changes) => self.set_attributes(request, changes),
            Operation::Symlink { name, target } => self.make_link(request, name, target),
            Operation::MkNod { name, mode, device, .. } => {
                self.make_node(request, name, (*mode, *device))
            }
            Operation::MkDir { name, mode, .. } => self.make_directory(request, name, *mode),
            Operation::Unlink { name } => self.remove(request, name, AtFlags::empty()),
            Operation::RmDir { name } => self.remove(request, name, AtFlags::REMOVEDIR),
            Operation::Rename { name, new_parent, new_name, flags } => {
                self.rename(request, name, (*new_parent, new_name), *flags)
            }
            Operation::Link { old, new_name } => self.make_hard_link(request, *old, new_name),
            Operation::Create { name, flags, mode, .. } => {
                self.create(request, name, (*flags, *mode))
            }
            Operation::Write { handle, offset, data, .. } => self.write(*handle, *offset, data),
            Operation::SetXattr { name, value, flags } => {
                self.set_xattr(request, name, (value, *flags))
            }
            Operation::RemoveXattr { name } => self.remove_xattr(request, name),
            // The kernel then does without, and does not ask again.
            Operation::Flush { .. }
            | Operation::Statx { .. }
            | Operation::Ioctl { .. }
            | Operation::Poll { .. }
            | Operation::Other(_) => Err(Errno::NOSYS),
        }
    }

    fn read(&self, handle: FileHandle, offset: u64, size: u32) -> Answer {
        let file = self.handles.readable(handle)?;
        let size = usize::try_from(size).unwrap_or(0).min(MAX_READ_BYTES);
        let mut data = vec![0; size];
        let mut length = 0;
        while length < size {
            match rustix::io::pread(file, &mut data[length..], offset + length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno::INTR) => {}
                Err(errno) if length == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        data.truncate(length);
        Ok(Some(Reply::data(data)))
    }

    fn seek(&self, handle: FileHandle, offset: u64, whence: u32) -> Answer {
        const SEEK_DATA: u32 = 3;
        const SEEK_HOLE: u32 = 4;
        let from = match whence {
            SEEK_DATA => SeekFrom::Data(offset),
            SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        Ok(Some(Reply::position(seek(self.handles.readable(handle)?, from)?)))
    }

    fn close(&mut self, handle: FileHandle) {
        let Some(closed) = self.handles.remove(handle) else { return };
        if matches!(closed.open, Open::Lent(..))
            && let Some(node) = self.nodes.get_mut(closed.node)
        {
            node.lent = node.lent.saturating_sub(1);
        }
    }

    /// Whatever the supervisor has said by now.
    pub(crate) fn receive_replies(&mut self) {
        let mut buffer = vec![0; ToGateFs::MAX_BYTES];
        loop {
            match palisade_wire::try_receive(&self.supervisor, &mut buffer) {
                Ok(Some(received)) => {
                    let mut files = received.descriptors;
                    match received.message {
                        ToGateFs::Reply(reply) => self.carry_out(&reply, files.pop()),
                        ToGateFs::Grafted { path } => {
                            self.granted.insert(path);
                        }
                        ToGateFs::Ungrafted { path, is_name_kept } => {
                            self.granted.remove(&path);
                            if !is_name_kept {
                                self.nodes.release(&path);
                            }
                        }
                    }
                }
                Ok(None) => return,
                Err(WireError::Closed) => proc::exit_now(0),
                // An answer is lost; when the server ends, so do all calls.
                Err(_) => proc::exit_now(1),
            }
        }
    }

    /// The next message of the processes that build the view. When they are done, the socket is dropped.
    fn receive_from_setup(&mut self) {
        let Some(setup) = self.setup.take() else { return };
        let mut buffer = vec![0; FromSetup::MAX_BYTES];
        let Ok(received) = palisade_wire::receive::<FromSetup>(&setup, &mut buffer) else { return };
        let mut files = received.descriptors;
        let answer = match (received.message, files.pop()) {
            (FromSetup::Ground { path }, Some(root)) => {
                self.grounds.add(path, root);
                ToSetup::Shown
            }
            _ => ToSetup::Failed("a message that was not expected".to_owned()),
        };
        if palisade_wire::send(setup.as_fd(), &answer, &[]).is_ok() {
            self.setup = Some(setup);
        }
    }
}
