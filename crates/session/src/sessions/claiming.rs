//! What is written down about a session, and what becomes of it when a sandbox that was prepared is claimed.
//!
//! The supervisor asks for it while it answers a request, so this must never wait for anything but a lock that others hold for
//! microseconds.

use super::create::lock_names;
use super::directory::SessionDirectory;
use super::find;
use super::record::SessionRecord;
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use jiff::Timestamp;
use palisade_supervisor::ClaimRecord;
use palisade_supervisor::control::connection::is_seqpacket;
use palisade_supervisor::control::interface::ClaimSandbox;
use palisade_sys::fdpass::socketpair;
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

/// The client that a sandbox is prepared for.
#[derive(Debug)]
pub struct SessionOwner {
    /// One end of a pair of SEQPACKET sockets.
    pub(super) socket: OwnedFd,
    /// Whether it may be long before the sandbox is claimed.
    pub(super) waits: bool,
    /// The other end, if the client is the process that makes the sandbox.
    client: Option<ClientEnd>,
}

/// The client's end of the socket of an owner, where the client is the process that makes the sandbox. The supervisor is a fork of it and
/// must not keep this end open: it would not notice that the client is gone.
#[derive(Clone, Debug)]
pub struct ClientEnd(Rc<RefCell<Option<OwnedFd>>>);

impl ClientEnd {
    /// The socket, once.
    pub fn take(&self) -> Option<OwnedFd> {
        self.0.borrow_mut().take()
    }
}

impl SessionOwner {
    /// This process, with its end.
    pub fn here() -> Result<(Self, ClientEnd)> {
        let (ours, socket) = socketpair()?;
        let client = ClientEnd(Rc::new(RefCell::new(Some(ours))));
        Ok((Self { socket, waits: false, client: Some(client.clone()) }, client))
    }

    /// In the supervisor: the client is another process.
    pub(crate) fn close_client(&self) {
        drop(self.client.as_ref().and_then(ClientEnd::take));
    }

    /// At the other end of standard input.
    pub fn at_stdin(waits: bool) -> Result<Self> {
        let input = rustix::stdio::stdin();
        let failed = |source| SessionError::io("take", Path::new("standard input"), source);
        if !is_seqpacket(input)? {
            return Err(SessionError::NotAControlSocket { number: 0 });
        }
        let socket = input.try_clone_to_owned().map_err(failed)?;
        Ok(Self { socket, waits, client: None })
    }
}

/// The record of the session that this process supervises.
#[derive(Debug)]
pub(crate) struct KeptRecord {
    places: AppDirs,
    directory: SessionDirectory,
    record: RefCell<SessionRecord>,
    /// Whether nothing is left of it when it has ended.
    is_temporary: Cell<bool>,
}

impl KeptRecord {
    /// A sandbox that is prepared leaves nothing unless somebody claims it and wants it to stay.
    pub(super) fn new(places: AppDirs, directory: SessionDirectory, record: SessionRecord) -> Self {
        let is_temporary = Cell::new(record.is_prepared);
        Self { places, directory, record: RefCell::new(record), is_temporary }
    }

    /// Changes it, in the file, too.
    pub(super) fn change(&self, change: impl FnOnce(&mut SessionRecord)) -> Result<()> {
        let mut record = self.record.borrow_mut();
        change(&mut record);
        self.directory.write_record(&record)
    }

    /// Whether nobody has claimed it.
    pub(super) fn is_prepared(&self) -> bool {
        self.record.borrow().is_prepared
    }

    /// Whether its directory goes with it. Changes that wait are kept.
    pub(super) fn leaves_nothing(&self) -> bool {
        self.is_temporary.get() && self.record.borrow().transaction.is_none()
    }

    fn claimed(&self, claim: &ClaimSandbox) -> Result<()> {
        // Until the name is in the record.
        let _names = match &claim.name {
            Some(name) => {
                let lock = lock_names(&self.places)?;
                find::check_new_name(&self.places, name)?;
                Some(lock)
            }
            None => None,
        };
        let mut record = self.record.borrow().clone();
        record.is_prepared = false;
        record.name.clone_from(&claim.name);
        record.created_at = Timestamp::now();
        self.directory.write_record(&record)?;
        *self.record.borrow_mut() = record;
        self.is_temporary.set(claim.is_temporary);
        Ok(())
    }
}

impl ClaimRecord for KeptRecord {
    fn claim(&self, claim: &ClaimSandbox) -> Result<(), String> {
        self.claimed(claim).map_err(|error| error.to_string())
    }
}
