//! `sandbox why` for writes, hosts and variables. The answers come from the same plan as all others.

use super::{Asked, WhyOutcome, WhyReason, plain, plan_of, supposed_plan};
use crate::app_dirs::read_document;
use crate::caller::Caller;
use crate::config::{LoadedPolicy, PolicyRequest};
use crate::error::{Result, SessionError};
use crate::stores::NETWORK_PROXY;
use palisade_broker::{WriteVerdict, foresee_granted_write, foresee_write};
use palisade_gate::{Access, Effect};
use palisade_hosts::{Host, Verdict};
use palisade_plan::model::{self, Confinement, Egress, MountOp, OnUnknown, Plan};
use palisade_policy::{EnvMode, LayerKind, NetworkMode, OnAsk, Provenance, entries};
use palisade_record::escape;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The port that most programs connect to.
const USUAL_PORT: u16 = 443;

/// The answer about a subject other than a path to read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectAnswer {
    /// As requested.
    pub subject: String,
    pub decision: SubjectDecision,
    pub because: String,
    /// The files, lines and options that set it.
    pub set_by: Vec<Provenance>,
    /// The option that would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_with: Option<String>,
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectDecision {
    Allowed,
    Denied,
    Asked,
}

impl SubjectAnswer {
    fn new(
        subject: impl Into<String>,
        decision: SubjectDecision,
        because: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            decision,
            because: because.into(),
            set_by: Vec::new(),
            allow_with: None,
            notes: Vec::new(),
        }
    }

    fn by(mut self, set_by: Vec<Provenance>) -> Self {
        self.set_by = set_by;
        self
    }

    fn allow_with(mut self, option: String) -> Self {
        self.allow_with = Some(option);
        self
    }

    fn noting(mut self, policy: &LoadedPolicy) -> Self {
        self.notes = policy.notes.iter().map(ToString::to_string).collect();
        self
    }

    pub fn outcome(&self) -> WhyOutcome {
        match self.decision {
            SubjectDecision::Allowed => WhyOutcome::Given,
            SubjectDecision::Denied => WhyOutcome::Withheld,
            SubjectDecision::Asked => WhyOutcome::Asked,
        }
    }
}

/// Whether a command could write there.
pub fn writing(caller: &Caller, request: &PolicyRequest, path: &Path) -> Result<SubjectAnswer> {
    let (policy, plan) = supposed_plan(caller, request)?;
    let absolute = caller.facts.cwd.join(path);
    let real = absolute.canonicalize().ok();
    let shown = real.clone().unwrap_or_else(|| absent_name(&absolute));
    let asked = Asked { caller, policy: &policy, plan: &plan, access: Access::Write };
    let named = path.display().to_string();
    let rw = format!("--rw {}", escape::shell_word(&named));
    let reason = match (asked.reason(&shown, real.is_some()), nearest_directory(&shown)) {
        (WhyReason::Absent, Some(above)) if asked.is_made_in_private_home(above) => {
            return Ok(made_in_private_home(named).noting(&policy));
        }
        // Creating something writes to its directory.
        (WhyReason::Absent, Some(above)) => match asked.reason(above, true) {
            reason @ (WhyReason::Asked { .. } | WhyReason::Rule { .. }) => reason,
            _ => WhyReason::Absent,
        },
        (reason, _) => reason,
    };
    let answer = match reason {
        WhyReason::Visible { grant, writable: true, set_by, .. } => {
            let granted = Granted { grant: &grant, set_by };
            asked.in_writable(&shown, named, granted)
        }
        WhyReason::Visible { grant, set_by, .. } => {
            SubjectAnswer::new(named, SubjectDecision::Denied, format!("read-only: {grant}"))
                .by(set_by)
                .allow_with(rw)
        }
        WhyReason::Own { place } => {
            let because = format!("the run has its own {}, discarded at the end", place.display());
            SubjectAnswer::new(named, SubjectDecision::Allowed, because)
        }
        WhyReason::Absent => {
            let because = "it does not exist, and no directory above it is writable";
            SubjectAnswer::new(named, SubjectDecision::Denied, because).allow_with(rw)
        }
        WhyReason::Hidden { because, set_by } => {
            SubjectAnswer::new(named, SubjectDecision::Denied, because).by(set_by)
        }
        WhyReason::Rule { effect, rule, place, .. } => {
            let (decision, word) = match effect {
                Effect::Allow => (SubjectDecision::Allowed, "allows"),
                Effect::Deny => (SubjectDecision::Denied, "denies"),
            };
            SubjectAnswer::new(named, decision, format!("the rule `{rule}` {word} it ({place})"))
        }
        WhyReason::Asked { secret: true, .. } => {
            SubjectAnswer::new(named, SubjectDecision::Denied, "secrets are never writable")
        }
        WhyReason::Asked { on_ask, .. } => asked_to_write(&plan, &shown, named, on_ask),
    };
    Ok(answer.noting(&policy))
}

