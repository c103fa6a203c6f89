//! Finds all sessions by their sockets in one directory, and tracks their open questions.
//!
//! Sessions start and end at any time. A session that cannot be understood is reported once and then ignored;
//! it must never hide the others.

use crate::answer::{Answer, Store};
use crate::client::{Client, ClientError};
use crate::leftover::{self, SUFFIX};
use crate::message::{Audit, ClientCommand, Hello, PROTOCOL, Refused, ServerEvent};
use crate::question::{Question, QuestionId};
use palisade_sys::lock::{lock_within, open_lock_file, try_lock_file};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory for the sockets of sessions. Normally it is in the user's runtime directory, which only that
/// user can enter and which is removed at logout; otherwise it is below our own state directory. A variable
/// that names another user's directory (`sudo -E`, `su`) or one that others can write to (`/tmp`) is ignored: a
/// user who can put a link there could have files created and removed elsewhere in this user's name.
pub fn socket_directory(runtime: Option<&OsStr>, state: &Path) -> PathBuf {
    match runtime.map(Path::new).filter(|path| path.is_absolute() && is_own(path)) {
        Some(runtime) => runtime.join("palisade"),
        None => state.join("run"),
    }
}

fn is_own(directory: &Path) -> bool {
    let mine = rustix::process::geteuid().as_raw();
    fs::metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == mine && found.mode() & 0o022 == 0)
}

const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A shared lock, held by every client that displays questions and could answer them; see [`Sessions::attend`].
pub const APPROVER_LOCK: &str = "approver.lock";

/// The socket of one session.
pub fn socket_path(directory: &Path, session: &str) -> PathBuf {
    directory.join(format!("{session}{SUFFIX}"))
}

#[derive(Debug)]
pub enum SessionChange {
    Appeared {
        session: String,
    },
    /// Its open questions are gone as well.
    Vanished {
        session: String,
    },
    /// A question is new, or more calls wait for it.
    Asked {
        session: String,
        id: QuestionId,
        is_new: bool,
    },
    Answered {
        session: String,
        audit: Audit,
    },
    Withdrawn {
        session: String,
        id: QuestionId,
    },
    /// Our command was carried out.
    Done {
        session: String,
        command: String,
    },
    /// Our command was rejected.
    Refused {
        session: String,
        refused: Refused,
    },
    /// The session exists, but communication with it fails.
    Trouble {
        session: String,
        error: ClientError,
    },
}

#[derive(Debug)]
pub struct Session {
    client: Client,
    /// `None` until the session has sent it.
    hello: Option<Hello>,
    open: BTreeMap<QuestionId, Question>,
    /// How many questions that were open when we connected have not arrived yet.
    expected: usize,
}

impl Session {
    /// The run's command line, as the session reports it.
    pub fn command(&self) -> &str {
        self.hello.as_ref().map_or("", |hello| &hello.command)
    }

    /// The project of the run, as the session reports it.
    pub fn project(&self) -> &str {
        self.hello.as_ref().map_or("", |hello| &hello.project)
    }

    /// Oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.open.values()
    }

    fn has_told_everything(&self) -> bool {
        self.hello.is_some() && self.expected == 0
    }
}

#[derive(Debug)]
pub struct Sessions {
    directory: PathBuf,
    /// The name that is recorded with our answers.
    name: String,
    connected: BTreeMap<String, Session>,
    /// Sockets that failed, with their inodes: a new socket of the same name is tried again.
    failed: BTreeMap<String, u64>,
    /// The lock that shows that a client is present.
    attendance: Option<OwnedFd>,
    /// If set, all other sessions are ignored.
    only: Option<String>,
}

impl Sessions {
    /// Raises the limit of open files to the hard limit: every session needs a descriptor.
    pub fn new(directory: &Path, name: &str) -> Self {
        let most = getrlimit(Resource::Nofile).maximum;
        // If this fails, the current limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
        Self::in_directory(directory, name)
    }

    /// One session, and no other. Changes nothing about this process, which may be anybody's.
    pub fn of_one(directory: &Path, name: &str, session: &str) -> Self {
        Self { only: Some(session.to_owned()), ..Self::in_directory(directory, name) }
    }

