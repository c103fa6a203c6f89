//! The client's side: one request after the other over a socket of its own, and whole files by several of them. What comes back
//! is as untrusted as any output of the sandbox.

use crate::protocol::{
    Change, ChangeKind, FileError, FileInfo, Handle, Listing, MAX_CONTENT, Reply, Request,
    Response, VERSION, WriteOptions,
};
use palisade_wire::{WireError, WireMessage as _};
use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Changes that nobody asked for yet. Of more than these only that there were more is kept.
const MAX_UNREAD_CHANGES: usize = 4096;

#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    buffer: Vec<u8>,
    changes: VecDeque<(Handle, Change)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The sandbox's own answer.
    #[error(transparent)]
    Refused(#[from] FileError),
    #[error("the process that serves the sandbox's files is gone: {0}")]
    Lost(#[from] WireError),
    #[error(
        "the process that serves the sandbox's files answered something else than it was asked"
    )]
    Unexpected,
    #[error(
        "the session was started by another version of this program, which serves files differently: start a new one"
    )]
    OtherVersion,
    #[error("{path} has more than {limit} bytes", path = path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("what is to be written could not be read: {0}")]
    Source(#[source] std::io::Error),
}

type Result<T, E = ClientError> = std::result::Result<T, E>;

impl Client {
    /// `socket` is one end of a pair, whose other end is the standard input of the process inside.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        let mut client =
            Self { socket, buffer: vec![0; Reply::MAX_BYTES], changes: VecDeque::new() };
        match client.ask(&Request::Hello { version: VERSION })? {
            Response::Hello { version: VERSION } => Ok(client),
            Response::Hello { .. } => Err(ClientError::OtherVersion),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Readable when a change or the end has come.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn info(&mut self, path: &Path, follow_links: bool) -> Result<FileInfo> {
        self.info_of(&Request::Stat { path: path.to_owned(), follow_links })
    }

    pub fn make_directory(&mut self, path: &Path, make_parents: bool) -> Result<FileInfo> {
        self.info_of(&Request::MakeDirectory { path: path.to_owned(), make_parents })
    }

    pub fn rename(&mut self, from: &Path, to: &Path, replace: bool) -> Result<FileInfo> {
        self.info_of(&Request::Rename { from: from.to_owned(), to: to.to_owned(), replace })
    }

    pub fn remove(&mut self, path: &Path, recursive: bool) -> Result<()> {
        self.done(&Request::Remove { path: path.to_owned(), recursive })
    }

    /// All entries down to this depth, or [`ClientError::TooLarge`] with more than `limit`.
    pub fn list(&mut self, path: &Path, depth: u32, limit: usize) -> Result<Vec<Listing>> {
        let (handle, _) = self.open(&Request::OpenDirectory { path: path.to_owned(), depth })?;
        let listed = self.list_all(handle, path, limit);
        self.close(handle)?;
        listed
    }

    fn list_all(&mut self, handle: Handle, path: &Path, limit: usize) -> Result<Vec<Listing>> {
        let mut listed = Vec::new();
        loop {
            match self.ask(&Request::NextEntries { handle })? {
                Response::Entries(entries) if entries.is_empty() => return Ok(listed),
                Response::Entries(entries) if listed.len() + entries.len() > limit => {
                    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
                    drop(entries);
                    return Err(ClientError::TooLarge { path: path.to_owned(), limit });
                }
                Response::Entries(entries) => listed.extend(entries),
                _ => return Err(ClientError::Unexpected),
            }
        }
    }

    /// A whole file, or [`ClientError::TooLarge`] with more than `limit` bytes.
    pub fn read(&mut self, path: &Path, limit: u64) -> Result<(Vec<u8>, FileInfo)> {
        let (handle, info) = self.open_for_reading(path)?;
        let content = self.read_all(handle, path, limit);
        self.close(handle)?;
        Ok((content?, info))
    }

    fn read_all(&mut self, handle: Handle, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let offset = u64::try_from(content.len()).unwrap_or(u64::MAX);
            let part = self.read_part(handle, offset, MAX_CONTENT)?;
            if part.is_empty() {
                return Ok(content);
            }
            content.extend_from_slice(&part);
            if u64::try_from(content.len()).unwrap_or(u64::MAX) > limit {
                return Err(ClientError::TooLarge { path: path.to_owned(), limit });
            }
        }
    }

