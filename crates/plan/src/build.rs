//! Puts a plan together, part by part.

use crate::denied::Denied;
use crate::environment::{self, Inside};
use crate::error::PlanError;
use crate::facts::{HostFacts, HostTree};
use crate::grant::{Grant, Granter, Kind, Origin};
use crate::host::{Host, Link};
use crate::layer::Layer;
use crate::lists;
use crate::model::{
    Command, Confinement, Hardening, Identity, Landlock, MountOp, Namespaced, Plan, Seccomp,
};
use crate::paths::Scope;
use crate::project::{self, Project, WORKSPACE};
use crate::view::{self, Parts};
use crate::{
    dotenv, identity, landlock, limits, namespaces, own, promises, seccomp, selfcheck,
};
use palisade_policy::model::{Approval, Level, Mode, NetworkMode, Policy, View};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The home directory inside where the view has no place for the caller's own.
const MINIMAL_HOME: &str = "/home/sandbox";

/// What a plan is asked for.
pub struct Request<'a> {
    pub policy: &'a Policy,
    pub facts: &'a HostFacts,
    pub tree: &'a dyn HostTree,
    pub command: Vec<OsString>,
    pub session: String,
}

/// Decides everything about one run.
pub fn build(request: &Request<'_>) -> Result<Plan, PlanError> {
    if request.command.is_empty() {
        return Err(PlanError::NoCommand);
    }
    namespaces::refuse_unenforced(request.policy)?;
    let host = Host::new(request.tree, request.facts.home.as_deref());
    let builder = Builder { request, policy: request.policy, facts: request.facts, host: &host };
    match (request.policy.isolation_level, request.policy.process.user_namespace) {
        (Level::None, _) => builder.without_isolation(),
        (_, false) => builder.without_namespaces(),
        (_, true) => builder.with_namespaces(),
    }
}

/// The directory that a run from here would have as its project, where its policy is looked for.
pub fn project_root(facts: &HostFacts, tree: &dyn HostTree) -> PathBuf {
    project::root_of(&facts.cwd, &Host::new(tree, facts.home.as_deref()))
}

struct Builder<'a> {
    request: &'a Request<'a>,
    policy: &'a Policy,
    facts: &'a HostFacts,
    host: &'a Host<'a>,
}

/// The view with what belongs to it.
struct Seen {
    view: view::View,
    project: Project,
    create_dirs: Vec<PathBuf>,
}

/// How the command is kept in, decided.
struct Kept {
    confinement: Confinement,
    landlock: Option<Landlock>,
    seccomp: Option<Seccomp>,
    hardening: Hardening,
}

impl Builder<'_> {
    fn with_namespaces(&self) -> Result<Plan, PlanError> {
        let namespaces = namespaces::choose(self.policy)?;
        let identity = identity::choose(&self.policy.process, &self.request.session, self.facts)?;
        let mut seen = self.see()?;
        self.add_name_files(&identity, &mut seen);
        let command = self.command(&seen, &mut Vec::new())?;
        let _ = command;
        let mounts: Vec<MountOp> = seen.view.ops.values().cloned().collect();
        let landlock = landlock::second_floor(self.facts.landlock_abi, &mounts);
        let hostname = namespaces.uts.then(|| self.policy.process.hostname.clone());
        let loopback = namespaces.net;
        let inside = Namespaced { namespaces, identity, mounts, hostname, loopback };
        let kept = Kept {
            confinement: Confinement::Namespaces(Box::new(inside)),
            landlock,
            seccomp: Some(seccomp::choose(self.policy, false)?),
            hardening: Hardening::all(),
        };
        self.finish(seen, kept)
    }
}
