//! Builds a plan from its parts. Reads the host only through [`HostTree`], and must never change it.

use crate::egress::{self, Chosen};
use crate::error::{PlanError, Result};
use crate::executables::{self, SearchContext};
use crate::facts::{HostFacts, HostTree};
use crate::gate::Surroundings;
use crate::guard::{Guarded, Mounted};
use crate::host::Host;
use crate::limits::{self, Assigned};
use crate::model::{
    AtEnd, Command, Confinement, Egress, Execution, Explanation, Gate, Guard, Hardening, Identity,
    Landlock, Located, MountOp, Namespaced, Namespaces, Note, OnUnknown, Plan, Recording,
    SandboxLifetime, SandboxPlan, Seccomp, Supervision, Transaction, TransactionMethod, Weight,
};
use crate::planted::PlantedPlaces;
use crate::reach::Reach;
use crate::request::PlanRequest;
use crate::seccomp::Unheld;
use crate::see::{self, Outside, RestOfHost, Seen, SeenOn};
use crate::selfcheck::{self, CheckedLayers};
use crate::{
    caches, environment, gate, guard, identity, landlock, listed, locate, namespaces, own,
    promises, seccomp, unheld_rules, written,
};
use palisade_policy::model::{
    Level, Mode, NetworkMode, Policy, ProjectAccess, RecordedStreams, View,
};
use std::path::{Path, PathBuf};

pub fn build(request: &PlanRequest<'_>) -> Result<Plan> {
    if request.command.is_empty() {
        return Err(PlanError::NoCommand);
    }
    let host = host(request);
    let (seen, kept) = keep(request, &host)?;
    finish(request, &host, seen, kept)
}

/// The system call filter of such a plan, whatever the command; `None` at level 0.
pub fn filter(request: &PlanRequest<'_>) -> Result<Option<Seccomp>> {
    let host = host(request);
    let (_, kept) = keep(request, &host)?;
    Ok(kept.seccomp)
}

fn host<'a>(request: &PlanRequest<'a>) -> Host<'a> {
    let host = Host::new(request.tree, request.facts.home.as_deref());
    if let Some(located) = request.project {
        host.project.get_or_init(|| located.clone());
    }
    host
}

/// The project directory of a run that starts here. Policy files are looked up in it.
pub fn project_root(facts: &HostFacts, tree: &dyn HostTree) -> PathBuf {
    locate_project(facts, tree).root
}

/// The same, and how it was found.
pub fn locate_project(facts: &HostFacts, tree: &dyn HostTree) -> Located {
    locate::locate(facts, &Host::new(tree, facts.home.as_deref()))
}

/// How the command is confined.
struct Kept {
    confinement: Confinement,
    landlock: Option<Landlock>,
    seccomp: Option<Seccomp>,
    guard: Option<Guard>,
    gate: Option<Gate>,
    /// Why static mode does not show what is used in the home directory.
    why_no_gate: Option<&'static str>,
    hardening: Hardening,
    assigned: Assigned,
    egress: EgressConfig,
}

/// The network settings, if the run has its own network namespace.
#[derive(Default)]
struct EgressConfig {
    chosen: Chosen,
    /// The certificates that programs should trust, if they are not the host's.
    trusted: Option<PathBuf>,
}

fn keep(request: &PlanRequest<'_>, host: &Host<'_>) -> Result<(Seen, Kept)> {
    let policy = request.policy;
    let has_namespaces = policy.isolation_level != Level::None && policy.process.user_namespace;
    if request.listed.is_some() && !has_namespaces {
        let fix = "use LEVEL_2 or LEVEL_1, and user namespaces";
        return Err(PlanError::NeedsNamespaces {
            what: "a view that is listed entry by entry",
            fix,
        });
    }
    let (seen, kept) = match (policy.isolation_level, policy.process.user_namespace) {
        (Level::None, _) => without_isolation(request, host),
        (_, false) => without_namespaces(request, host),
        (_, true) => with_namespaces(request, host),
    }?;
    let uses_on_ask = kept.gate.as_ref().is_some_and(Gate::uses_on_ask);
    namespaces::refuse_unasked(policy, uses_on_ask || kept.egress.asks())?;
    Ok((seen, kept))
}

