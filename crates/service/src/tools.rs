//! Declared tools: listed, declared and run. Our own program does it, so that a call is the same here as on the command line.
//!
//! Nothing here approves anything: what a tool needs beyond the usual, a person agrees to with `sandbox tool approve`.

use crate::caller_span::CallerSpan;
use crate::extract::{Json, Parameters};
use crate::own_program::{Answer, Invocation};
use crate::problem::Problem;
use crate::service::Shared;
use crate::tool_documents::{DeclaredTool, KeptDeclaration, ToolList, ToolResult, ToolWord};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Beyond what any policy lets a tool take: its own limit ends it.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Which tool a call is of.
#[derive(Clone, Copy, Debug)]
pub struct ToolToRun<'a> {
    pub name: &'a str,
    /// Declarations that count before the user's own.
    pub files: &'a [PathBuf],
    /// If it is given, a declaration with another one is refused.
    pub sha256: Option<&'a str>,
}

/// Which project's tools count beside the user's own.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolQuery {
    /// The directory of a project, as an absolute path. The one in which the server was started if nothing is said.
    #[param(value_type = Option<String>)]
    project: Option<PathBuf>,
}

/// List the tools that are declared
#[utoipa::path(get, path = "/v1/tools", tag = "tools", params(ToolQuery), responses((status = 200, body = ToolList, description = "As `sandbox tool list --json` prints it")))]
pub(crate) async fn list_tools(
    State(service): State<Shared>,
    Parameters(query): Parameters<ToolQuery>,
) -> Result<Json<Value>, Problem> {
    let list = in_project(Invocation::new(["tool", "list", "--json"]), query.project)?;
    Ok(Json(service.program.done(list).await?.json()?))
}

/// Show a tool, and the policy under which it runs
#[utoipa::path(get, path = "/v1/tools/{name}", tag = "tools", params(("name" = String, Path, description = "The tool"), ToolQuery), responses((status = 200, body = DeclaredTool, description = "As `sandbox tool show --json` prints it")))]
pub(crate) async fn get_tool(
    State(service): State<Shared>,
    Path(name): Path<String>,
    Parameters(query): Parameters<ToolQuery>,
) -> Result<Json<Value>, Problem> {
    let show = Invocation::new(["tool", "show", "--json", "--"]).word(name);
    let show = in_project(show, query.project)?;
    Ok(Json(service.program.done(show).await?.json()?))
}

/// A declaration, with the words of the files: see docs/tools.md.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ToolDeclaration {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    name: String,
    description: String,
    /// `LEVEL_1` or `LEVEL_2`. Less than the tool would have otherwise needs the approval of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// The program and its arguments, with places such as `{path}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<ToolWord>>,
    /// bash, read, write, edit, list, grep or web_fetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    builtin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    /// A JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    input: Option<Map<String, Value>>,
    /// As `resources` of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    limits: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    patterns: Option<Map<String, Value>>,
    /// A policy, without approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    policy: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeclareQuery {
    /// Replace an older declaration of the same name.
    #[serde(default)]
    replace: bool,
}

/// Declare a tool
///
/// It is kept as a declaration of the user's own.
#[utoipa::path(post, path = "/v1/tools", tag = "tools", params(DeclareQuery), request_body = ToolDeclaration, responses((status = 201, body = KeptDeclaration)))]
pub(crate) async fn declare_tool(
    State(service): State<Shared>,
    Parameters(query): Parameters<DeclareQuery>,
    Json(declaration): Json<ToolDeclaration>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let _place = service.waiting_place()?;
    let text =
        serde_json::to_vec(&declaration).map_err(|error| Problem::internal(error.to_string()))?;
    let declare = Invocation::new(["tool", "declare", "--json"])
        .flag("replace", query.replace)
        .word("--")
        .word("-");
    let answer = service.program.ask_with_input(declare, text).await?;
    match answer.code {
        Some(0) => Ok((StatusCode::CREATED, Json(answer.json()?))),
        _ => Err(answer.problem()),
    }
}

/// Remove a declaration of the user's own
#[utoipa::path(delete, path = "/v1/tools/{name}", tag = "tools", params(("name" = String, Path, description = "The tool")), responses((status = 204)))]
pub(crate) async fn remove_tool(
    State(service): State<Shared>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let remove = Invocation::new(["tool", "remove", "--"]).word(name);
    service.program.done(remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NewToolCall {
    /// The values that the tool takes, by name.
    #[schema(value_type = Object)]
    input: Map<String, Value>,
    /// The directory to work in, as an absolute path. The one in which the server was started if nothing is said.
    #[schema(value_type = Option<String>)]
    project: Option<PathBuf>,
}

/// Run a tool once, in a sandbox of its own
///
/// If the client goes, the tool is ended. What is refused before anything runs, such as a wrong input, a blocked pattern, a missing approval or
/// a quarantined tool, is a problem; everything else is a result.
#[utoipa::path(post, path = "/v1/tools/{name}/run", tag = "tools", params(("name" = String, Path, description = "The tool")), request_body = NewToolCall, responses((status = 200, body = ToolResult)))]
pub(crate) async fn run_tool(
    State(service): State<Shared>,
    Path(name): Path<String>,
    caller: CallerSpan,
    Json(wanted): Json<NewToolCall>,
) -> Result<Json<Value>, Problem> {
    let input = json!(wanted.input);
    let tool = ToolToRun { name: &name, files: &[], sha256: None };
    let caller = (wanted.project, caller.variables());
    Ok(Json(run(&service, tool, caller, &input).await?))
}

/// What `sandbox tool run --json` prints.
pub(crate) async fn run(
    service: &Shared,
    ToolToRun { name, files, sha256 }: ToolToRun<'_>,
    (project, variables): (Option<PathBuf>, Vec<(&'static str, String)>),
    input: &Value,
) -> Result<Value, Problem> {
    let _place = service.waiting_place()?;
    let mut run = Invocation::new(["tool", "run", "--json", "--input=-"])
        .option("metrics-file", service.metrics_file())
        .variables(variables)
        .within(PATIENCE);
    for file in files {
        run = run.option("tools", file);
    }
    run = run.option_if("sha256", sha256);
    let run = in_project(run.word("--").word(name), project)?;
    let input = serde_json::to_vec(input).map_err(|error| Problem::internal(error.to_string()))?;
    let answer = service.program.ask_with_input(run, input).await?;
    result_of(&answer)
}

/// What did not run is a problem; a tool that failed has a result.
fn result_of(answer: &Answer) -> Result<Value, Problem> {
    if answer.stdout.is_empty() {
        return Err(answer.problem());
    }
    let result: Value = answer.json()?;
    match result["outcome"].as_str() {
        Some("refused" | "failed") => Err(answer.problem()),
        _ => Ok(result),
    }
}

fn in_project(invocation: Invocation, project: Option<PathBuf>) -> Result<Invocation, Problem> {
    match project {
        None => Ok(invocation),
        Some(project) if !project.is_absolute() => {
            Err(Problem::invalid("project: write an absolute path"))
        }
        Some(project) if project.is_dir() => Ok(invocation.in_directory(&project)),
        Some(project) => {
            Err(Problem::invalid(format!("project: {} is no directory", project.display())))
        }
    }
}
