//! What can be answered, by whom, and why an answer may not be taken.

use crate::question::QuestionId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of what was asked about is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// What the question is about: a file, or a host and its port. If it is a directory: with everything below it.
    #[serde(rename = "file")]
    File,
    /// The directory that the question offers, with everything below it, for what was asked: who may read it may not run
    /// what lies there.
    #[serde(rename = "dir")]
    Directory,
    /// The same, to run programs and load libraries from as well.
    #[serde(rename = "dir-exec")]
    DirectoryToRun,
    /// What is to be changed stays as it is: the run gets a copy of its own, which is gone when it ends.
    #[serde(rename = "copy")]
    PrivateCopy,
}

impl Scope {
    /// Whether it is about the directory that the question offers.
    pub fn is_directory(self) -> bool {
        matches!(self, Self::Directory | Self::DirectoryToRun)
    }
}

/// Where an answer for good is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    #[default]
    User,
    Project,
    #[serde(rename = "org", alias = "organisation")]
    Organisation,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Organisation => "organisation",
        })
    }
}

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// For the calls that wait now.
    Once,
    /// Until the run ends.
    Session,
    Always(Store),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Allow { scope: Scope, lifetime: Lifetime },
    Deny { lifetime: Lifetime },
}

impl Answer {
    pub fn lifetime(self) -> Lifetime {
        match self {
            Self::Allow { lifetime, .. } | Self::Deny { lifetime } => lifetime,
        }
    }

    /// Of a yes.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Allow { scope, .. } => Some(scope),
            Self::Deny { .. } => None,
        }
    }

    pub fn is_allowed(self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// Where an answer came from; each is recorded with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The terminal that the run was started in.
    Terminal,
    /// A client of the protocol. The kernel vouches for the ids; the name is the client's own word.
    Socket { uid: u32, pid: u32, name: String },
    /// Nobody answered in time.
    Timeout,
    /// Nobody is there to answer.
    NobodyToAsk,
    /// The policy's `onAsk` answers for everybody.
    OnAsk,
    /// The process that asked is gone.
    Withdrawn,
}

impl Source {
    /// Its name on the wire and in records.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Socket { .. } => "socket",
            Self::Timeout => "timeout",
            Self::NobodyToAsk => "nobody",
            Self::OnAsk => "on_ask",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Why an answer was not taken. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("there is no question {0}; `sandbox approve --json` lists those that are open")]
    Unknown(QuestionId),
    #[error("question {0} is no longer open: it was answered, timed out or withdrawn")]
    NotOpen(QuestionId),
    #[error("question {0} offers no directory; answer for what it is about")]
    NoDirectoryOffered(QuestionId),
    #[error("a directory is allowed for the session or always, not once (question {0})")]
    DirectoryOnce(QuestionId),
    #[error("question {0} changes nothing that a private copy could be kept of")]
    NothingToCopy(QuestionId),
    #[error("a private copy lasts for the session (question {0})")]
    CopyLasts(QuestionId),
    #[error("a rename is allowed for the session or always, with the directory (question {0})")]
    NotOnce(QuestionId),
    #[error("a removal is allowed once, or kept private (question {0})")]
    OnlyOnce(QuestionId),
}

impl AnswerError {
    /// Its name on the wire.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::NotOpen(_) => "not_open",
            Self::NoDirectoryOffered(_)
            | Self::DirectoryOnce(_)
            | Self::NothingToCopy(_)
            | Self::CopyLasts(_)
            | Self::NotOnce(_)
            | Self::OnlyOnce(_) => "not_offered",
        }
    }
}
