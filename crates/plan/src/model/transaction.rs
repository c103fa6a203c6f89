//! A transaction of the project: changes that wait (LIFE-2).

use palisade_policy::model::OnExpiry;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Changes that are kept apart from the host's files until they are applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    /// The project's directory on the host.
    #[serde(serialize_with = "crate::text::path")]
    pub project: PathBuf,
    /// The directory of ours that keeps the changes.
    #[serde(serialize_with = "crate::text::path")]
    pub layer: PathBuf,
    pub method: TransactionMethod,
    pub at_end: AtEnd,
    /// Whether its state is kept before each command of a session (LIFE-5).
    pub checkpoint_each_command: bool,
    /// What becomes of them when a session's time to live is over.
    pub on_expiry: OnExpiry,
}

/// How the changes are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionMethod {
    Overlay,
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Until somebody applies or discards them.
    Keep,
    /// Applied if the command ended well, otherwise kept.
    Apply,
}
