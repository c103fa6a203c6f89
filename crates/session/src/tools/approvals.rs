//! What a person agreed to for a tool: that it has the network, or runs at a lower level (POL-7).
//!
//! An approval holds for one content of one declaration. It comes from a person at a terminal or from a policy of the user, never
//! from the declaration and never from who calls the tool.

use super::declared::DeclaredTool;
use crate::app_dirs::{self, AppDirs};
use crate::caller::Caller;
use crate::config::{self, PolicyRequest};
use crate::error::{Result, SessionError};
use jiff::Timestamp;
use palisade_policy::{Flag, Problem};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// Where a value of a policy is said to come from.
const SOURCE: &str = "sandbox tool approve";
const VERSION: u32 = 1;

/// Something that a tool needs and no person has agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingApproval {
    /// As in `approvals` of a policy: `NAME:network` or `NAME:no-sandbox`.
    pub what: String,
    /// For a person.
    pub message: String,
}

/// The store as saved on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolApprovals {
    version: u32,
    approvals: Vec<Given>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    what: String,
    file: PathBuf,
    /// SHA-256 of the declaration, in hex.
    sha256: String,
    since: Timestamp,
    uid: u32,
}

impl ToolApprovals {
    /// A missing store approves nothing; an unreadable one is an error.
    pub fn load(places: &AppDirs) -> Result<Self> {
        let path = places.tool_approvals();
        let damaged = |why: String| SessionError::ToolApprovalStore { path: path.clone(), why };
        let Some(text) = app_dirs::read_document(&path)? else { return Ok(Self::default()) };
        let store: Self =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        match store.version {
            VERSION => Ok(store),
            other => Err(damaged(format!("version {other} is not known"))),
        }
    }

    pub fn save(&mut self, places: &AppDirs) -> Result<()> {
        self.version = VERSION;
        let path = places.tool_approvals();
        let mut text = serde_json::to_string_pretty(self).map_err(|error| {
            SessionError::ToolApprovalStore { path: path.clone(), why: error.to_string() }
        })?;
        text.push('\n');
        app_dirs::replace_file(&path, text.as_bytes())
    }

    /// What a person agrees to now. Older approvals of the same file for the same thing are replaced.
    pub fn give(&mut self, tool: &DeclaredTool, what: &str, uid: u32) {
        self.approvals.retain(|it| it.what != what || it.file != tool.file.path);
        self.approvals.push(Given {
            what: what.to_owned(),
            file: tool.file.path.clone(),
            sha256: tool.digest.to_string(),
            since: Timestamp::now(),
            uid,
        });
    }

    /// Takes back everything that was agreed to for a tool. Returns whether there was anything.
    pub fn revoke(&mut self, tool: &DeclaredTool) -> bool {
        let count = self.approvals.len();
        self.approvals.retain(|it| it.file != tool.file.path);
        self.approvals.len() != count
    }

    fn reason(&self, tool: &DeclaredTool, what: &str) -> Option<String> {
        let sha256 = tool.digest.to_string();
        let is_it =
            |it: &&Given| it.what == what && it.file == tool.file.path && it.sha256 == sha256;
        let given = self.approvals.iter().find(is_it)?;
        Some(format!("{SOURCE}, by user {} at {:.0}", given.uid, given.since))
    }
}

/// What the policy of a call needs and no person has agreed to. Any other complaint about the policy is an error.
pub fn missing_approvals(caller: &Caller, request: &PolicyRequest) -> Result<Vec<MissingApproval>> {
    let complaints = match config::load(caller, request) {
        Ok(_) => return Ok(Vec::new()),
        Err(SessionError::Policy(complaints)) => complaints,
        Err(other) => return Err(other),
    };
    let tool = request.tool.as_deref().unwrap_or_default();
    let mut missing = Vec::new();
    for complaint in &complaints {
        let what = match (complaint.problem, complaint.key.as_str()) {
            (Problem::NeedsApproval, "isolationLevel") => format!("{tool}:no-sandbox"),
            // Anything but this tool's own approval is a matter of a policy: the host's network, private addresses.
            (Problem::NeedsApproval, "network.mode")
                if complaint.message.contains(&format!("`{tool}:network`")) =>
            {
                format!("{tool}:network")
            }
            _ => return Err(SessionError::Policy(complaints)),
        };
        missing.push(MissingApproval { what, message: complaint.to_string() });
    }
    Ok(missing)
}

/// The request with those approvals that a person gave for this content of the declaration, and what is still missing.
pub fn with_approvals(
    caller: &Caller,
    tool: &DeclaredTool,
    mut request: PolicyRequest,
) -> Result<(PolicyRequest, Vec<MissingApproval>)> {
    let missing = missing_approvals(caller, &request)?;
    if missing.is_empty() {
        return Ok((request, missing));
    }
    let store = ToolApprovals::load(&caller.places)?;
    let mut left = Vec::new();
    for approval in missing {
        match store.reason(tool, &approval.what) {
            Some(reason) => request.command_line.push(approved(&approval.what, &reason)),
            None => left.push(approval),
        }
    }
    Ok((request, left))
}

impl MissingApproval {
    /// As a value of the policy, once a person has agreed.
    pub fn given(&self, reason: &str) -> Flag {
        approved(&self.what, reason)
    }
}

fn approved(what: &str, reason: &str) -> Flag {
    Flag::new(SOURCE, "approvals", json!([{ "what": what, "reason": reason }]))
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