/// For a path that nothing makes writable.
fn asked_to_write(plan: &Plan, path: &Path, named: String, on_ask: OnAsk) -> SubjectAnswer {
    let rw = format!("--rw {}", escape::shell_word(&named));
    let protected = plan.sandbox.guard.as_ref().zip(plan.sandbox.gate.as_ref());
    if let Some(name) = protected.and_then(|(guard, gate)| guard.keeps_from_grant(gate, path)) {
        let because = format!("the name `{name}` is protected, so nothing is asked");
        return SubjectAnswer::new(named, SubjectDecision::Denied, because).allow_with(rw);
    }
    let foreseen = protected.map(|(guard, gate)| foresee_granted_write(guard, gate, path));
    if let Some(WriteVerdict::Refused { rule, why }) = foreseen {
        let because = format!("protected (`{rule}`): {why}; an answer does not change that");
        let option = format!("{rw} --allow-write {}", escape::shell_word(&named));
        return SubjectAnswer::new(named, SubjectDecision::Denied, because).allow_with(option);
    }
    match on_ask {
        OnAsk::Ask | OnAsk::Wait => {
            let because = "it is not writable; you are asked, if anybody can be asked";
            SubjectAnswer::new(named, SubjectDecision::Asked, because).allow_with(rw)
        }
        OnAsk::Deny | OnAsk::Allow => {
            let because = "it is not writable, and nothing is asked";
            SubjectAnswer::new(named, SubjectDecision::Denied, because).allow_with(rw)
        }
    }
}

/// Git configuration may contain some settings and not others (`crates/guard/src/gitconfig.rs`).
const GIT_CONFIG: &str =
    "; settings that make git run a program, such as core.fsmonitor or core.hooksPath, are denied";

/// The same applies to a Python path file (`crates/guard/src/path_file.rs`).
const PATH_FILE: &str = "; new lines that Python would run are denied";

const BUILD_DIR: &str = "; a build directory, where no name is protected";

/// What makes a path writable.
struct Granted<'a> {
    grant: &'a str,
    set_by: Vec<Provenance>,
}

impl Asked<'_> {
    /// For a path in a writable mount: the broker may still refuse the write.
    fn in_writable(&self, path: &Path, named: String, granted: Granted<'_>) -> SubjectAnswer {
        let Granted { grant, set_by } = granted;
        let allowed = |but: &str| {
            SubjectAnswer::new(
                named.clone(),
                SubjectDecision::Allowed,
                format!("writable: {grant}{but}"),
            )
        };
        let Some(guard) = &self.plan.sandbox.guard else { return allowed("").by(set_by) };
        let inside = inside(self.plan, path);
        if guard.build_dirs.iter().any(|build| inside.starts_with(build)) {
            return allowed(BUILD_DIR).by(self.set_by(&["filesystem.buildDirs"]));
        }
        if guard.matcher().is_opened(&inside) {
            return allowed("").by(self.said_of("filesystem.unprotectedPaths", path));
        }
        match foresee_write(guard, &inside, path) {
            WriteVerdict::Allowed => allowed("").by(set_by),
            WriteVerdict::ByContent => {
                let is_python = path.extension().is_some_and(|extension| extension == "pth");
                allowed(if is_python { PATH_FILE } else { GIT_CONFIG }).by(set_by)
            }
            WriteVerdict::Refused { rule, why } => {
                let because = format!("protected (`{rule}`): {why}");
                let option = format!("--allow-write {}", escape::shell_word(&named));
                SubjectAnswer::new(named, SubjectDecision::Denied, because)
                    .by(self.set_by(&["filesystem.protectNames"]))
                    .allow_with(option)
            }
        }
    }

    /// Whether something missing there is created in the private home directory: no question is asked about a directory
    /// that is in the view from the start.
    fn is_made_in_private_home(&self, directory: &Path) -> bool {
        let Some(gate) = &self.plan.sandbox.gate else { return false };
        let mut planned = gate.mounted.iter().chain(&gate.directories);
        gate.private_home.as_ref().is_some_and(|home| {
            directory.starts_with(home)
                && (directory == home || planned.any(|path| path.starts_with(directory)))
        })
    }
}

