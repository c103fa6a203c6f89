//! What the description of the interface says about tools: the documents that `sandbox tool` prints and that are passed on.

#![allow(dead_code, reason = "these types describe; nothing is made of them")]

use crate::problem::ProblemKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What `sandbox tool list --json` prints.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolList {
    tools: Vec<DeclaredTool>,
    /// Declarations that do not count, and why.
    ignored: Vec<IgnoredDeclaration>,
}

/// A tool: what it is called, takes and runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeclaredTool {
    name: String,
    description: String,
    /// The program and its arguments; a list in it is left out if one of its places has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<ToolWord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    builtin: Option<String>,
    /// The value that the command reads at standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    /// A JSON Schema of the values that it takes.
    #[schema(value_type = Object)]
    input: Map<String, Value>,
    patterns: ToolPatterns,
    origin: ToolOrigin,
    /// Where it is declared.
    file: String,
    /// Of the file.
    sha256: String,
    /// What a person has to agree to before it runs. Only where one tool is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_approval: Option<Vec<String>>,
    /// The policy that counts. Only where one tool is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    policy: Option<Value>,
}

/// What its command line has to be like.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolPatterns {
    max_length: u64,
    allowed: Vec<String>,
    blocked: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolOrigin {
    Named,
    User,
    Project,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct IgnoredDeclaration {
    name: String,
    path: String,
    why: String,
}

/// The result of one call, as `sandbox tool run --json` prints it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult {
    tool: String,
    /// The sandbox in which it ran, for the audit log and the diff of its changes.
    session_id: String,
    /// completed, signalled, timeout, out-of-memory, cpu-time, too-many-processes, disk-full, output-capped or killed.
    outcome: String,
    exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// What is no UTF-8 is replaced.
    stdout: String,
    stderr: String,
    /// Whether there was more than is here.
    truncated: bool,
    /// What a built-in tool returns, as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    usage: Option<Value>,
    violations: Vec<ToolViolation>,
    /// None: the tool worked in the project itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<ToolTransaction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// What a person agreed to beforehand.
    approvals: Vec<ToolApproval>,
    /// Why it was stopped, with its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<ToolFailure>,
}

/// One thing that a tool tried and was not allowed. Names in it come from inside.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolViolation {
    kind: ToolViolationKind,
    /// The path, host, system call, limit or indicator.
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<String>,
    count: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ToolViolationKind {
    Access,
    ProtectedWrite,
    Execution,
    SystemCall,
    Network,
    Limit,
    Escape,
}

/// What became of a tool's changes to the project.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolTransaction {
    waiting_changes: u64,
    applied_changes: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ToolApproval {
    what: String,
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ToolFailure {
    kind: ProblemKind,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<Vec<String>>,
}

/// Where a declaration is kept.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeptDeclaration {
    file: String,
}

/// An argument, or several that are left out together.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ToolWord {
    Word(String),
    Group(Vec<String>),
}
