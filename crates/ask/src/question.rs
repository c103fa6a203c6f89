//! A question as people see it: what is wanted, by whom, and why it has to be asked.
//!
//! Every text in it may come from inside a sandbox. It is kept as it was, cut to a length that can
//! do no harm; it is escaped when displayed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments of one process, together, in bytes.
const MAX_ARGUMENTS_BYTES: usize = 4096;
const MAX_TEXT_BYTES: usize = 4096;
/// No name is longer (RFC 1035).
const MAX_HOST_BYTES: usize = 255;
const MAX_ANCESTORS: usize = 32;
/// Processes that are described; all others are counted.
pub(crate) const MAX_DESCRIBED: usize = 8;

/// Counts up from 1 within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time, twice: deadlines must not move when somebody sets the clock, and people read clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub monotonic: Instant,
    pub wall: Timestamp,
}

impl Now {
    pub fn read() -> Self {
        Self { monotonic: Instant::now(), wall: Timestamp::now() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    /// And reading, without which nothing is executed.
    Execute,
    /// And reading. Of a directory: to make, change and rename files in it.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Execute => "execute",
            Self::Write => "write",
        })
    }
}

/// What the call that waits would do, in a word that people read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// To learn that it is there, its size, its modes.
    See,
    #[default]
    Read,
    /// To make it the working directory.
    Enter,
    Execute,
    Write,
    /// To make it in the directory that the question is about.
    Create,
    /// To put another file in its place.
    Replace,
    /// To give it another name in the directory that the question is about.
    Rename,
    Remove,
    /// Its mode, owner, times or extended attributes.
    Change,
}

impl Act {
    /// As in "wants to …".
    pub fn verb(self, is_directory: bool) -> &'static str {
        match self {
            Self::See => "look at",
            Self::Read if is_directory => "look into",
            Self::Read => "read",
            Self::Enter => "enter",
            Self::Execute => "run",
            Self::Write => "write",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::Change => "change",
        }
    }
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    File(FileSubject),
    Host(HostSubject),
}

impl Subject {
    pub fn file(&self) -> Option<&FileSubject> {
        match self {
            Self::File(file) => Some(file),
            Self::Host(_) => None,
        }
    }

    pub fn file_mut(&mut self) -> Option<&mut FileSubject> {
        match self {
            Self::File(file) => Some(file),
            Self::Host(_) => None,
        }
    }

    fn cut(mut self) -> Self {
        match &mut self {
            Self::File(file) => cut(&mut file.operation, 64),
            Self::Host(host) => cut(&mut host.host, MAX_HOST_BYTES),
        }
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSubject {
    /// Of the very file that would be granted, on the host.
    pub path: PathBuf,
    pub access: Access,
    /// The system call.
    pub operation: String,
    /// What it would do; of calls that only look, what the first one would.
    pub act: Act,
    pub is_directory: bool,
    /// What is to be made or renamed in the directory that `path` is; a yes for longer than once makes that directory
    /// writable.
    pub entry: Option<PathBuf>,
    /// What a rename would call it, as the caller wrote it by then: to show, never to decide by.
    pub new_path: Option<PathBuf>,
    /// Whether a copy of the run's own can stand for what would be changed.
    pub may_be_copied: bool,
    /// What is granted with it because it could not run without: interpreter, loader.
    pub also: Vec<PathBuf>,
    /// The directory that may be allowed instead. Never one that holds a secret.
    pub directory: Option<PathBuf>,
}

impl FileSubject {
    /// Whether it may be allowed for one call. What a rename leaves behind is a change of the directory.
    pub fn may_be_once(&self) -> bool {
        self.act != Act::Rename
    }

    /// Whether it may be allowed for longer. What is removed is removed once; to change a directory's mode takes nothing of
    /// what is in it.
    pub fn may_last(&self) -> bool {
        match self.act {
            Act::Remove => false,
            Act::Change => !self.is_directory,
            _ => true,
        }
    }

    /// Whether a yes for longer than once is for everything below it, too.
    pub fn is_tree(&self) -> bool {
        self.is_directory && self.may_last()
    }

    /// What a person reads that the call is about.
    pub fn named(&self) -> &Path {
        self.entry.as_deref().unwrap_or(&self.path)
    }

    /// Whether this may be had once `directory` is allowed, as a tree, for `access`.
    pub(crate) fn is_covered_by(&self, directory: &Path, access: Access) -> bool {
        let has_access = self.access == Access::Read || self.access == access;
        has_access
            && self.path.starts_with(directory)
            && self.also.iter().all(|needed| needed.starts_with(directory))
    }
}

/// A place on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSubject {
    /// A name in its normal form, or an address as text.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for HostSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    pub pid: u32,
    pub name: String,
}

/// Somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// On the host.
    pub pid: u32,
    pub executable: String,
    pub arguments: Vec<String>,
    pub cwd: String,
    /// Its parent first.
    pub ancestors: Vec<Ancestor>,
}

