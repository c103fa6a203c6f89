//! What a server is started with.

use palisade_session::AppDirs;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which sandbox the tools work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichSandbox {
    /// One that is there, by id or name. It stays.
    Existing(String),
    /// A new one at the first call that needs it, with these options of `sandbox create`.
    New { options: Vec<OsString>, stays: bool },
}

/// Who is asked about what is not granted, beside `sandbox approve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskWhom {
    /// The person at the client, where the client can ask (elicitation).
    Client,
    /// Nobody through the client: the options say who answers.
    Others,
}

/// A declared tool that is offered beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub input: serde_json::Value,
    /// Of its declaration. A call is refused if the file has changed since: the client and its user saw this one.
    pub sha256: String,
}

#[derive(Clone, Debug)]
pub struct McpOptions {
    pub places: AppDirs,
    /// Where a new sandbox is made.
    pub directory: PathBuf,
    pub sandbox: WhichSandbox,
    pub ask: AskWhom,
    /// Whether a person may be asked on pages at this machine's loopback, where the client can open them.
    pub has_pages: bool,
    /// Let a call apply a transaction's changes to the project without asking a person first.
    pub may_apply: bool,
    /// Declared tools, and the files that declare them.
    pub tools: Vec<OfferedTool>,
    pub tool_files: Vec<PathBuf>,
}
