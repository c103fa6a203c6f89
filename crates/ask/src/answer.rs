//! The possible answers, their sources, and the reasons to reject an answer.

use crate::question::QuestionId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much an answer applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// What the question is about: a file, or a host and its port. A directory includes everything below it.
    #[serde(rename = "file")]
    File,
    /// The directory that the question offers, with everything below it, for the requested access only.
    /// Permission to read does not include running what is there.
    #[serde(rename = "dir")]
    Directory,
    /// The same, and also to run programs and load libraries from it.
    #[serde(rename = "dir-exec")]
    DirectoryToRun,
    /// The original stays unchanged: the run gets a private copy, which is deleted when the run ends.
    #[serde(rename = "copy")]
    PrivateCopy,
}

impl Scope {
    /// Whether it is the directory that the question offers.
    pub fn is_directory(self) -> bool {
        matches!(self, Self::Directory | Self::DirectoryToRun)
    }
}

/// Where a permanent answer is stored.
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

/// How long an answer is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// For the calls that are waiting now.
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

    /// `None` for a denial.
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

/// Where an answer came from. It is recorded with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The terminal that started the run.
    Terminal,
    /// A client of the protocol. The ids come from the kernel; the name is what the client claims.
    Socket { uid: u32, pid: u32, name: String },
    /// Nobody answered in time.
    Timeout,
    /// There was nobody to ask.
    NobodyToAsk,
    /// The policy's `onAsk` answers without a question.
    OnAsk,
    /// The process that asked has ended.
    Withdrawn,
}

impl Source {
    /// The name used in the protocol and in records.
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

/// Why an answer was rejected. A rejected answer has no effect.
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
    /// The name used in the protocol.
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
