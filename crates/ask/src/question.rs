//! A question as users see it: what is requested, by which process, and why it must be asked.
//!
//! Every text in it may come from a sandbox. It is stored unchanged apart from a length limit, and escaped when
//! it is displayed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// All arguments of one process together, in bytes.
const MAX_ARGUMENTS_BYTES: usize = 4096;
const MAX_TEXT_BYTES: usize = 4096;
/// The maximum length of a name (RFC 1035).
const MAX_HOST_BYTES: usize = 255;
const MAX_ANCESTORS: usize = 32;
/// The number of processes that are described; the others are only counted.
pub(crate) const MAX_DESCRIBED: usize = 8;

/// Starts at 1 in each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time by two clocks: deadlines must not move when the clock is set, and users read wall time.
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
    /// Includes reading, which executing requires.
    Execute,
    /// Includes reading. For a directory: to create, change and rename files in it.
    Write,
}

impl Access {
    /// As in the messages of the approval socket.
    const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Execute => "execute",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What the waiting call would do, in a word for users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// To see that it exists, and its size and mode.
    See,
    #[default]
    Read,
    /// To make it the working directory.
    Enter,
    Execute,
    Write,
    /// To create it in the directory that the question is about.
    Create,
    /// To replace it by another file.
    Replace,
    /// To rename it in the directory that the question is about.
    Rename,
    Remove,
    /// To change its mode, owner, times or extended attributes.
    Change,
}

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
    /// The real path on the host of the file that would be granted.
    pub path: PathBuf,
    pub access: Access,
    /// The system call.
    pub operation: String,
    /// What it would do. Calls that only read can share a question; then what the first of them would do.
    pub act: Act,
    pub is_directory: bool,
    /// The entry to be created or renamed in the directory `path`. Permission for longer than once makes that
    /// directory writable.
    pub entry: Option<PathBuf>,
    /// The new name in a rename, as the caller wrote it at that time. For display only; decisions must not
    /// depend on it.
    pub new_path: Option<PathBuf>,
    /// Whether the run can get a private copy of what would be changed.
    pub may_be_copied: bool,
    /// Whether a yes shows only that a directory exists, because something in it is hidden.
    pub is_name_only: bool,
    /// Files that are granted with it because it cannot run without them: interpreter, loader.
    pub also: Vec<PathBuf>,
    /// The directory that may be allowed instead. Never one that contains a secret.
    pub directory: Option<PathBuf>,
}

impl FileSubject {
    /// As in "wants to …".
    pub fn verb(&self) -> &'static str {
        match self.act {
            Act::See => "look at",
            Act::Read if self.is_directory => "look into",
            Act::Read => "read",
            Act::Enter => "enter",
            Act::Execute => "run",
            Act::Write => "write",
            Act::Create => "create",
            Act::Replace => "replace",
            Act::Rename => "rename",
            Act::Remove => "remove",
            Act::Change => self.changed_attribute(),
        }
    }

    /// By the system call.
    fn changed_attribute(&self) -> &'static str {
        match self.operation.as_str() {
            call if call.contains("chmod") => "change the mode of",
            call if call.contains("chown") => "change the owner of",
            call if call.contains("xattr") => "change an extended attribute of",
            call if call.contains("utime") => "change the times of",
            _ => "change",
        }
    }

    /// Whether it may be allowed for one call. A rename cannot: it changes the directory permanently.
    pub fn may_be_once(&self) -> bool {
        self.act != Act::Rename
    }

    /// Whether it may be allowed for longer. A file is removed only once. Changing a directory's mode must not
    /// include the contents of the directory.
    pub fn may_last(&self) -> bool {
        match self.act {
            Act::Remove => false,
            Act::Change => !self.is_directory,
            Act::Create | Act::Rename => !self.is_name_only,
            _ => true,
        }
    }

    /// Whether permission for longer than once includes everything below the path.
    pub fn is_tree(&self) -> bool {
        self.is_directory && self.may_last() && !self.is_name_only
    }

    /// The path to display.
    pub fn named(&self) -> &Path {
        self.entry.as_deref().unwrap_or(&self.path)
    }

    /// Whether a permission for `access` to the tree `directory` includes this one.
    pub(crate) fn is_covered_by(&self, directory: &Path, access: Access) -> bool {
        let has_access = self.access == Access::Read || self.access == access;
        has_access
            && self.path.starts_with(directory)
            && self.also.iter().all(|needed| needed.starts_with(directory))
    }
}

/// A destination on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSubject {
    /// A normalized name, or an address as text.
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

/// A process that waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// As the host sees it.
    pub pid: u32,
    #[serde(rename = "exe")]
    pub executable: String,
    #[serde(rename = "args")]
    pub arguments: Vec<String>,
    pub cwd: String,
    /// Starts with its parent.
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
            // An empty argument takes room as well, otherwise their number would be unlimited.
            room = room.saturating_sub(argument.len() + 1);
            kept.push(argument);
        }
        self.arguments = kept;
        self
    }
}

/// Truncates at a character boundary and marks the cut.
fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push('…');
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: QuestionId,
    pub session: String,
    pub subject: Subject,
    /// Why the user must be asked.
    pub reason: String,
    /// The processes that wait, in order of arrival. Only the first few are described; `requests` counts all of
    /// them.
    pub processes: Vec<Process>,
    /// The ids of all calls that wait for this answer.
    pub requests: Vec<u64>,
    pub is_secret: bool,
    pub asked_at: Timestamp,
    /// When the question is denied automatically; `None` if it may wait forever.
    pub expires_at: Option<Timestamp>,
}

/// One call that must wait for an answer.
#[derive(Clone, Debug)]
pub struct NewQuestion {
    pub request: u64,
    pub subject: Subject,
    pub reason: String,
    /// `None` if unknown: the process that opened a connection cannot be determined from outside.
    pub process: Option<Process>,
    pub is_secret: bool,
    /// How long to wait for an answer; `None` means forever.
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
    /// How long an answer is waited for; none without a limit.
    pub fn patience(&self) -> Option<Duration> {
        let until = self.expires_at?;
        Duration::try_from(until.duration_since(self.asked_at)).ok()
    }

    /// The directory that may be allowed instead; none for a secret.
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
