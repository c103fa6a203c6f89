//! The system call filter that a run would get, and the policy keys behind its rules. Starts nothing, and must never
//! differ from what `run` does.

use crate::caller::Caller;
use crate::config::{self, LoadedPolicy, PolicyRequest};
use crate::error::Result;
use crate::run::missing;
use crate::session_id::new_session_id;
use palisade_bpf::{Explanation, Profile};
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_policy::Provenance;
use serde::Serialize;

#[derive(Debug)]
pub struct Filter {
    pub policy: LoadedPolicy,
    /// `None` at level 0.
    pub rules: Option<Profile>,
}

/// A policy key and where it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetBy {
    pub key: &'static str,
    pub sources: Vec<Provenance>,
}

/// The filter for any command: it depends on the policy and the host, not on the program.
pub fn filter(caller: &Caller, request: &PolicyRequest) -> Result<Filter> {
    let policy = config::load(caller, request)?;
    config::refuse_unenforced(&policy)?;
    let session = new_session_id();
    let seccomp = palisade_plan::filter(&palisade_plan::PlanRequest {
        policy: &policy.merged.policy,
        facts: &caller.facts,
        tree: &RealTree,
        command: Vec::new(),
        session: session.clone(),
        missing: missing(&policy),
        project: policy.project.as_ref(),
        policy_files: &policy.read_from,
        preset_paths: &[],
        layer: &caller.places.layer(&session),
        caches: &|project| crate::caches::look(&caller.places, project, &session),
        listed: None,
        limits: &limit_facts,
    })?;
    Ok(Filter { policy, rules: seccomp.map(|seccomp| seccomp.rules) })
}

impl Filter {
    /// The keys that determine the rules of a call; empty if only the built-in group does.
    pub fn set_by(&self, explanation: &Explanation) -> Vec<SetBy> {
        let list = explanation.list.map(|_| "syscalls.syscalls");
        let mut keys: Vec<&'static str> =
            explanation.switches.iter().copied().filter_map(palisade_plan::key_of).collect();
        keys.extend(list);
        keys.dedup();
        let provenance = &self.policy.merged.provenance;
        keys.into_iter()
            .map(|key| SetBy { key, sources: provenance.get(key).cloned().unwrap_or_default() })
            .collect()
    }
}