fn with_namespaces(request: &PlanRequest<'_>, host: &Host<'_>) -> Result<(Seen, Kept)> {
    let policy = request.policy;
    let namespaces = namespaces::choose(policy)?;
    let serves_files = gate::serves_files(policy, request.facts);
    let walls = limits::Enforcers { own_user_namespace: true, filter: true, serves_files };
    let assigned = assign(request, walls)?;
    let identity = identity::choose(&policy.process, &request.session, request.facts)?;
    let hostname = if namespaces.uts { &policy.process.hostname } else { &request.facts.hostname };
    let parts = ViewParts { namespaces: &namespaces, identity: &identity, hostname };
    let mut viewed = match gate::may_show_when_used(policy, request.facts) {
        true => view(request, host, &parts, RestOfHost::WhenUsed)?,
        false => view(request, host, &parts, RestOfHost::FromStart)?,
    };
    // Nothing would show it after all.
    if viewed.gate.is_none() && !viewed.seen.when_used.is_empty() {
        viewed = view(request, host, &parts, RestOfHost::FromStart)?;
    }
    let Viewed { seen, mut mounts, mut guard, gate, why_no_gate, egress } = viewed;
    // Files in the private home may be granted for writing later. Only the broker, which judges names, may
    // write there.
    if let (Some(guard), Some(home)) =
        (&mut guard, gate.as_ref().and_then(|gate| gate.private_home.clone()))
        && !guard.surroundings.contains(&home)
    {
        guard.surroundings.push(home);
    }
    let landlock = landlock::second_floor(request.facts, &mounts, guard.as_ref());
    let has_transaction = mounts.iter().any(MountOp::is_transaction);
    let hostname = namespaces.uts.then(|| policy.process.hostname.clone());
    let loopback = namespaces.net;
    let network_settings = namespaces::network_settings(policy, &identity);
    let private_home = gate::private_home(&mounts, host);
    let project = locate::root_of(request.facts, host);
    let caches = caches::stacks(&mut mounts, &project, request, host);
    let inside = Namespaced {
        namespaces,
        identity,
        mounts,
        caches,
        hostname,
        loopback,
        network_settings,
        private_home,
    };
    let kept = Kept {
        confinement: Confinement::Namespaces(Box::new(inside)),
        landlock,
        seccomp: Some(seccomp::choose(
            policy,
            Unheld {
                creations: guard.is_some() || gate.as_ref().is_some_and(Gate::judges_creations),
                directories: has_transaction,
                paths: gate.as_ref().map(|gate| gate.trigger),
                cpus: assigned.affinity.is_some(),
                root_files: request.facts.uid == 0,
                ..Unheld::default()
            },
        )?),
        guard,
        gate,
        why_no_gate,
        hardening: Hardening {
            no_file_streams: !request.policy.filesystem.execute_written,
            ..Hardening::all()
        },
        assigned,
        egress,
    };
    Ok((seen, kept))
}

/// What a view depends on besides the request.
struct ViewParts<'p> {
    namespaces: &'p Namespaces,
    identity: &'p Identity,
    /// As the command sees it.
    hostname: &'p str,
}

/// What the command sees, and what notices the use of the rest.
struct Viewed {
    seen: Seen,
    mounts: Vec<MountOp>,
    guard: Option<Guard>,
    gate: Option<Gate>,
    why_no_gate: Option<&'static str>,
    egress: EgressConfig,
}