fn made_in_private_home(named: String) -> SubjectAnswer {
    let because = format!(
        "it does not exist on the host, so it is created in the private home and discarded at the end of the run; \
         nothing is asked; keep it with --rw {} once it exists outside",
        escape::shell_word(&named)
    );
    SubjectAnswer::new(named, SubjectDecision::Allowed, because)
}

/// The directory in which a missing path, or the first missing directory above it, would be created.
fn nearest_directory(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|above| above.is_dir())
}

/// With links in its existing part resolved.
fn absent_name(path: &Path) -> PathBuf {
    let path = plain(path);
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => path,
    }
}

/// The path in the view of a host path.
fn inside(plan: &Plan, path: &Path) -> PathBuf {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return path.to_owned() };
    let covering = inside.mounts.iter().filter_map(|op| match op {
        MountOp::Bind { source, target, access: model::MountAccess::ReadWrite, .. } => {
            Some((source, target.join(path.strip_prefix(source).ok()?)))
        }
        _ => None,
    });
    let nearest = covering.max_by_key(|(source, _)| source.components().count());
    nearest.map_or_else(|| path.to_owned(), |(_, inside)| inside)
}

/// Whether a host, `NAME[:PORT]`, could be reached.
pub fn host(caller: &Caller, request: &PolicyRequest, text: &str) -> Result<SubjectAnswer> {
    let split = || text.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>()));
    // An IPv6 address contains colons.
    let (name, port) = match Host::parse(text).is_err().then(split).flatten() {
        Some((name, Ok(port))) => (name, port),
        _ => (text, USUAL_PORT),
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let parsed = Host::parse(bare).map_err(|error| SessionError::NotAHost {
        text: text.to_owned(),
        why: error.to_string(),
    })?;
    let (policy, plan) = supposed_plan(caller, request)?;
    let subject = format!("{name}:{port}");
    let mode = policy.merged.provenance.get("network.mode").cloned().unwrap_or_default();
    let allow = format!("--allow-host {text}");
    let answer = match (policy.merged.policy.network.mode, &plan.sandbox.egress) {
        (_, Some(Egress::Proxy(proxy))) => {
            let said = |key: &str, rule: &str| said_by(&policy, key, |entry| entry == rule);
            match proxy.rules.judge(&parsed, port) {
                Verdict::Allowed { rule } => {
                    let mut set_by = said("network.allowedHosts", &rule);
                    set_by.retain(|source| source.layer != LayerKind::BuiltIn.name());
                    if set_by.is_empty() {
                        set_by = said_by(&policy, "network.allowedFor", |_| true);
                    }
                    let because = format!("the list has `{rule}`");
                    SubjectAnswer::new(subject, SubjectDecision::Allowed, because).by(set_by)
                }
                Verdict::Denied { rule, reason }
                    if !matches!(reason, palisade_hosts::Reason::Port) =>
                {
                    let set_by = rule.map(|rule| said("network.deniedHosts", &rule));
                    SubjectAnswer::new(subject, SubjectDecision::Denied, reason.to_string())
                        .by(set_by.unwrap_or_default())
                }
                verdict => {
                    let what = match verdict {
                        Verdict::Denied { .. } => "the host is allowed on other ports only",
                        _ => "no rule names it",
                    };
                    let answer = match (proxy.on_unknown, plan.supervision.on_ask) {
                        (OnUnknown::Ask, OnAsk::Ask | OnAsk::Wait) => SubjectAnswer::new(
                            subject,
                            SubjectDecision::Asked,
                            format!("{what}; you are asked"),
                        ),
                        (OnUnknown::Ask, OnAsk::Allow) => SubjectAnswer::new(
                            subject,
                            SubjectDecision::Allowed,
                            format!("{what}, and onAsk allows it"),
                        ),
                        _ => SubjectAnswer::new(subject, SubjectDecision::Denied, what),
                    };
                    let option = proxy.rules.flag_for(&parsed, port);
                    if answer.decision == SubjectDecision::Allowed {
                        answer
                    } else {
                        answer.allow_with(option)
                    }
                }
            }
        }
        (NetworkMode::None, _) => match rule_in_proxy_mode(caller, &policy, (&parsed, port)) {
            Some(rule) => {
                let because = format!(
                    "the network is off; the policy allows `{rule}` if the network mode is proxy"
                );
                let mut set_by = said_by(&policy, "network.allowedHosts", |entry| entry == rule);
                set_by.extend(mode);
                let off = SubjectAnswer::new(subject, SubjectDecision::Denied, because).by(set_by);
                off.allow_with(NETWORK_PROXY.to_owned())
            }
            None => SubjectAnswer::new(subject, SubjectDecision::Denied, "the network is off")
                .by(mode)
                .allow_with(allow),
        },
        (NetworkMode::Host, _) => SubjectAnswer::new(
            subject,
            SubjectDecision::Allowed,
            "the host's own network is shared",
        )
        .by(mode),
        _ => {
            let because =
                "mode nat: every host but private and special addresses, and those denied";
            SubjectAnswer::new(subject, SubjectDecision::Allowed, because).by(mode)
        }
    };
    Ok(answer.noting(&policy))
}