    fn in_directory(directory: &Path, name: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            name: name.to_owned(),
            connected: BTreeMap::new(),
            failed: BTreeMap::new(),
            attendance: None,
            only: None,
        }
    }

    /// Ignores all sessions but this one.
    pub fn only(&mut self, session: &str) {
        self.only = Some(session.to_owned());
    }

    /// Shows sessions that a client displays questions, for as long as this value lives. A session has no
    /// socket before its first question, and denies that question at once if no client is present. A client for
    /// one session only does not count for the others.
    pub fn attend(&mut self) -> Result<(), ClientError> {
        if self.only.is_some() {
            return Ok(());
        }
        let attend = |source| ClientError::Attend { path: self.directory.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(attend)?;
        self.check_directory()?;
        let refused = |errno: Errno| attend(errno.into());
        let file = open_lock_file(&self.directory.join(APPROVER_LOCK)).map_err(refused)?;
        let try_lock = || try_lock_file(&file, FlockOperation::NonBlockingLockShared);
        if !lock_within(LOCK_TIMEOUT, try_lock).map_err(refused)? {
            return Err(refused(Errno::AGAIN));
        }
        self.attendance = Some(file);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The sessions that have introduced themselves.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Session)> {
        let greeted = self.connected.iter().filter(|(_, session)| session.hello.is_some());
        greeted.map(|(name, session)| (name.as_str(), session))
    }

    pub fn question(&self, session: &str, id: QuestionId) -> Option<&Question> {
        self.connected.get(session)?.open.get(&id)
    }

    /// Descriptors to poll for reading.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.connected.values().map(|session| session.client.as_fd())
    }

    /// Looks for new sessions, and processes the events of the known ones.
    pub fn refresh(&mut self) -> Result<Vec<SessionChange>, ClientError> {
        let mut changes = Vec::new();
        self.discover(&mut changes)?;
        let names: Vec<String> = self.connected.keys().cloned().collect();
        for name in names {
            self.listen(&name, &mut changes);
        }
        Ok(changes)
    }

    /// The same, and waits until every session has sent the questions that were open when it was found.
    pub fn refresh_fully(&mut self, patience: Duration) -> Result<Vec<SessionChange>, ClientError> {
        let deadline = Instant::now() + patience;
        let mut changes = self.refresh()?;
        let names: Vec<String> = self.connected.keys().cloned().collect();
        for name in names {
            while let Some(session) =
                self.connected.get_mut(&name).filter(|session| !session.has_told_everything())
            {
                let heard = match session.client.wait(deadline) {
                    Ok(Some(event)) => session.hear(&name, event, &mut changes),
                    Ok(None) => {
                        let error = ClientError::Silent;
                        changes.push(SessionChange::Trouble { session: name.clone(), error });
                        break;
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = heard {
                    self.part(&name, error, &mut changes);
                }
            }
        }
        Ok(changes)
    }

    /// Sends an answer. A later [`Sessions::refresh`] reports whether it was accepted.
    pub fn answer(
        &mut self,
        session: &str,
        id: QuestionId,
        answer: Answer,
    ) -> Result<(), ClientError> {
        let session = self.connected.get_mut(session).ok_or(ClientError::Gone)?;
        session.client.send(&ClientCommand::answering(id, answer))
    }

    /// Asks the session to save its answers to a policy. A later [`Sessions::refresh`] reports the outcome.
    pub fn save(&mut self, session: &str, store: Store) -> Result<(), ClientError> {
        let session = self.connected.get_mut(session).ok_or(ClientError::Gone)?;
        session.client.send(&ClientCommand::PolicySave { scope: store })
    }

    fn discover(&mut self, changes: &mut Vec<SessionChange>) -> Result<(), ClientError> {
        let unreadable = |source| ClientError::Unreadable { path: self.directory.clone(), source };
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
        };
        self.check_directory()?;
        let mut found = BTreeMap::new();
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let session = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            let (Some(session), Ok(metadata)) = (session, entry.metadata()) else { continue };
            let is_wanted = self.only.as_deref().is_none_or(|only| only == session);
            if !session.is_empty() && is_wanted {
                found.insert(session.to_owned(), metadata.ino());
            }
        }
        self.failed.retain(|name, inode| found.get(name) == Some(inode));
        for (name, inode) in found {
            if self.connected.contains_key(&name) || self.failed.contains_key(&name) {
                continue;
            }
            match self.join(&name) {
                Ok(session) => {
                    self.connected.insert(name, session);
                }
                // A killed session left the socket behind, or the session does not listen yet.
                Err(ClientError::Connect { source, .. })
                    if source.kind() == io::ErrorKind::ConnectionRefused =>
                {
                    leftover::remove_if_dead(&socket_path(&self.directory, &name));
                }
                // The session has just ended, or is stopped. Both can change, so it is not marked as failed.
                Err(ClientError::Connect { source, .. })
                    if matches!(
                        source.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    ) => {}
                Err(ClientError::Gone) => {}
                Err(error) => {
                    self.failed.insert(name.clone(), inode);
                    changes.push(SessionChange::Trouble { session: name, error });
                }
            }
        }
        Ok(())
    }

    /// Sockets in another user's directory could ask for permissions that no run of ours needs.
    fn check_directory(&self) -> Result<(), ClientError> {
        let wrong = |reason| ClientError::Directory { path: self.directory.clone(), reason };
        let metadata = fs::metadata(&self.directory)
            .map_err(|source| ClientError::Unreadable { path: self.directory.clone(), source })?;
        let mine = rustix::process::geteuid();
        if !mine.is_root() && metadata.uid() != mine.as_raw() {
            return Err(wrong("belongs to somebody else"));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(wrong("can be written to by others"));
        }
        Ok(())
    }

    fn join(&self, name: &str) -> Result<Session, ClientError> {
        let mut client = Client::connect(&socket_path(&self.directory, name))?;
        client.send(&ClientCommand::Hello { protocol: PROTOCOL, name: self.name.clone() })?;
        Ok(Session { client, hello: None, open: BTreeMap::new(), expected: 0 })
    }

    fn listen(&mut self, name: &str, changes: &mut Vec<SessionChange>) {
        while let Some(session) = self.connected.get_mut(name) {
            let heard = match session.client.next_event() {
                Ok(Some(event)) => session.hear(name, event, changes),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = heard {
                self.part(name, error, changes);
            }
        }
    }

    fn part(&mut self, name: &str, error: ClientError, changes: &mut Vec<SessionChange>) {
        let had_greeted =
            self.connected.remove(name).is_some_and(|session| session.hello.is_some());
        let session = name.to_owned();
        if !matches!(error, ClientError::Gone) {
            let path = socket_path(&self.directory, name);
            if let Ok(metadata) = fs::symlink_metadata(path) {
                self.failed.insert(session.clone(), metadata.ino());
            }
            changes.push(SessionChange::Trouble { session: session.clone(), error });
        }
        if had_greeted {
            changes.push(SessionChange::Vanished { session });
        }
    }
}

