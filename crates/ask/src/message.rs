//! The protocol's messages, one JSON object a line; `docs/protocol.md` describes them.
//!
//! A message is parsed into an [`Answer`] or rejected here; nothing partly understood is passed on.

mod request;
mod revoke;

pub use request::{FsRequest, HostRequest, Request};
pub use revoke::{Revoke, Revoked, StillOpen};

use crate::answer::{Answer, Lifetime, Scope, Source, Store};
use crate::question::{QuestionId, Subject};
use crate::queue::Decided;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Incremented when clients of the previous version would misunderstand a message. New fields and new events do
/// not count: clients ignore what they do not know.
pub const PROTOCOL: u32 = 1;

/// The longest line that a server accepts. Commands are short.
pub const MAX_COMMAND_BYTES: usize = 16 * 1024;

/// The longest line that a client accepts: a question with thousands of waiting calls, and paths in which every
/// byte is escaped.
pub const MAX_EVENT_BYTES: usize = 2 * 1024 * 1024;

/// From a server to its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ServerEvent {
    #[serde(rename = "event.hello")]
    Hello(Hello),
    #[serde(rename = "event.fs_request")]
    FsRequest(Box<FsRequest>),
    #[serde(rename = "event.host_request")]
    HostRequest(Box<HostRequest>),
    #[serde(rename = "event.audit")]
    Audit(Audit),
    /// No call waits for the answer any more.
    #[serde(rename = "event.withdrawn")]
    Withdrawn { id: QuestionId },
    /// A command was carried out.
    #[serde(rename = "event.reply")]
    Reply(Reply),
    /// A grant was taken back.
    #[serde(rename = "event.revoked")]
    Revoked(Box<Revoked>),
    /// A command was rejected or failed.
    #[serde(rename = "event.error")]
    Error(Refused),
    /// From a later version.
    #[serde(other)]
    Unknown,
}

/// The first line of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub session: String,
    /// The run's command line, shortened as in a log.
    pub command: String,
    /// The project of the run.
    pub project: String,
    /// The number of open questions. They follow immediately.
    pub open: usize,
}

/// An accepted answer, from any source.
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
    pub by: Option<AnsweredBy>,
    /// What the question was about: a path, or a host and its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
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
pub struct AnsweredBy {
    pub uid: u32,
    pub pid: u32,
    pub name: String,
}

/// The command that this replies to: its type, and the number that its sender gave it.
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

/// From a client to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ClientCommand {
    /// Optional. The name is recorded with the answers that follow.
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
    /// Save the answers given for the session.
    #[serde(rename = "cmd.policy.save")]
    PolicySave { scope: Store },
    #[serde(rename = "cmd.revoke")]
    Revoke(Revoke),
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

/// How long an answer is valid, as a short form (`persist`) or in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<LifetimeWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

/// `persist`, `lifetime` and `store` contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    #[error("`persist` says one thing and `lifetime` another; leave one out")]
    Contradiction,
    #[error("`store` is for permanent answers; add \"persist\": true")]
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
            Scope::Directory | Scope::DirectoryToRun | Scope::PrivateCopy => LifetimeWord::Session,
        };
        Ok(Answer::Allow { scope, lifetime: self.term.lifetime(default)? })
    }
}

impl Deny {
    /// For the session unless specified: a program that is denied tends to try again.
    pub fn answer(self) -> Result<Answer, TermError> {
        Ok(Answer::Deny { lifetime: self.term.lifetime(LifetimeWord::Session)? })
    }
}

impl ClientCommand {
    pub fn answering(id: QuestionId, answer: Answer) -> Self {
        match answer {
            Answer::Allow { scope, lifetime } => {
                Self::Approve(Approve { id, scope: Some(scope), term: lifetime.into() })
            }
            Answer::Deny { lifetime } => Self::Deny(Deny { id, term: lifetime.into() }),
        }
    }
}

impl From<&Decided> for Audit {
    fn from(decided: &Decided) -> Self {
        let (path, host, port) = match &decided.question.subject {
            Subject::File(file) => (Some(request::text(&file.path)), None, None),
            Subject::Host(host) => (None, Some(host.host.clone()), Some(host.port)),
        };
        let (lifetime, store) = words(decided.answer.lifetime());
        let by = match &decided.source {
            Source::Socket { uid, pid, name } => {
                Some(AnsweredBy { uid: *uid, pid: *pid, name: name.clone() })
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
            path,
            host,
            port,
            ts: decided.at,
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