/// The rule that would allow a host if the network mode were proxy.
fn rule_in_proxy_mode(
    caller: &Caller,
    policy: &LoadedPolicy,
    (host, port): (&Host, u16),
) -> Option<String> {
    let mut opened = policy.merged.policy.clone();
    opened.network.mode = NetworkMode::Proxy;
    let plan = plan_of(caller, policy, &opened).ok()?;
    let Some(Egress::Proxy(proxy)) = &plan.sandbox.egress else { return None };
    match proxy.rules.judge(host, port) {
        Verdict::Allowed { rule } => Some(rule),
        _ => None,
    }
}

/// Whether a variable of the caller reaches the command.
pub fn variable(caller: &Caller, request: &PolicyRequest, name: &str) -> Result<SubjectAnswer> {
    let (policy, plan) = supposed_plan(caller, request)?;
    let key = OsStr::new(name);
    let process = &policy.merged.policy.process;
    let of = |key: &str| policy.merged.provenance.get(key).cloned().unwrap_or_default();
    let inside = plan.command.env.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let outside = caller.facts.env.get(key);
    let answer = match (inside, outside) {
        (Some(_), _) if process.env.contains_key(name) => {
            SubjectAnswer::new(name, SubjectDecision::Allowed, "the policy sets it")
                .by(of("process.env"))
        }
        (Some(inside), Some(outside)) if inside == outside => {
            let set_by = match process.env_mode {
                EnvMode::Explicit => {
                    said_by(&policy, "process.allowedEnvVars", |known| known == name)
                }
                EnvMode::Inherit | EnvMode::Clean => of("process.envMode"),
            };
            SubjectAnswer::new(name, SubjectDecision::Allowed, "passed on unchanged").by(set_by)
        }
        (Some(_), _) => {
            SubjectAnswer::new(name, SubjectDecision::Allowed, "the sandbox sets it itself")
        }
        (None, None) => {
            SubjectAnswer::new(name, SubjectDecision::Denied, "it is not set outside either")
        }
        (None, Some(_)) => {
            let (because, set_by) = match process.env_mode {
                EnvMode::Explicit => ("it is not among `allowedEnvVars`", of("process.envMode")),
                EnvMode::Clean => ("`envMode` is clean", of("process.envMode")),
                EnvMode::Inherit if palisade_plan::is_secret_variable(key) => {
                    ("its name looks like a secret's", Vec::new())
                }
                EnvMode::Inherit => ("it names something that is not in the sandbox", Vec::new()),
            };
            SubjectAnswer::new(name, SubjectDecision::Denied, because)
                .by(set_by)
                .allow_with(format!("--env {name}"))
        }
    };
    Ok(answer.noting(&policy))
}

/// The sources of the matching entries of a list, with their lines. Options have no lines and are returned only if no
/// file has such an entry. For a key that is not a list, all sources.
pub(super) fn said_by(
    policy: &LoadedPolicy,
    key: &str,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<Provenance> {
    let Some(sources) = policy.merged.provenance.get(key) else { return Vec::new() };
    let (mut found, mut is_list) = (Vec::new(), false);
    for source in sources.iter().filter(|source| source.line > 0) {
        let Ok(Some(text)) = read_document(Path::new(&source.file)) else { continue };
        for entry in entries(&text, &source.file).unwrap_or_default() {
            is_list |= entry.key == key;
            if entry.key == key && is_meant(&entry.value) {
                found.push(Provenance { line: entry.line, ..source.clone() });
            }
        }
    }
    match (found.is_empty(), is_list) {
        (false, _) => found,
        (true, true) => sources.iter().filter(|source| source.line == 0).cloned().collect(),
        (true, false) => sources.clone(),
    }
}