impl Process {
    fn cut(mut self) -> Self {
        cut(&mut self.executable, MAX_TEXT_BYTES);
        cut(&mut self.cwd, MAX_TEXT_BYTES);
        self.ancestors.truncate(MAX_ANCESTORS);
        for ancestor in &mut self.ancestors {
            cut(&mut ancestor.name, 256);
        }
        let mut room = MAX_ARGUMENTS_BYTES;
        let mut kept = Vec::new();
        for mut argument in self.arguments {
            if room == 0 {
                kept.push("…".to_owned());
                break;
            }
            cut(&mut argument, room);
            // An empty argument takes room too, or there could be any number of them.
            room = room.saturating_sub(argument.len() + 1);
            kept.push(argument);
        }
        self.arguments = kept;
        self
    }
}

/// Cuts between characters and leaves a mark.
fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push('…');
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: QuestionId,
    /// The run it comes from.
    pub session: String,
    pub subject: Subject,
    /// Why it has to be asked.
    pub reason: String,
    /// Those who wait, the first first; the rest are only counted, in `requests`.
    pub processes: Vec<Process>,
    /// The ids of all calls that wait for this answer.
    pub requests: Vec<u64>,
    pub is_secret: bool,
    pub asked_at: Timestamp,
    /// When silence becomes a no; `None` if it may wait for ever.
    pub expires_at: Option<Timestamp>,
}

/// One call that has to wait for an answer.
#[derive(Clone, Debug)]
pub struct NewQuestion {
    pub request: u64,
    pub subject: Subject,
    pub reason: String,
    /// None where it is not known: who opened a connection cannot be told from outside.
    pub process: Option<Process>,
    pub is_secret: bool,
    /// How long to wait for an answer; `None` is for ever.
    pub patience: Option<Duration>,
}

impl NewQuestion {
    pub(crate) fn into_question(self, id: QuestionId, session: &str, now: Now) -> Question {
        let mut reason = self.reason;
        cut(&mut reason, MAX_TEXT_BYTES);
        let expires_at = self.patience.and_then(|patience| {
            let patience = jiff::SignedDuration::try_from(patience).ok()?;
            now.wall.checked_add(patience).ok()
        });
        Question {
            id,
            session: session.to_owned(),
            subject: self.subject.cut(),
            reason,
            processes: self.process.map(Process::cut).into_iter().collect(),
            requests: vec![self.request],
            is_secret: self.is_secret,
            asked_at: now.wall,
            expires_at,
        }
    }
}

impl Question {
    /// The directory that may be allowed instead; for a secret there is none.
    pub fn offered(&self) -> Option<&PathBuf> {
        let file = self.subject.file()?;
        file.directory.as_ref().filter(|_| !self.is_secret)
    }

    pub(crate) fn join(&mut self, request: u64, process: Option<Process>) {
        if self.requests.contains(&request) {
            return;
        }
        self.requests.push(request);
        let Some(process) = process else { return };
        let is_described = self.processes.iter().any(|known| known.pid == process.pid);
        if !is_described && self.processes.len() < MAX_DESCRIBED {
            self.processes.push(process.cut());
        }
    }
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
