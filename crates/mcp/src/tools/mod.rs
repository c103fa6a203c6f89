//! The tools: what each is called, takes and returns, and what does it.

mod answer;
mod changes;
mod commands;
mod declared;
mod files;
mod program;
mod schema;
mod search;
mod web;

pub(crate) use answer::{ToolAnswer, ToolError, result};

use rmcp::model::Tool;

use crate::context::CallContext;
use crate::options::OfferedTool;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Ours, and those that are declared, in the order in which clients show them.
pub(crate) fn tools(offered: &[OfferedTool]) -> Vec<Tool> {
    let mut tools = schema::tools();
    tools.extend(offered.iter().map(declared::tool));
    tools
}

/// Whether one of our tools has this name.
pub fn is_own_tool(name: &str) -> bool {
    schema::tools().iter().any(|tool| tool.name == name)
}

/// A call with its arguments read.
#[derive(Debug)]
pub(crate) enum ToolCall {
    Bash(commands::Bash),
    BashOutput(commands::BashOutput),
    BashKill(commands::BashKill),
    Read(files::Read),
    Write(files::Write),
    Edit(files::Edit),
    List(files::List),
    Grep(search::Grep),
    WebFetch(web::WebFetch),
    Diff(changes::Diff),
    Apply(changes::Apply),
    Checkpoint(changes::Checkpoint),
    Rollback(changes::Rollback),
    Status(changes::Status),
    Declared(declared::DeclaredCall),
}

/// Why a call cannot be read.
#[derive(Debug)]
pub(crate) enum BadCall {
    /// The protocol's error: there is no such tool.
    UnknownTool,
    /// For the model, which can do it better.
    Arguments(String),
}

impl ToolCall {
    pub(crate) fn parse(name: &str, arguments: Option<JsonObject>) -> Result<Self, BadCall> {
        fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, BadCall> {
            serde_json::from_value(Value::Object(arguments.unwrap_or_default()))
                .map_err(|error| BadCall::Arguments(format!("wrong arguments: {error}")))
        }
        Ok(match name {
            "bash" => Self::Bash(read(arguments)?),
            "bash_output" => Self::BashOutput(read(arguments)?),
            "bash_kill" => Self::BashKill(read(arguments)?),
            "read" => Self::Read(read(arguments)?),
            "write" => Self::Write(read(arguments)?),
            "edit" => Self::Edit(read(arguments)?),
            "list" => Self::List(read(arguments)?),
            "grep" => Self::Grep(read(arguments)?),
            "web_fetch" => Self::WebFetch(read(arguments)?),
            "sandbox_diff" => Self::Diff(read(arguments)?),
            "sandbox_apply" => Self::Apply(read(arguments)?),
            "sandbox_checkpoint" => Self::Checkpoint(read(arguments)?),
            "sandbox_rollback" => Self::Rollback(read(arguments)?),
            "sandbox_status" => Self::Status(read(arguments)?),
            _ => return Err(BadCall::UnknownTool),
        })
    }

    /// The same where further tools are offered.
    pub(crate) fn parse_offered(
        name: &str,
        arguments: Option<JsonObject>,
        offered: &[OfferedTool],
    ) -> Result<Self, BadCall> {
        match offered.iter().find(|tool| tool.name == name) {
            Some(tool) => Ok(Self::Declared(declared::DeclaredCall {
                name: name.to_owned(),
                sha256: tool.sha256.clone(),
                input: arguments.unwrap_or_default(),
            })),
            None => Self::parse(name, arguments),
        }
    }

    /// Whether it may take so long that a client would rather look at it later.
    pub(crate) fn may_be_task(&self) -> bool {
        matches!(self, Self::Bash(_) | Self::Declared(_))
    }

    pub(crate) async fn run(self, call: &CallContext) -> Result<ToolAnswer, ToolError> {
        match self {
            Self::Bash(wanted) => commands::bash(call, wanted).await,
            Self::BashOutput(wanted) => commands::bash_output(call, wanted).await,
            Self::BashKill(wanted) => commands::bash_kill(call, wanted).await,
            Self::Read(wanted) => files::read(call, wanted).await,
            Self::Write(wanted) => files::write(call, wanted).await,
            Self::Edit(wanted) => files::edit(call, wanted).await,
            Self::List(wanted) => files::list(call, wanted).await,
            Self::Grep(wanted) => search::grep(call, wanted).await,
            Self::WebFetch(wanted) => web::web_fetch(call, wanted).await,
            Self::Diff(wanted) => changes::diff(call, wanted).await,
            Self::Apply(wanted) => changes::apply(call, wanted).await,
            Self::Checkpoint(wanted) => changes::checkpoint(call, wanted).await,
            Self::Rollback(wanted) => changes::rollback(call, wanted).await,
            Self::Status(wanted) => changes::status(call, wanted).await,
            Self::Declared(wanted) => declared::run(call, wanted).await,
        }
    }
}