    pub fn open_for_reading(&mut self, path: &Path) -> Result<(Handle, FileInfo)> {
        self.open(&Request::OpenForReading { path: path.to_owned() })
    }

    /// At most `length` bytes and at most [`MAX_CONTENT`]; none at the end of the file.
    pub fn read_part(&mut self, handle: Handle, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = u32::try_from(length.min(MAX_CONTENT)).unwrap_or(u32::MAX);
        match self.ask(&Request::Read { handle, offset, length })? {
            Response::Content(bytes) => Ok(bytes),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Writes a whole file. Until the last byte is there, nothing changes.
    pub fn write(
        &mut self,
        path: &Path,
        content: &mut dyn Read,
        options: WriteOptions,
    ) -> Result<FileInfo> {
        let handle = self.open_for_writing(path, options)?;
        match self.write_all(handle, content) {
            Ok(()) => self.commit(handle),
            Err(error) => {
                // Why it failed is worth more than that it cannot be closed either.
                let _ = self.close(handle);
                Err(error)
            }
        }
    }

    fn write_all(&mut self, handle: Handle, content: &mut dyn Read) -> Result<()> {
        let mut part = vec![0; MAX_CONTENT];
        loop {
            match content.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(length) => self.write_part(handle, &part[..length])?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ClientError::Source(error)),
            }
        }
    }

    pub fn open_for_writing(&mut self, path: &Path, options: WriteOptions) -> Result<Handle> {
        let request = Request::OpenForWriting { path: path.to_owned(), options };
        self.open(&request).map(|(handle, _)| handle)
    }

    /// At most [`MAX_CONTENT`] bytes.
    pub fn write_part(&mut self, handle: Handle, bytes: &[u8]) -> Result<()> {
        self.done(&Request::Write { handle, bytes: bytes.to_vec() })
    }

    pub fn commit(&mut self, handle: Handle) -> Result<FileInfo> {
        self.info_of(&Request::Commit { handle })
    }

    pub fn close(&mut self, handle: Handle) -> Result<()> {
        self.done(&Request::Close { handle })
    }

    pub fn watch(&mut self, path: &Path, recursive: bool) -> Result<Handle> {
        let request = Request::Watch { path: path.to_owned(), recursive };
        self.open(&request).map(|(handle, _)| handle)
    }

    /// Waits for the next change of what is watched.
    pub fn next_change(&mut self) -> Result<(Handle, Change)> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Ok(change);
            }
            if self.receive()?.is_some() {
                return Err(ClientError::Unexpected);
            }
        }
    }

    fn open(&mut self, request: &Request) -> Result<(Handle, FileInfo)> {
        match self.ask(request)? {
            Response::Opened { handle, info } => Ok((handle, info)),
            _ => Err(ClientError::Unexpected),
        }
    }

    fn info_of(&mut self, request: &Request) -> Result<FileInfo> {
        match self.ask(request)? {
            Response::Info(info) => Ok(info),
            _ => Err(ClientError::Unexpected),
        }
    }

    fn done(&mut self, request: &Request) -> Result<()> {
        match self.ask(request)? {
            Response::Done => Ok(()),
            _ => Err(ClientError::Unexpected),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Response> {
        palisade_wire::send(&self.socket, request, &[])?;
        loop {
            match self.receive()? {
                Some(Response::Failed(error)) => return Err(error.into()),
                Some(response) => return Ok(response),
                None => {}
            }
        }
    }

    /// The next response; none if it was a change.
    fn receive(&mut self) -> Result<Option<Response>> {
        let received = palisade_wire::receive::<Reply>(&self.socket, &mut self.buffer)?;
        Ok(match received.message {
            Reply::Response(response) => Some(response),
            Reply::Changed { handle, changes } => {
                if self.changes.len() < MAX_UNREAD_CHANGES {
                    self.changes.extend(changes.into_iter().map(|change| (handle, change)));
                } else {
                    let lost = Change { kind: ChangeKind::Overflow, path: PathBuf::new() };
                    if self.changes.back().is_none_or(|(_, last)| *last != lost) {
                        self.changes.push_back((handle, lost));
                    }
                }
                None
            }
        })
    }
}
