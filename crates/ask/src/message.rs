//! The protocol's messages, one JSON object a line; `docs/protocol.md` describes them.
//!
//! What a message says is parsed here into an [`Answer`] or refused; nothing half-understood goes on.

use crate::answer::{Answer, Lifetime, Scope, Source, Store};
use crate::question::{Access, Ancestor, FileSubject, Process, Question, QuestionId, Subject};
use crate::queue::Decided;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Raised when a client of the version before would misunderstand. New fields and new events do not
/// raise it: a client leaves out what it does not know.
pub const PROTOCOL: u32 = 1;

/// The longest line a server accepts. Commands are short.
pub const LONGEST_COMMAND: usize = 16 * 1024;

/// The longest line a client accepts: a question on which thousands of calls wait, with paths of
/// which every byte had to be escaped.
pub const LONGEST_EVENT: usize = 2 * 1024 * 1024;

/// What a server tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    #[serde(rename = "event.hello")]
    Hello(Hello),
    #[serde(rename = "event.fs_request")]
    FsRequest(Box<FsRequest>),
    #[serde(rename = "event.audit")]
    Audit(Audit),
    /// Nobody waits for the answer any more.
    #[serde(rename = "event.withdrawn")]
    Withdrawn { id: QuestionId },
    /// A command was carried out.
    #[serde(rename = "event.reply")]
    Reply(Reply),
    /// A command was not carried out.
    #[serde(rename = "event.error")]
    Error(Refused),
    /// Of a later version.
    #[serde(other)]
    Unknown,
}

/// The first line of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub session: String,
    /// The run's command line, as far as a log would show it.
    pub command: String,
    /// The project it runs in.
    pub project: String,
    /// How many questions are open; they follow at once.
    pub open: usize,
}

/// A question about a file. One that comes again with the same id replaces the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsRequest {
    pub id: QuestionId,
    pub session: String,
    /// Bytes that are not UTF-8 are replaced; `path_bytes` has them.
    pub path: String,
    /// In hexadecimal digits, if the path is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    pub op: String,
    pub access: Access,
    pub is_directory: bool,
    pub is_secret: bool,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_bytes: Option<String>,
    /// Of the first process that waits, as are the two below.
    pub pid: u32,
    pub exe: String,
    pub cwd: String,
    pub processes: Vec<WaitingProcess>,
    pub requests: Vec<u64>,
    pub asked_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingProcess {
    pub pid: u32,
    pub exe: String,
    pub args: Vec<String>,
    pub cwd: String,
    pub ancestors: Vec<Ancestor>,
}

/// An answer that was taken, whoever gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    pub id: QuestionId,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    pub lifetime: LifetimeWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// One of the words of [`Source::word`].
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    pub path: String,
    pub ts: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allow,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LifetimeWord {
    Once,
    Session,
    Always,
}

/// Who answered over the socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    pub uid: u32,
    pub pid: u32,
    pub name: String,
}

/// Which command is answered: its type, and the number its sender gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<QuestionId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    #[serde(flatten)]
    pub to: Reply,
    pub code: String,
    pub message: String,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Command {
    /// Optional; the name is recorded with the answers that follow.
    #[serde(rename = "cmd.hello")]
    Hello {
        protocol: u32,
        #[serde(default)]
        name: String,
    },
    #[serde(rename = "cmd.approve")]
    Approve(Approve),
    #[serde(rename = "cmd.deny")]
    Deny(Deny),
    /// Keep what was answered for the session.
    #[serde(rename = "cmd.policy.save")]
    PolicySave { scope: Store },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approve {
    pub id: QuestionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    #[serde(flatten)]
    pub term: Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    pub id: QuestionId,
    #[serde(flatten)]
    pub term: Term,
}

/// How long an answer is meant to hold, said in short (`persist`) or in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<LifetimeWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

/// `persist`, `lifetime` and `store` do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    #[error("`persist` says one thing and `lifetime` another; leave one out")]
    Contradiction,
    #[error("`store` is for answers that hold always; add \"persist\": true")]
    StoreForNothing,
}

impl Term {
    fn lifetime(self, default: LifetimeWord) -> Result<Lifetime, TermError> {
        let word = match (self.lifetime, self.persist) {
            (Some(word), Some(persist)) if persist != (word == LifetimeWord::Always) => {
                return Err(TermError::Contradiction);
            }
            (Some(word), _) => word,
            (None, Some(true)) => LifetimeWord::Always,
            (None, _) => default,
        };
        match (word, self.store) {
            (LifetimeWord::Always, store) => Ok(Lifetime::Always(store.unwrap_or_default())),
            (_, Some(_)) => Err(TermError::StoreForNothing),
            (LifetimeWord::Once, None) => Ok(Lifetime::Once),
            (LifetimeWord::Session, None) => Ok(Lifetime::Session),
        }
    }
}

impl From<Lifetime> for Term {
    fn from(lifetime: Lifetime) -> Self {
        let (word, store) = words(lifetime);
        Self { persist: None, lifetime: Some(word), store }
    }
}

