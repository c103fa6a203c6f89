//! The plan of a run, before any action.

use super::RunRequest;
use crate::caches;
use crate::caller::Caller;
use crate::config::{self, Supposing};
use crate::egress;
use crate::error::{Result, SessionError};
use palisade_egress::config::Authority;
use palisade_gate::Rule;
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_plan::model::Plan;
use palisade_plan::{CacheStore, PlanError};
use palisade_policy::model::{Policy, View};
use palisade_policy::{Diagnostic, LayerKind, Problem};
use std::path::Path;

/// A plan and its policy, before any action.
#[derive(Debug)]
pub struct Planned {
    pub policy: config::LoadedPolicy,
    pub plan: Plan,
    /// Set if TLS is intercepted: the certificate is in the plan, the key is not.
    pub(crate) authority: Option<Authority>,
}

/// What `run` would do.
///
/// An untrusted project restricts what its commands may do, but must not keep its user from working: if no run could
/// start with its file and one can without it, the file is ignored with a note.
pub fn plan(caller: &Caller, request: &RunRequest, session: &str) -> Result<Planned> {
    let caches = |project: &Path| caches::look(&caller.places, project, session);
    plan_with(caller, request, session, &caches)
}

/// Finds the caches of a project, by its root.
pub(super) type CachesOf<'a> = &'a dyn Fn(&Path) -> CacheStore;

pub(super) fn plan_with(
    caller: &Caller,
    request: &RunRequest,
    session: &str,
    caches: CachesOf<'_>,
) -> Result<Planned> {
    let error = match plan_supposing(caller, request, session, (None, caches)) {
        Err(error @ (SessionError::Plan(_) | SessionError::Policy(_))) => error,
        planned => return planned,
    };
    let Some(file) = config::untrusted_project(caller, &request.policy) else { return Err(error) };
    let without = Supposing::WithoutProject;
    let Ok(mut planned) = plan_supposing(caller, request, session, (Some(&without), caches)) else {
        return Err(error);
    };
    planned.policy.notes.push(Diagnostic {
        file: file.path.to_string_lossy().into_owned(),
        line: 0,
        column: 0,
        key: String::new(),
        problem: Problem::Untrusted,
        message: format!("ignored: it is not trusted, and no run could start with it ({error})"),
        suggestion: Some("correct it, then run `sandbox policy trust`".to_owned()),
    });
    Ok(planned)
}

fn plan_supposing(
    caller: &Caller,
    request: &RunRequest,
    session: &str,
    (supposing, caches): (Option<&Supposing>, CachesOf<'_>),
) -> Result<Planned> {
    let mut policy = config::load_supposing(caller, &request.policy, supposing)?;
    if request.listed.is_some() {
        if policy.merged.policy.view == View::Minimal {
            return Err(PlanError::ListedInMinimalView.into());
        }
        policy.merged.policy.view = View::Listed;
    }
    config::refuse_unenforced(&policy)?;
    let (facts, authority) = egress::facts(caller, &policy.merged.policy)?;
    let plan = palisade_plan::build(&palisade_plan::PlanRequest {
        policy: &policy.merged.policy,
        facts: &facts,
        tree: &RealTree,
        command: request.command.clone(),
        session: session.to_owned(),
        missing: missing(&policy),
        project: policy.project.as_ref(),
        policy_files: &policy.read_from,
        preset_paths: &request.policy.preset_paths,
        layer: &caller.places.layer(session),
        caches,
        listed: request.listed.as_ref(),
        limits: &limit_facts,
    })?;
    Ok(Planned { policy, plan, authority })
}

/// The rules of all layers, for the gate.
pub(crate) fn gate_rules(policy: &Policy, caller: &Caller) -> Vec<Rule> {
    if policy.filesystem.rules.is_empty() {
        return Vec::new();
    }
    // The gate sees real paths.
    let home = caller.facts.home.as_deref();
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    let rules = policy.filesystem.rules.iter();
    // The rules were validated when the policy was read. Rules below the home directory are dropped if there is none.
    rules.filter_map(|rule| rule.rule(home.as_deref()).ok()).collect()
}

/// A missing path on the command line is a mistake; one in a file may be meant for another host.
pub(crate) fn missing(policy: &config::LoadedPolicy) -> palisade_plan::IfMissing {
    let sources = policy.merged.provenance.get("filesystem.readOnlyPaths");
    let is_typed =
        |source: &palisade_policy::Provenance| source.layer == LayerKind::CommandLine.name();
    if sources.is_some_and(|sources| sources.iter().any(is_typed)) {
        palisade_plan::IfMissing::IsAnError
    } else {
        palisade_plan::IfMissing::IsNoted
    }
}
