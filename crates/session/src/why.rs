//! `sandbox why`: what decides about a path in a run with this policy, and where that was set.
//!
//! Starts nothing and asks nobody. Must never decide anything itself: the explanation comes from the plan and the rules
//! that `run` would use.

mod mistaken;
mod subjects;

pub use mistaken::{OtherSubject, other_subject};
pub use subjects::{SubjectAnswer, SubjectDecision as AnswerDecision, host, variable, writing};

use crate::caller::Caller;
use crate::config::{self, LoadedPolicy, PolicyRequest};
use crate::egress;
use crate::error::Result;
use crate::run::{gate_rules, missing};
use crate::session_id::new_session_id;
use jiff::Timestamp;
use palisade_gate::{
    Access, Decider, Decision, Effect, FileKind, PathContext, Pattern, Rule, offer,
};
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_plan::model::{self, Answers, Confinement, Gate, MountOp, Nature, Plan};
use palisade_policy::model::{Policy, Resources};
use palisade_policy::{OnAsk, Provenance};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The answer about one path.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// As requested.
    pub path: PathBuf,
    /// The host path with links resolved; `None` if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_path: Option<PathBuf>,
    pub access: Access,
    #[serde(flatten)]
    pub reason: WhyReason,
    /// Warnings about the policy files.
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "decision")]
pub enum WhyReason {
    /// In the view from the start.
    Visible { grant: String, writable: bool, executable: bool, set_by: Vec<Provenance> },
    /// The run has its own file or directory there, independent of the host.
    Own { place: PathBuf },
    /// It does not exist on the host, and no question is asked.
    Absent,
    /// Not in the view, and no question is asked.
    Hidden { because: &'static str, set_by: Vec<Provenance> },
    /// A rule decides.
    Rule { effect: Effect, rule: String, store: String, place: String, by: Option<String> },
    /// A question is asked.
    Asked { secret: bool, on_ask: OnAsk, timeout_ms: u64, directory: Option<PathBuf> },
}

/// The outcome, for a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyOutcome {
    Given,
    Withheld,
    Asked,
}

impl WhyReason {
    pub fn outcome(&self) -> WhyOutcome {
        match self {
            Self::Visible { .. } | Self::Own { .. } => WhyOutcome::Given,
            Self::Rule { effect: Effect::Allow, .. } => WhyOutcome::Given,
            Self::Asked { on_ask: OnAsk::Allow, secret: false, .. } => WhyOutcome::Given,
            Self::Asked { on_ask: OnAsk::Ask | OnAsk::Wait, .. } => WhyOutcome::Asked,
            Self::Absent | Self::Hidden { .. } | Self::Rule { .. } | Self::Asked { .. } => {
                WhyOutcome::Withheld
            }
        }
    }
}

pub fn why(caller: &Caller, request: &PolicyRequest, path: &Path, access: Access) -> Result<Why> {
    let (policy, plan) = supposed_plan(caller, request)?;
    let absolute = caller.facts.cwd.join(path);
    let real_path = absolute.canonicalize().ok();
    let shown = real_path.clone().unwrap_or_else(|| plain(&absolute));
    let asked = Asked { caller, policy: &policy, plan: &plan, access };
    let reason = asked.reason(&shown, real_path.is_some());
    let notes = policy.notes.iter().map(ToString::to_string).collect();
    Ok(Why { path: path.to_owned(), real_path, access, reason, notes })
}

/// The plan of any command that would be started here.
fn supposed_plan(caller: &Caller, request: &PolicyRequest) -> Result<(LoadedPolicy, Plan)> {
    let policy = config::load(caller, request)?;
    config::refuse_unenforced(&policy)?;
    let plan = plan_of(caller, &policy, &policy.merged.policy)?;
    Ok((policy, plan))
}

/// The same for a modified policy.
fn plan_of(caller: &Caller, loaded: &LoadedPolicy, policy: &Policy) -> Result<Plan> {
    let (facts, _) = egress::facts(caller, policy)?;
    let mut supposed = policy.clone();
    // Visibility depends on the policy and the directory, not on the program or on which programs are allowed.
    supposed.process.allowed_executables.clear();
    // Nor does it depend on limits, which this host may be unable to enforce.
    supposed.resources = Resources::default();
    supposed.process.max_processes = None;
    supposed.filesystem.max_total_size = None;
    supposed.filesystem.max_inodes = None;
    let session = new_session_id();
    let plan = palisade_plan::build(&palisade_plan::PlanRequest {
        policy: &supposed,
        facts: &facts,
        tree: &RealTree,
        command: vec!["/bin/sh".into()],
        session: session.clone(),
        missing: missing(loaded),
        project: loaded.project.as_ref(),
        policy_files: &loaded.read_from,
        preset_paths: &[],
        layer: &caller.places.layer(&session),
        caches: &|project| crate::caches::look(&caller.places, project, &session),
        listed: None,
        limits: &limit_facts,
    })?;
    Ok(plan)
}