fn view(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    parts: &ViewParts<'_>,
    rest: RestOfHost,
) -> Result<Viewed> {
    let (policy, facts) = (request.policy, request.facts);
    let mut seen = match request.listed {
        Some(view) => listed::see(request, view, host)?,
        None => see::see(request, host, Outside::Absent, rest)?,
    };
    add_name_files(parts.identity, facts, host, &mut seen);
    let egress = egress(request, parts.hostname, host, &mut seen)?;
    written::forbid_execution(&policy.filesystem, facts, host, &mut seen)?;
    if gate::serves_files(policy, facts) {
        seen.view.frame_areas(&own::FRAMED_AREAS);
    }
    let mounts: Vec<MountOp> = seen.view.ops.values().cloned().collect();
    let guard = guard_names(request, host, &mounts, Mounted::Yes, &mut seen)?;
    unheld_rules::refuse(policy, host, &mounts)?;
    let around = Surroundings { is_guarded: guard.is_some(), has_own_pids: parts.namespaces.pid };
    let gate::Chosen { gate, why_none: why_no_gate } =
        gate::choose(policy, facts, host, &mounts, &seen, around);
    Ok(Viewed { seen, mounts, guard, gate, why_no_gate, egress })
}

fn egress(
    request: &PlanRequest<'_>,
    hostname: &str,
    host: &Host<'_>,
    seen: &mut Seen,
) -> Result<EgressConfig> {
    let (policy, facts) = (request.policy, request.facts);
    let chosen = egress::choose(policy, facts, host)?;
    let egress = chosen.egress.as_ref();
    let naming = egress::Naming {
        network: policy.network.mode,
        egress,
        hostname,
        is_own_hostname: hostname != facts.hostname,
        denied: &seen.denied,
    };
    egress::add_name_files(&naming, host, &mut seen.view);
    let trusted =
        egress.and_then(|egress| egress::add_authority(egress, facts, host, &mut seen.view));
    Ok(EgressConfig { chosen, trusted })
}

impl EgressConfig {
    /// Whether the user may be asked about a host.
    fn asks(&self) -> bool {
        matches!(&self.chosen.egress,
            Some(Egress::Proxy(proxy)) if proxy.on_unknown == OnUnknown::Ask)
    }
}

fn without_namespaces(request: &PlanRequest<'_>, host: &Host<'_>) -> Result<(Seen, Kept)> {
    let (policy, facts) = (request.policy, request.facts);
    namespaces::refuse_without_namespaces(policy, facts.uid == 0)?;
    if facts.landlock_abi == 0 {
        return Err(PlanError::NoLandlock);
    }
    let mut seen = see::see(request, host, Outside::Shared, RestOfHost::FromStart)?;
    let cut_off = policy.network.mode != NetworkMode::Host;
    let mounts: Vec<MountOp> = std::mem::take(&mut seen.view.ops).into_values().collect();
    unheld_rules::refuse(policy, host, &mounts)?;
    let guard = guard_names(request, host, &mounts, Mounted::No, &mut seen)?;
    let assigned = assign(
        request,
        limits::Enforcers { own_user_namespace: false, filter: true, serves_files: false },
    )?;
    let unheld = Unheld {
        inet: cut_off,
        unix: true,
        processes: true,
        creations: guard.is_some(),
        directories: false,
        paths: None,
        cpus: assigned.affinity.is_some(),
        root_files: false,
    };
    let kept = Kept {
        confinement: Confinement::NoNamespaces,
        landlock: Some(landlock::alone(facts.landlock_abi, &mounts, guard.as_ref(), cut_off)),
        seccomp: Some(seccomp::choose(policy, unheld)?),
        guard,
        gate: None,
        why_no_gate: None,
        hardening: Hardening { mount_flags: false, ..Hardening::all() },
        assigned,
        egress: EgressConfig::default(),
    };
    Ok((seen, kept))
}

fn assign(request: &PlanRequest<'_>, walls: limits::Enforcers) -> Result<Assigned> {
    limits::assign(request.policy, walls, request.facts.uid == 0, request.limits)
}

fn guard_names(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    mounts: &[MountOp],
    mounted: Mounted,
    seen: &mut Seen,
) -> Result<Option<Guard>> {
    let Guarded { guard, notes } = guard::choose(request, host, mounts, mounted)?;
    seen.notes.extend(notes);
    Ok(guard)
}

