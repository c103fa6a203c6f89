//! Questions of sandboxes, from the one queue that `sandbox approve` answers, too (TOOL-2).

use crate::documents::ApprovalList;
use crate::extract::Json;
use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::Shared;
use crate::stream;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What `sandbox approve` ends with if the answer was not taken.
const NOT_TAKEN: i32 = 1;

/// List the questions that wait for an answer
///
/// Names in them were chosen by the program that asks: escape them where you show them.
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals", responses((status = 200, body = ApprovalList, description = "As `sandbox approve --json` prints it: `sessions`, and `questions` by docs/protocol.md")))]
pub(crate) async fn list_approvals(State(service): State<Shared>) -> Result<Json<Value>, Problem> {
    let list = Invocation::new(["approve", "--json"]);
    Ok(Json(service.program.done(list).await?.json()?))
}

/// Follow questions and answers
///
/// Server-sent events with the names of docs/protocol.md: `session.appeared`, `event.fs_request`, `event.host_request`, `event.audit` and so on. While
/// somebody reads this, sandboxes that would otherwise deny wait for an answer.
#[utoipa::path(get, path = "/v1/approvals/stream", tag = "approvals", responses((status = 200, body = Object, content_type = "text/event-stream")))]
pub(crate) async fn follow_approvals(State(service): State<Shared>) -> Result<Response, Problem> {
    let watch = Invocation::new(["approve", "--json", "--watch"]);
    stream::respond_with_lines(&service, &watch, |event| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or("message");
        (name.to_owned(), None)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Lifetime {
    /// For the calls that wait now.
    Once,
    /// Until the sandbox ends.
    Session,
    /// Permanently, in a policy file.
    Always,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    #[default]
    File,
    /// The directory that the question offers, with everything below it.
    Directory,
    /// The same, and its programs may run.
    DirectoryToRun,
    /// Let it change a private copy, which is discarded at the end.
    PrivateCopy,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Store {
    User,
    Project,
    Org,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ApprovalAnswer {
    decision: Decision,
    /// By default once for a yes, and until the sandbox ends for a no or a directory.
    lifetime: Option<Lifetime>,
    #[serde(default)]
    scope: Scope,
    /// A yes to a secret has to say so.
    #[serde(default)]
    secret: bool,
    /// Where a permanent answer is kept; `user` if nothing is said.
    store: Option<Store>,
}

/// Answer a question
///
/// The first answer counts, wherever it is given.
#[utoipa::path(post, path = "/v1/approvals/{sandbox}/{question}", tag = "approvals", params(("sandbox" = String, Path, description = "`session` of the question"), ("question" = u64, Path, description = "`id` of the question")), request_body = ApprovalAnswer, responses((status = 204, description = "The answer was taken"), (status = 409, body = Problem, content_type = "application/problem+json", description = "It was not: somebody else was first, or it needs something else")))]
pub(crate) async fn decide_approval(
    State(service): State<Shared>,
    Path((sandbox, question)): Path<(String, String)>,
    Json(answer): Json<ApprovalAnswer>,
) -> Result<StatusCode, Problem> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_number = !question.is_empty() && question.chars().all(|c| c.is_ascii_digit());
    if sandbox.is_empty() || !sandbox.chars().all(is_name) || !is_number {
        return Err(Problem::not_found(format!("there is no question `{sandbox}:{question}`")));
    }
    let approve = answer.invocation(&format!("{sandbox}:{question}"));
    let answered = service.program.finish(approve).await?;
    match answered.code {
        Some(0) => Ok(StatusCode::NO_CONTENT),
        Some(NOT_TAKEN) => Err(Problem::conflict(answered.told())),
        _ => Err(answered.problem()),
    }
}

impl ApprovalAnswer {
    fn invocation(&self, address: &str) -> Invocation {
        let lifetime = self.lifetime.map(|lifetime| match lifetime {
            Lifetime::Once => "once",
            Lifetime::Session => "session",
            Lifetime::Always => "always",
        });
        let store = self.store.map(|store| match store {
            Store::User => "user",
            Store::Project => "project",
            Store::Org => "org",
        });
        let word = if self.decision == Decision::Allow { "yes" } else { "no" };
        let is_directory = matches!(self.scope, Scope::Directory | Scope::DirectoryToRun);
        let mut approve = Invocation::new(["approve"])
            .option(word, address)
            .flag("directory", is_directory)
            .flag("run", self.scope == Scope::DirectoryToRun)
            .flag("private-copy", self.scope == Scope::PrivateCopy)
            .flag("secret", self.secret)
            .option_if("store", store);
        if let Some(lifetime) = lifetime {
            approve = approve.flag(lifetime, true);
        }
        approve
    }
}