fn words(lifetime: Lifetime) -> (LifetimeWord, Option<Store>) {
    match lifetime {
        Lifetime::Once => (LifetimeWord::Once, None),
        Lifetime::Session => (LifetimeWord::Session, None),
        Lifetime::Always(store) => (LifetimeWord::Always, Some(store)),
    }
}

impl Approve {
    pub fn answer(self) -> Result<Answer, TermError> {
        let scope = self.scope.unwrap_or(Scope::File);
        let default = match scope {
            Scope::File => LifetimeWord::Once,
            Scope::Directory => LifetimeWord::Session,
        };
        Ok(Answer::Allow { scope, lifetime: self.term.lifetime(default)? })
    }
}

impl Deny {
    /// For the session unless said otherwise: a program that hears no tends to try again.
    pub fn answer(self) -> Result<Answer, TermError> {
        Ok(Answer::Deny { lifetime: self.term.lifetime(LifetimeWord::Session)? })
    }
}

impl Command {
    pub fn answering(id: QuestionId, answer: Answer) -> Self {
        match answer {
            Answer::Allow { scope, lifetime } => {
                Self::Approve(Approve { id, scope: Some(scope), term: lifetime.into() })
            }
            Answer::Deny { lifetime } => Self::Deny(Deny { id, term: lifetime.into() }),
        }
    }
}

impl From<&Question> for FsRequest {
    fn from(question: &Question) -> Self {
        let Subject::File(file) = &question.subject;
        let first = question.processes.first();
        Self {
            id: question.id,
            session: question.session.clone(),
            path: text(&file.path),
            path_bytes: bytes(&file.path),
            op: file.operation.clone(),
            access: file.access,
            is_directory: file.is_directory,
            is_secret: question.is_secret,
            reason: question.reason.clone(),
            also: file.also.iter().map(|path| text(path)).collect(),
            directory: question.offered().map(|path| text(path)),
            directory_bytes: question.offered().and_then(|path| bytes(path)),
            pid: first.map_or(0, |process| process.pid),
            exe: first.map(|process| process.executable.clone()).unwrap_or_default(),
            cwd: first.map(|process| process.cwd.clone()).unwrap_or_default(),
            processes: question.processes.iter().map(WaitingProcess::from).collect(),
            requests: question.requests.clone(),
            asked_at: question.asked_at,
            expires_at: question.expires_at,
        }
    }
}

impl From<FsRequest> for Question {
    fn from(wire: FsRequest) -> Self {
        let file = FileSubject {
            path: path(wire.path, wire.path_bytes),
            access: wire.access,
            operation: wire.op,
            is_directory: wire.is_directory,
            also: wire.also.into_iter().map(PathBuf::from).collect(),
            directory: wire.directory.map(|text| path(text, wire.directory_bytes)),
        };
        Self {
            id: wire.id,
            session: wire.session,
            subject: Subject::File(file),
            reason: wire.reason,
            processes: wire.processes.into_iter().map(Process::from).collect(),
            requests: wire.requests,
            is_secret: wire.is_secret,
            asked_at: wire.asked_at,
            expires_at: wire.expires_at,
        }
    }
}

impl From<&Process> for WaitingProcess {
    fn from(process: &Process) -> Self {
        Self {
            pid: process.pid,
            exe: process.executable.clone(),
            args: process.arguments.clone(),
            cwd: process.cwd.clone(),
            ancestors: process.ancestors.clone(),
        }
    }
}

impl From<WaitingProcess> for Process {
    fn from(wire: WaitingProcess) -> Self {
        Self {
            pid: wire.pid,
            executable: wire.exe,
            arguments: wire.args,
            cwd: wire.cwd,
            ancestors: wire.ancestors,
        }
    }
}

impl From<&Decided> for Audit {
    fn from(decided: &Decided) -> Self {
        let Subject::File(file) = &decided.question.subject;
        let (lifetime, store) = words(decided.answer.lifetime());
        let by = match &decided.source {
            Source::Socket { uid, pid, name } => {
                Some(By { uid: *uid, pid: *pid, name: name.clone() })
            }
            _ => None,
        };
        Self {
            id: decided.question.id,
            decision: if decided.answer.is_allowed() { Decision::Allow } else { Decision::Deny },
            scope: decided.answer.scope(),
            lifetime,
            store,
            source: decided.source.word().to_owned(),
            by,
            path: text(&file.path),
            ts: decided.at,
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn bytes(path: &Path) -> Option<String> {
    let is_text = path.to_str().is_some();
    let bytes = path.as_os_str().as_bytes();
    (!is_text).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Digits that are none leave the text, which is what a client without them would have shown.
fn path(text: String, hexadecimal: Option<String>) -> PathBuf {
    match hexadecimal.and_then(|digits| from_hexadecimal(&digits)) {
        Some(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        None => PathBuf::from(text),
    }
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let values: Vec<u8> = digits
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = values.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