fn without_isolation(request: &PlanRequest<'_>, host: &Host<'_>) -> Result<(Seen, Kept)> {
    namespaces::refuse_at_level_0(request.policy)?;
    let kept = Kept {
        confinement: Confinement::None,
        landlock: None,
        seccomp: None,
        guard: None,
        gate: None,
        why_no_gate: None,
        hardening: Hardening {
            no_new_privs: false,
            drop_capabilities: false,
            mount_flags: false,
            ..Hardening::all()
        },
        assigned: assign(
            request,
            limits::Enforcers { own_user_namespace: false, filter: false, serves_files: false },
        )?,
        egress: EgressConfig::default(),
    };
    Ok((see::nothing_hidden(request.policy, request.facts, host)?, kept))
}

/// Adds files with the command's own user and group names, over those of the host.
fn add_name_files(identity: &Identity, facts: &HostFacts, host: &Host<'_>, seen: &mut Seen) {
    let home = seen.home.as_deref().or(facts.home.as_deref());
    let has_etc = matches!(
        seen.view.ops.get(Path::new("/etc")),
        Some(MountOp::Bind { .. } | MountOp::Dir { .. })
    );
    if has_etc {
        let files = identity::name_files(identity, home, host);
        seen.view.ops.extend(files.into_iter().map(|op| (op.target().to_owned(), op)));
    }
}

fn finish(request: &PlanRequest<'_>, host: &Host<'_>, seen: Seen, kept: Kept) -> Result<Plan> {
    let (policy, facts) = (request.policy, request.facts);
    let credentials = egress::credentials(&policy.network.credentials, facts)?;
    let inside = environment::Inside {
        session: &request.session,
        home: seen.home.as_deref(),
        hostname: hostname(&kept.confinement, facts),
        cwd: &seen.cwd,
        sight: &SeenOn { seen: &seen, host },
        egress: kept.egress.chosen.egress.as_ref(),
        credentials: &credentials,
        trusted: kept.egress.trusted.as_deref(),
    };
    let environment = environment::build(&policy.process, facts, &inside);
    let walls = CheckedLayers {
        confinement: &kept.confinement,
        landlock: kept.landlock.as_ref(),
        guard: kept.guard.as_ref(),
        seccomp: kept.seccomp.as_ref(),
        network: policy.network.mode,
    };
    let self_check = selfcheck::probes(facts, host, &walls);
    let mut notes = notes(policy, facts, host.home(), &kept);
    let mut kept = kept;
    notes.append(&mut kept.egress.chosen.notes);
    let seen_notes = seen.notes.into_iter().chain(seen.view.notes);
    notes.extend(seen_notes.map(|text| Note::new(Weight::Important, text)));
    let routine = seen.routine_notes.into_iter();
    notes.extend(routine.map(|text| Note::new(Weight::Routine, text)));
    notes.extend(environment.notes().into_iter().map(|text| Note::new(Weight::Routine, text)));
    let (set_variables, withheld_variables) =
        (environment::set(&policy.process), environment.removed);
    let command =
        Command { argv: request.command.clone(), cwd: seen.cwd, env: environment.entries };
    let about_programs = list_executables(request, host, &seen.planted, &command, &mut kept)?;
    notes.extend(about_programs.into_iter().map(|text| Note::new(Weight::Important, text)));
    let writable = kept.landlock.as_ref().map_or(&[][..], |landlock| &landlock.writable);
    let room = limits::room(&kept.confinement, writable);
    kept.assigned.add_room(policy, &room)?;
    let scratch = match &kept.confinement {
        Confinement::Namespaces(inside) => limits::scratch(policy, &inside.mounts)?,
        Confinement::NoNamespaces | Confinement::None => None,
    };
    let approvals = policy.approvals.iter().cloned().chain(seen.view.approvals).collect();
    let transaction = match &kept.confinement {
        Confinement::Namespaces(inside) => transaction(policy, &inside.mounts),
        Confinement::NoNamespaces | Confinement::None => None,
    };
    let mut plan = Plan {
        session: request.session.clone(),
        explanation: Explanation {
            level: policy.isolation_level,
            view: policy.view,
            mode: policy.mode,
            project: locate::locate(facts, host),
            set_variables,
            withheld_variables,
            promises: Vec::new(),
            notes,
        },
        command,
        sandbox: SandboxPlan {
            lifetime: SandboxLifetime::default(),
            network: policy.network.mode,
            create_dirs: seen.create_dirs,
            confinement: kept.confinement,
            group: kept.assigned.group,
            rlimits: kept.assigned.rlimits,
            affinity: kept.assigned.affinity,
            scratch,
            landlock: kept.landlock,
            seccomp: kept.seccomp,
            guard: kept.guard,
            gate: kept.gate,
            egress: kept.egress.chosen.egress,
            publish: kept.egress.chosen.publish,
            self_check,
            hardening: kept.hardening,
        },
        supervision: Supervision {
            on_ask: policy.on_ask,
            ask_key: policy.ask_key,
            limits: kept.assigned.limits,
            watch: kept.assigned.watch,
            timeout_ms: policy.resources.timeout,
            grace: limits::grace(policy),
            time_to_live_ms: policy.resources.time_to_live,
            idle_time_to_live_ms: policy.resources.idle_time_to_live,
            max_output: policy.resources.max_output_size,
            normalize_ms: policy.resources.normalize_time,
            approvals,
            file_operations: policy.audit.file_operations,
            recording: recording(policy),
            transaction,
            escape: policy.escape.clone(),
        },
    };
    plan.explanation.promises = promises::of(&plan, policy);
    plan.explanation.promises.extend(promises::waived(&kept.assigned.waived));
    Ok(plan)
}

