//! Events of sessions: their commands, their time, what became of a transaction; and operations on files, which are recorded
//! on request (AUD-2).

use crate::command_digest::CommandDigest;
use crate::span_context::SpanContext;
use serde::{Deserialize, Serialize};

/// A command was started in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionExec {
    /// Its number in the session.
    pub command: u64,
    #[serde(flatten)]
    pub digest: CommandDigest,
    /// On the host.
    pub pid: u32,
    /// The span that it was asked for in, if its client named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<SpanContext>,
}

/// A command of a session has ended, or could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionExecEnded {
    pub command: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub duration_ms: u64,
}

/// A sandbox that was prepared became a session: somebody asked for one like it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionClaimed {
    /// Of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it had waited.
    pub waited_ms: u64,
    /// The span of who asked, if one was named, and what vendors added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<SpanContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// Somebody gave a session more time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionExtended {
    /// From then on.
    pub time_ms: u64,
}

/// A session is about to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnding {
    pub cause: EndingCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndingCause {
    /// Somebody, or the end of the command that it is for.
    Requested,
    TimeToLive,
    Idle,
}

/// Changes of a transaction came to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesApplied {
    pub paths: u64,
    /// Left out, because the host would run them later.
    pub refused: u64,
    /// Left out, because they had changed on the host, too.
    pub kept: u64,
}

/// An apply changed nothing, because of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesHeld {
    pub refused: u64,
    pub conflicts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesDiscarded {
    /// None if they could not be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<u64>,
}

/// One operation on a file, as far as it goes through us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileOperation {
    /// The system call; for a transaction, what became of the path: `added`, `modified`, `deleted` …
    pub op: String,
    pub path: String,
    /// On the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
}