impl Session {
    fn hear(
        &mut self,
        name: &str,
        event: ServerEvent,
        changes: &mut Vec<SessionChange>,
    ) -> Result<(), ClientError> {
        let session = name.to_owned();
        match event {
            ServerEvent::Hello(hello) if hello.protocol != PROTOCOL => {
                return Err(ClientError::Protocol(hello.protocol));
            }
            ServerEvent::Hello(hello) => {
                self.expected = hello.open;
                self.hello = Some(hello);
                changes.push(SessionChange::Appeared { session });
            }
            _ if self.hello.is_none() => {
                return Err(ClientError::Garbled("it did not introduce itself".to_owned()));
            }
            ServerEvent::FsRequest(request) => changes.push(self.asked(session, (*request).into())),
            ServerEvent::HostRequest(request) => {
                changes.push(self.asked(session, (*request).into()));
            }
            ServerEvent::Audit(audit) => {
                self.close(audit.id);
                changes.push(SessionChange::Answered { session, audit });
            }
            ServerEvent::Withdrawn { id } => {
                self.close(id);
                changes.push(SessionChange::Withdrawn { session, id });
            }
            ServerEvent::Error(refused) => {
                changes.push(SessionChange::Refused { session, refused });
            }
            ServerEvent::Reply(reply) if reply.command == "cmd.hello" => {}
            ServerEvent::Reply(reply) => {
                changes.push(SessionChange::Done { session, command: reply.command });
            }
            // No command of ours.
            ServerEvent::Revoked(_) | ServerEvent::Unknown => {}
        }
        Ok(())
    }

    fn asked(&mut self, session: String, mut question: Question) -> SessionChange {
        // The socket's name identifies the session, whatever the session claims.
        question.session.clone_from(&session);
        let id = question.id;
        let is_new = self.open.insert(id, question).is_none();
        if is_new {
            self.expected = self.expected.saturating_sub(1);
        }
        SessionChange::Asked { session, id, is_new }
    }

    fn close(&mut self, id: QuestionId) {
        if self.open.remove(&id).is_none() {
            // It was open when we connected, and closed before it was sent to us.
            self.expected = self.expected.saturating_sub(1);
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