fn recording(policy: &Policy) -> Option<Recording> {
    let input = match policy.recording.terminal {
        RecordedStreams::Off => return None,
        RecordedStreams::Output => false,
        RecordedStreams::Input => true,
    };
    let max_bytes = policy.recording.max_size.unwrap_or(Recording::MAX_BYTES);
    Some(Recording { input, max_bytes })
}

/// The project's changes, if they are kept apart. There are none if the project could not be granted.
fn transaction(policy: &Policy, mounts: &[MountOp]) -> Option<Transaction> {
    let at_end = match policy.filesystem.project {
        ProjectAccess::Transaction => AtEnd::Keep,
        ProjectAccess::TransactionAuto => AtEnd::Apply,
        ProjectAccess::ReadWrite | ProjectAccess::ReadOnly | ProjectAccess::None => return None,
    };
    mounts.iter().find_map(|op| match op {
        MountOp::Overlay { lower, layer: Some(layer), is_copied, .. } => {
            let method = match is_copied {
                true => TransactionMethod::Copy,
                false => TransactionMethod::Overlay,
            };
            Some(Transaction {
                project: lower.clone(),
                layer: layer.clone(),
                method,
                at_end,
                checkpoint_each_command: policy.filesystem.checkpoint_each_command,
                on_expiry: policy.filesystem.on_expiry,
            })
        }
        _ => None,
    })
}

/// The result of `gethostname(2)` in the sandbox.
fn hostname<'a>(confinement: &'a Confinement, facts: &'a HostFacts) -> &'a str {
    match confinement {
        Confinement::Namespaces(inside) => inside.hostname.as_deref().unwrap_or(&facts.hostname),
        Confinement::NoNamespaces | Confinement::None => &facts.hostname,
    }
}

