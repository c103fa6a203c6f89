//! What was done about an attempt to break out, in the audit log and in the report (ESC-1).

use crate::digest::Digest;
use crate::severity::{Indicator, Severity};
use serde::{Deserialize, Serialize};

/// From the mildest to the hardest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscapeAction {
    #[default]
    Ignore,
    Warn,
    Kill,
    /// Ends the run, discards its transaction, and keeps the tool from running again.
    Quarantine,
}

impl EscapeAction {
    /// Whether the run ends by it.
    pub fn ends(self) -> bool {
        self >= Self::Kill
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Warn => "warn",
            Self::Kill => "kill",
            Self::Quarantine => "quarantine",
        }
    }
}

/// What became of the writes to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollBack {
    /// The transaction was discarded: the project is as it was.
    Discarded,
    /// Changes of the transaction are there still: they could not be discarded.
    Failed,
    /// There was no transaction. What the run wrote is on the host.
    NotRolledBack,
    /// The response does not include it; changes of a transaction wait as usual.
    NotAsked,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscapeResponded {
    pub action: EscapeAction,
    /// The indicator that decided.
    pub indicator: String,
    pub severity: Severity,
    pub roll_back: RollBack,
    /// The name of the kept bundle, if it could be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// Who was alerted, and whether that worked.
    pub alerts: Vec<AlertResult>,
}

/// One way by which somebody was alerted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertResult {
    /// `desktop` or `webhook`.
    pub by: String,
    /// None if it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A tool does not run until somebody releases it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quarantined {
    pub quarantine: String,
    pub tool: String,
    pub command_hash: Digest,
}

/// A person let it run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Released {
    pub quarantine: String,
    pub tool: String,
    pub command_hash: Digest,
    /// The user id of who did it.
    pub uid: u32,
}

/// The part of a report about attempts to break out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscapeReport {
    /// The hardest action that an indicator led to.
    pub action: EscapeAction,
    pub indicators: Vec<SeenIndicator>,
    /// Indicators beyond those in the list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Only if the run was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<EscapeResponded>,
    /// The numbers under which tools were quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One attempt that was noticed, and what it led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenIndicator {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: Indicator,
    pub severity: Severity,
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub action: EscapeAction,
}

/// A process of the sandbox at the moment of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenProcess {
    /// On the host.
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    /// `R`, `S`, `Z` …
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    /// The system call that it was in, with its arguments, if the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}
