//! What is written down about one session.

use jiff::Timestamp;
use palisade_plan::model::TransactionMethod;
use palisade_record::State;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The content of `session.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// A UUIDv7, so ids sort by time.
    pub id: String,
    /// Another word for it, chosen by its creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: Timestamp,
    /// The root of the project that the sandbox works on.
    #[serde(serialize_with = "path_to_text", deserialize_with = "path_from_text")]
    pub project: PathBuf,
    /// The command that the session is for, with secrets masked. None: commands are started later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    /// The isolation level, in the word of a policy. None before the policy was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Whether it has a network namespace of its own. No, if a record does not say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_network: bool,
    #[serde(default)]
    pub time_to_live: TimeToLive,
    /// Whether the state of the project is kept before each command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint_each_command: bool,
    /// How the project's changes are kept apart, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<TransactionMethod>,
    /// If the terminals of its commands are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recorded>,
    pub state: State,
    /// Whether it waits for who it was prepared for: it is no session yet, and nobody finds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_prepared: bool,
    /// The pid of the supervisor while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it ended, where its state does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
}

/// What who starts a command in a session has to know of it. To read all of the record takes several times as long, and counts
/// in every command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub recording: Option<Recorded>,
    #[serde(default)]
    pub(super) is_prepared: bool,
}

impl SessionSummary {
    /// Its name, or the part of its id that tells it from others.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| super::short_id(&self.id))
    }
}

impl From<SessionRecord> for SessionSummary {
    fn from(record: SessionRecord) -> Self {
        let SessionRecord { id, name, recording, is_prepared, .. } = record;
        Self { id, name, recording, is_prepared }
    }
}

/// How the terminals of a session are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Whether what is typed is recorded, while it is echoed.
    pub input: bool,
    /// Of one file.
    pub max_bytes: u64,
}

/// How long a session may stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeToLive {
    /// From its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Since its last command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
}

impl SessionRecord {
    /// Whether nothing more will happen in it.
    pub fn is_over(&self) -> bool {
        match self.state {
            State::Completed | State::Timeout | State::Error | State::Cleanup => true,
            State::Created | State::Initialized | State::Running | State::Monitoring => false,
        }
    }

    /// Nothing more happens in it.
    pub(crate) fn end(&mut self, state: State, exit_code: Option<i32>) {
        self.state = state;
        self.supervisor = None;
        self.exit_code = exit_code;
        self.ended_at = Some(Timestamp::now());
    }

    /// Its name, or the part of its id that tells it from others.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| super::short_id(&self.id))
    }
}

/// JSON has no strings that are not UTF-8, and a path may be any bytes: such a path becomes a list of them.
fn path_to_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => path.as_os_str().as_bytes().serialize(to),
    }
}

fn path_from_text<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }
    Ok(match Written::deserialize(from)? {
        Written::Text(path) => path,
        Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}