/// If the policy lists executables, Landlock restricts execution to them. Returns notes for the user.
fn list_executables(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    planted: &PlantedPlaces,
    command: &Command,
    kept: &mut Kept,
) -> Result<Vec<String>> {
    let (policy, facts) = (request.policy, request.facts);
    let list = &policy.process.allowed_executables;
    // If nothing may be executed, no list is needed.
    if list.is_empty() || !policy.process.allow_exec {
        return Ok(Vec::new());
    }
    let reach = Reach::new(&kept.confinement, kept.landlock.as_ref(), host);
    let mounts = match &kept.confinement {
        Confinement::Namespaces(inside) => inside.mounts.as_slice(),
        Confinement::NoNamespaces | Confinement::None => &[],
    };
    let built = written::executable_places(&policy.filesystem, mounts);
    let context = SearchContext { facts, command, reach, planted };
    let chosen = executables::choose(list, &built, &context)?;
    let landlock = kept.landlock.as_mut().ok_or(PlanError::ExecutablesUnheld)?;
    landlock.executables = Execution::Listed(chosen.executables);
    Ok(chosen.notes)
}

/// Facts about the whole run that may surprise the user.
fn notes(policy: &Policy, facts: &HostFacts, home: Option<&Path>, kept: &Kept) -> Vec<Note> {
    let confinement = &kept.confinement;
    let mut notes = Vec::new();
    let mut note = |holds: bool, weight: Weight, text: &str| {
        if holds {
            notes.push(Note::new(weight, text));
        }
    };
    let has_private_home =
        home.is_some_and(|home| matches!(mount_at(confinement, home), Some(MountOp::Tmpfs { .. })));
    let isolated = !matches!(confinement, Confinement::None);
    note(!isolated, Weight::Important, "LEVEL_0: the command is not isolated from the host");
    note(
        isolated && policy.mode == Mode::Dynamic && kept.gate.is_none(),
        Weight::OfMode,
        "mode dynamic: questions need namespaces and the host's view; here unlisted paths are hidden and \
         nothing is asked",
    );
    note(
        has_private_home,
        Weight::Routine,
        "files written to the home directory outside a grant are private to the run and discarded",
    );
    let is_static = isolated && policy.mode == Mode::Static && policy.view == View::Host;
    let is_shown_when_used = is_static && kept.gate.is_some();
    note(
        is_shown_when_used,
        Weight::Routine,
        "mode static: what nothing grants is shown when it is used, except secrets and .env files; other home \
         directories are hidden, and /var except what is listed",
    );
    let why_not = kept.why_no_gate.map(|why| format!(" ({why})")).unwrap_or_default();
    note(
        is_static && !is_shown_when_used,
        Weight::Routine,
        &format!(
            "mode static: home directories are hidden except what is granted in yours{why_not}, and /var except what \
             is listed; add paths with --ro"
        ),
    );
    let filesystem = &policy.filesystem;
    let names_trees =
        !filesystem.read_only_paths.is_empty() || !filesystem.overlay_paths.is_empty();
    note(
        isolated && names_trees && filesystem.hide_secrets,
        Weight::Routine,
        "paths named by --ro and --overlay are visible with the .env files in them",
    );
    note(
        isolated && policy.network.mode == NetworkMode::Host,
        Weight::Important,
        "the command uses the host's network, including loopback and abstract sockets",
    );
    note(
        matches!(confinement, Confinement::NoNamespaces),
        Weight::Important,
        "no namespaces: /tmp, /dev/shm and the list of processes are the host's, and programs \
         cannot create UNIX sockets",
    );
    note(
        matches!(confinement, Confinement::NoNamespaces) && kept.guard.is_none(),
        Weight::Important,
        "no namespaces: policy files in the project are writable",
    );
    note(
        isolated && facts.landlock_abi == 0,
        Weight::Important,
        "no Landlock on this host: only the mount view restricts access to files",
    );
    notes
}

fn mount_at<'plan>(confinement: &'plan Confinement, target: &Path) -> Option<&'plan MountOp> {
    match confinement {
        Confinement::Namespaces(inside) => inside.mounts.iter().find(|op| op.target() == target),
        Confinement::NoNamespaces | Confinement::None => None,
    }
}