/// Removes `.` and `..` lexically: there is nothing on the host to resolve.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

struct Asked<'a> {
    caller: &'a Caller,
    policy: &'a LoadedPolicy,
    plan: &'a Plan,
    access: Access,
}

impl Asked<'_> {
    fn reason(&self, path: &Path, exists: bool) -> WhyReason {
        let mounts = match &self.plan.sandbox.confinement {
            Confinement::Namespaces(inside) => &inside.mounts[..],
            Confinement::None => {
                return self.visible("isolation level 0", true, true, &["isolationLevel"]);
            }
            Confinement::NoNamespaces => return self.by_landlock(path),
        };
        if let Some(reason) = self.in_view(mounts, path) {
            return reason;
        }
        match &self.plan.sandbox.gate {
            _ if !exists => WhyReason::Absent,
            Some(gate) => self.at_the_gate(gate, path),
            None => self.hidden("it is a secret, denied, or nothing grants it", &[]),
        }
    }

    /// What the mounts decide; `None` where there is only our own scaffolding.
    fn in_view(&self, mounts: &[MountOp], path: &Path) -> Option<WhyReason> {
        let is_above = |op: &&MountOp| path.starts_with(op.target());
        // Of several mounts at one target, the last is on top.
        let deepest = mounts
            .iter()
            .filter(is_above)
            .filter(|op| !matches!(op, MountOp::Seal { .. }))
            .max_by_key(|op| op.target().components().count())?;
        let sealed = mounts.iter().any(|op| {
            matches!(op, MountOp::Seal { target, .. } if path.starts_with(target)
                && target.starts_with(deepest.target()))
        });
        match deepest {
            MountOp::Bind { access, exec, why, .. } => {
                let writable = *access == model::MountAccess::ReadWrite && !sealed;
                let mut reason = self.visible(why, writable, *exec, keys_of(why));
                if let (WhyReason::Visible { set_by, .. }, Some(key)) =
                    (&mut reason, keys_of(why).first())
                {
                    *set_by = self.said_of(key, path);
                }
                Some(reason)
            }
            MountOp::Overlay { target, hidden, access, layer, stack, exec, why, .. } => {
                let below = path.strip_prefix(target).unwrap_or(path);
                if hidden.iter().any(|hidden| below.starts_with(hidden)) {
                    return Some(self.hidden("it is denied", &["filesystem.deniedPaths"]));
                }
                if *access == model::MountAccess::ReadOnly {
                    return Some(self.visible(why, false, *exec, keys_of(why)));
                }
                let (grant, key) = match (layer, stack) {
                    (Some(_), _) => ("a transaction: changes wait", "filesystem.project"),
                    (None, Some(_)) => ("a cache of the project's sandboxes", "filesystem.caches"),
                    (None, None) => {
                        ("an overlay: changes are discarded", "filesystem.overlayPaths")
                    }
                };
                Some(self.visible(grant, true, *exec, &[key]))
            }
            MountOp::Dir { .. } | MountOp::Symlink { .. } | MountOp::Frame { .. } => None,
            MountOp::Tmpfs { target, .. } if self.is_ground(target) => None,
            MountOp::Copy { is_filtered, .. } => {
                let grant = match is_filtered {
                    true => "a copy of the settings without their credentials",
                    false => "a copy: changes are discarded",
                };
                Some(self.visible(grant, true, false, &["filesystem.toolchains"]))
            }
            op => Some(WhyReason::Own { place: op.target().to_owned() }),
        }
    }

    /// Whether a question may be asked about what is missing there.
    fn is_ground(&self, target: &Path) -> bool {
        self.plan.sandbox.gate.as_ref().is_some_and(|gate| gate.grounds.iter().any(|g| g == target))
    }

    fn by_landlock(&self, path: &Path) -> WhyReason {
        let Some(landlock) = &self.plan.sandbox.landlock else {
            return self.visible("nothing restricts it", true, true, &["isolationLevel"]);
        };
        let within = |paths: &[PathBuf]| paths.iter().any(|granted| path.starts_with(granted));
        // The broker performs writes to guarded trees.
        let writable = within(&landlock.writable) || within(&landlock.guarded);
        if writable || !landlock.restrict_reads || within(&landlock.readable) {
            return self.visible("a Landlock rule", writable, true, &[]);
        }
        self.hidden("no Landlock rule grants it", &[])
    }

    fn at_the_gate(&self, gate: &Gate, path: &Path) -> WhyReason {
        let nature = gate.nature(path);
        if gate.leaves_out(path) {
            return self.hidden("static mode shows nothing there that is not granted", &["mode"]);
        }
        if nature == Nature::Never {
            let is_own = self.caller.facts.own_paths.iter().any(|own| path.starts_with(own));
            return if is_own {
                self.hidden("it is the sandbox's own record or policy", &[])
            } else {
                self.hidden("it is denied", &["filesystem.deniedPaths"])
            };
        }
        let process = &self.policy.merged.policy.process;
        let asks_for_programs = process.allow_exec && process.allowed_executables.is_empty();
        if self.access == Access::Execute && !asks_for_programs {
            let keys = &["process.allowExec", "process.allowedExecutables"];
            return self
                .hidden("the policy lists the programs that may run, so nothing is asked", keys);
        }
        let rules = gate_rules(&self.policy.merged.policy, self.caller);
        let mut decider = Decider::new(rules, 0);
        let is_secret = nature == Nature::Secret;
        // Static mode shows for reading alone.
        let may_be_allowed = self.access != Access::Write || gate.uses_on_ask();
        match decider.decide(path, self.access, Timestamp::now()) {
            Decision::Denied(rule) => by_rule(rule),
            // As in the gate: a rule for a directory does not cover a secret in it.
            Decision::Allowed(rule)
                if may_be_allowed && (!is_secret || matches!(rule.pattern, Pattern::Exact(_))) =>
            {
                by_rule(rule)
            }
            Decision::Allowed(_) | Decision::Ask => match gate.answers {
                Answers::Readable(_) => self.shown_by_rule(gate, path),
                Answers::OnAsk(on_ask) => self.asked(gate, path, on_ask),
            },
        }
    }

    /// In static mode, where nobody is asked.
    fn shown_by_rule(&self, gate: &Gate, path: &Path) -> WhyReason {
        if gate.nature(path) == Nature::Secret {
            self.hidden("it is a secret", &["mode"])
        } else if gate.is_left_by_tools(path) {
            self.hidden("tools leave it in every home, and a run has its own", &["mode"])
        } else {
            self.visible("static mode shows it when it is used", false, gate.executes, &["mode"])
        }
    }

    fn asked(&self, gate: &Gate, path: &Path, on_ask: OnAsk) -> WhyReason {
        let is_secret = gate.nature(path) == Nature::Secret;
        if !is_secret && on_ask != OnAsk::Allow && gate.is_probe(path) {
            let why = "tools look for it above every project, where it does not exist unless it is granted";
            return self.hidden(why, &[]);
        }
        let around = PathContext {
            home: self.caller.facts.home.as_deref(),
            mounted: &gate.mounted,
            never: &gate.never,
            secrets: &gate.secrets,
        };
        let kind = if path.is_dir() { FileKind::Directory } else { FileKind::File };
        let directory = offer(path, kind, &around).filter(|_| !is_secret);
        WhyReason::Asked {
            secret: is_secret,
            on_ask,
            timeout_ms: gate.ask_timeout_ms,
            directory: directory.filter(|directory| !gate.holds_hidden(directory)),
        }
    }

    fn visible(&self, grant: &str, writable: bool, executable: bool, keys: &[&str]) -> WhyReason {
        WhyReason::Visible {
            grant: grant.to_owned(),
            writable,
            executable,
            set_by: self.set_by(keys),
        }
    }

    fn hidden(&self, because: &'static str, keys: &[&str]) -> WhyReason {
        WhyReason::Hidden { because, set_by: self.set_by(keys) }
    }

    /// Where the list entry is that names the path, or a directory above it.
    fn said_of(&self, key: &str, path: &Path) -> Vec<Provenance> {
        let facts = &self.caller.facts;
        let names = |text: &str| {
            palisade_plan::resolved_path(text, facts, &RealTree)
                .is_some_and(|named| path.starts_with(named))
        };
        subjects::said_by(self.policy, key, names)
    }

    fn set_by(&self, keys: &[&str]) -> Vec<Provenance> {
        let provenance = &self.policy.merged.provenance;
        keys.iter().filter_map(|key| provenance.get(*key)).flatten().cloned().collect()
    }
}

fn by_rule(rule: &Rule) -> WhyReason {
    WhyReason::Rule {
        effect: rule.effect,
        rule: rule.pattern.text().unwrap_or_default(),
        store: rule.store.to_string(),
        place: rule.origin.place.clone(),
        by: rule.origin.by.clone(),
    }
}

/// The policy keys behind the name of a grant in the plan.
fn keys_of(why: &str) -> &'static [&'static str] {
    match why {
        "project" => &["filesystem.project"],
        "cache" => &["filesystem.caches"],
        "toolchain" => &["filesystem.toolchains"],
        "--ro" => &["filesystem.readOnlyPaths"],
        "--rw" => &["filesystem.readWritePaths"],
        _ => &[],
    }
}
