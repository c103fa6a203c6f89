//! Collects grants and denied paths, and composes the view from them.

use crate::aliases::Mounts;
use crate::compose::{Parts, Technique, compose};
use crate::denied::Denied;
use crate::environment::Sight;
use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts};
use crate::grant::{Grant, GrantKind, Granter, Origin};
use crate::host::{Host, Link, Resolved, join};
use crate::model::{MountOp, NodeKind};
use crate::path_map::PathMap;
use crate::path_text::PathText as _;
use crate::paths::Scope;
use crate::planted::PlantedPlaces;
use crate::project::{self, Project, WORKSPACE};
use crate::request::PlanRequest;
use crate::settings::{self, Copies};
use crate::view::Composition;
use crate::writable::resolved_path;
use crate::{caches, credentials, installed, lists, own, policy_files};
use palisade_policy::model::{CacheAccess, Mode, Policy, View};
use palisade_policy::network::SecretSource;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The home directory in a view that does not contain the caller's own.
const MINIMAL_HOME: &str = "/home/sandbox";

#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) view: Composition,
    pub(crate) denied: Denied,
    /// As the command sees it.
    pub(crate) cwd: PathBuf,
    /// Set if it is not the caller's own.
    pub(crate) home: Option<PathBuf>,
    pub(crate) create_dirs: Vec<PathBuf>,
    pub(crate) planted: PlantedPlaces,
    /// What the gate's file system shows when it is used, each with everything below.
    pub(crate) when_used: Vec<PathBuf>,
    pub(crate) notes: Vec<String>,
    /// Shown only with the plan, not at every run.
    pub(crate) routine_notes: Vec<String>,
    pub(crate) outside: Outside,
}

/// Whether directories that are not in the view can be reached anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    Absent,
    /// Only the few that are shared with the host.
    Shared,
    Everything,
}

/// When static mode shows what dynamic mode would ask about outside the home directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestOfHost {
    /// Each directory in a mount.
    FromStart,
    /// The gate's file system shows it.
    WhenUsed,
}

/// Answers queries about paths in the view.
pub(crate) struct SeenOn<'a> {
    pub(crate) seen: &'a Seen,
    pub(crate) host: &'a Host<'a>,
}

impl Sight for SeenOn<'_> {
    fn has_dir(&self, path: &Path) -> bool {
        self.seen.has_dir(path, self.host)
    }

    fn can_make(&self, path: &Path) -> bool {
        // Without its own view, Landlock decides, so variables are passed on unchanged.
        self.seen.outside != Outside::Absent || self.seen.view.can_make(path)
    }

    fn hides(&self, path: &Path) -> bool {
        self.seen.hidden(path, self.host).is_some()
    }

    fn hides_socket(&self, path: &Path) -> bool {
        self.seen.hidden(path, self.host) == Some(EntryKind::Other)
    }
}

impl Seen {
    fn hidden(&self, path: &Path, host: &Host<'_>) -> Option<EntryKind> {
        let has_view = self.outside == Outside::Absent && !self.is_shown_when_used(path);
        has_view.then(|| self.view.hidden(path, host)).flatten()
    }

    fn is_shown_when_used(&self, path: &Path) -> bool {
        self.when_used.iter().any(|top| path.is_in(top))
    }

    pub(crate) fn has_dir(&self, dir: &Path, host: &Host<'_>) -> bool {
        let is_reachable = match self.outside {
            Outside::Absent => self.is_shown_when_used(dir),
            Outside::Shared => own::SHARED_WITH_HOST.into_iter().any(|shared| dir.is_in(shared)),
            Outside::Everything => true,
        };
        if is_reachable {
            return host.kind(dir) == Some(EntryKind::Dir);
        }
        self.view.has_dir(dir, host)
    }
}

/// LEVEL_0: only the working directory must exist.
pub(crate) fn nothing_hidden(policy: &Policy, facts: &HostFacts, host: &Host<'_>) -> Result<Seen> {
    let seen = Seen {
        view: Composition::default(),
        denied: Denied::default(),
        cwd: resolved_cwd(policy, facts, host)?,
        home: None,
        create_dirs: Vec::new(),
        planted: PlantedPlaces::default(),
        when_used: Vec::new(),
        notes: Vec::new(),
        routine_notes: Vec::new(),
        outside: Outside::Everything,
    };
    check_cwd(&seen, host)?;
    Ok(seen)
}

/// Combines grants and denials: as mounts, or with [`Outside::Shared`] as what Landlock alone should allow,
/// without mounts of our own.
pub(crate) fn see(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    outside: Outside,
    rest: RestOfHost,
) -> Result<Seen> {
    let PlanRequest { policy, facts, missing, policy_files, .. } = *request;
    let filesystem = &policy.filesystem;
    let is_minimal = policy.view == View::Minimal;
    let mut granter = Granter::new(facts, host);
    let (mut links, mut notes) = (links_on_the_way(facts, host), Vec::new());
    let mut when_used = Vec::new();
    let mut grants = granter.system(policy.mode);
    grants.extend(granter.resolver(policy.network.mode));
    if !is_minimal {
        if policy.mode == Mode::Static {
            let tree = granter.host_tree();
            grants.extend(tree.grants);
            links.extend(tree.links);
            notes.extend(tree.notes);
        }
        if rest == RestOfHost::WhenUsed {
            // The command stands in its working directory from the start.
            let cwd = resolved_cwd(policy, facts, host)?;
            let is_used =
                |grant: &mut Grant| grant.origin == Origin::Tree && !cwd.is_in(&grant.source);
            for grant in grants.extract_if(.., is_used) {
                when_used.push(grant.source);
                links.extend(grant.links);
            }
        }
        if filesystem.toolchains {
            for grant in granter.listed(lists::TOOLCHAINS, Origin::Toolchain) {
                // A variable such as JAVA_HOME or SSL_CERT_FILE names something that the system grants show
                // already.
                if grants.iter().any(|shown| grant.is_shown_by(shown)) {
                    links.extend(grant.links);
                    continue;
                }
                grants.push(match (grant.kind, outside) {
                    // Without mounts of our own there are no overlays.
                    (GrantKind::Overlay, Outside::Shared) => {
                        Grant { kind: GrantKind::ReadOnly, ..grant }
                    }
                    _ => grant,
                });
            }
        }
        grants.extend(cache_grants(request, &granter, outside, &mut notes));
    }
    let Project { root, tree, grants: project, mut seals, git_config, notes: about_project } =
        project::find(filesystem.project, policy.view, &granter);
    notes.extend(about_project);
    if !filesystem.protect_names {
        seals.extend(git_config);
    }
    let mut asked = granter.asked(filesystem, missing)?;
    notes.extend(asked.notes);
    if is_minimal && !project.is_empty() {
        put_in_workspace(&mut asked.grants, &root);
    }
    links.extend(own::links(host));
    let mut root_path = None;
    if let Some(text) = &filesystem.root_path {
        let contents = granter.root_path(text)?;
        root_path = contents.found;
        links.extend(contents.links);
        notes.extend(contents.note);
        grants.extend(contents.grants);
    }
    grants.extend(project);
    grants.extend(asked.grants);
    if filesystem.toolchains && !is_minimal {
        grants.extend(installed::grant(&request.command, &granter, &grants));
    }
    let planted = PlantedPlaces::of(&grants, tree.as_deref(), host);
    if let Some(Resolved { path, links, .. }) = root_path
        && let Some(link) = planted.first_out(&links, &path)
    {
        let link = link.place.clone();
        return Err(PlanError::PlantedLink { what: "rootPath", link, path });
    }
    let grants = planted.refuse(grants, &mut notes)?;
    seals.extend(policy_files::seals(policy_files, &grants, facts, host)?);

    let mut denied = deny(policy, &grants, facts, host, &mut notes)?;
    let mut routine_notes = Vec::new();
    let carried = if filesystem.toolchains && filesystem.hide_secrets && !is_minimal {
        let view = if outside == Outside::Absent { Copies::Carried } else { Copies::None };
        settings::collect(view, (&grants, &planted), &mut denied, facts, host, &mut routine_notes)
    } else {
        Vec::new()
    };
    let own = match outside {
        Outside::Absent => own::mounts(filesystem, policy.isolation_level, facts, &denied, host),
        Outside::Shared | Outside::Everything => PathMap::default(),
    };
    let home = is_minimal.then(|| PathBuf::from(MINIMAL_HOME));
    let private_home = home.as_deref().or_else(|| home_to_replace(&grants, host));
    let private_home = private_home.filter(|_| outside == Outside::Absent);
    let parts = Parts {
        own: with_home(own, private_home, filesystem.tmp_size),
        links,
        dirs: dirs(is_minimal || private_home.is_some(), host),
        grants,
        seals,
        technique: if outside == Outside::Absent { Technique::Mounts } else { Technique::Rules },
        facts,
        named_by_preset: request
            .preset_paths
            .iter()
            .filter_map(|text| resolved_path(text, facts, request.tree))
            .collect(),
        layer: request.layer,
        transaction_by: policy.filesystem.transaction_by,
    };
    let named = kept_read_only(&parts.grants);
    let own_targets: HashSet<PathBuf> = parts.own.keys().map(Path::to_owned).collect();
    let has_workspace = parts.grants.iter().any(|grant| grant.origin == Origin::Project);
    let mut view = compose(parts, &denied, host)?;
    view.frame_what_stands_on_tmpfs(&own_targets, |target| {
        // The rest of a private home belongs to the run.
        private_home.is_none_or(|home| !target.is_in(home))
            || named.iter().any(|named| target.is_in(named))
    });
    if outside == Outside::Absent {
        settings::place(carried, &mut view);
        if let Some(home) = private_home {
            settings::copy_settings(home, &mut view, host);
        }
    }

    let cwd = resolved_cwd(policy, facts, host)?;
    let cwd = match cwd.strip_prefix(&root) {
        Ok(rest) if is_minimal && has_workspace => join(Path::new(WORKSPACE), rest),
        _ => cwd,
    };
    let seen = Seen {
        view,
        denied,
        cwd,
        home,
        create_dirs: asked.create_dirs,
        planted,
        when_used,
        notes,
        routine_notes,
        outside,
    };
    check_cwd(&seen, host)?;
    Ok(seen)
}

/// The caches of build tools, as the policy wants them. One that cannot be kept apart from the host's is left out.
fn cache_grants(
    request: &PlanRequest<'_>,
    granter: &Granter<'_>,
    outside: Outside,
    notes: &mut Vec<String>,
) -> Vec<Grant> {
    let access = request.policy.filesystem.caches;
    if access == CacheAccess::Off {
        return Vec::new();
    }
    let mut grants = granter.listed(lists::CACHES, Origin::Cache);
    if access == CacheAccess::Host || grants.is_empty() {
        return grants;
    }
    let obstacle = match outside {
        // Without mounts of our own there are no overlays.
        Outside::Shared => Some("a run without namespaces cannot have them".to_owned()),
        Outside::Absent | Outside::Everything => caches::obstacle(request),
    };
    if let Some(obstacle) = obstacle {
        notes.push(format!(
            "the caches of build tools are empty: {obstacle}; --caches host gives the command the host's"
        ));
        return Vec::new();
    }
    grants.retain_mut(|grant| {
        grant.kind = GrantKind::OwnCache;
        let is_possible = grant.node == NodeKind::Dir && caches::fits(&grant.source);
        if !is_possible {
            notes.push(format!(
                "the cache {} cannot be kept apart and is empty",
                grant.source.display()
            ));
        }
        is_possible
    });
    grants
}

pub(crate) fn deny(
    policy: &Policy,
    grants: &[Grant],
    facts: &HostFacts,
    host: &Host<'_>,
    notes: &mut Vec<String>,
) -> Result<Denied> {
    let filesystem = &policy.filesystem;
    let granted: HashSet<&Path> = grants
        .iter()
        .filter(|grant| grant.origin != Origin::System)
        .map(|grant| grant.source.as_path())
        .collect();
    let mut asked = filesystem.denied_paths.clone();
    // Secrets that are added to requests outside must not be visible in the sandbox.
    asked.extend(policy.network.credentials.iter().filter_map(
        |credential| match &credential.from {
            SecretSource::File(path) => Some(path.clone()),
            SecretSource::Env(_) => None,
        },
    ));
    let mut denied = Denied::gather(&asked, filesystem.hide_secrets, &granted, facts, host)?;
    if filesystem.hide_secrets {
        let system = grants.iter().filter(|grant| grant.origin == Origin::System);
        let system: Vec<&Path> = system.map(|grant| grant.source.as_path()).collect();
        for home in homes_elsewhere(grants, facts, host) {
            denied.add_home(home);
        }
        let is_shown_anyway = |path: &Path| system.iter().any(|shown| path.is_in(shown));
        denied.follow_links(facts, host, |path| {
            let holds = |place: &Path| place.is_in(path);
            is_shown_anyway(path)
                || holds(&facts.cwd)
                || host.home().is_some_and(holds)
                || system.iter().any(|shown| holds(shown))
        });
        for path in credentials::look(&Scope::new(facts), host, is_shown_anyway) {
            if !is_asked(grants, &path) {
                denied.add_secret(&path, facts, host);
                notes.push(format!(
                    "{} seems to contain a credential and is hidden; show it with --ro",
                    path.display()
                ));
            }
        }
    }
    Ok(denied)
}

/// Static mode shows large parts of the host, and a bind mount may show a home directory, or a part of one, in
/// them. It is as private there as in its usual place. Paths that the user named are intended.
fn homes_elsewhere(grants: &[Grant], facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let trees = || grants.iter().filter(|grant| grant.origin == Origin::Tree);
    if trees().next().is_none() {
        return Vec::new();
    }
    let mounts = Mounts::new(&facts.mounts);
    let own = host.home().map(Path::to_owned);
    let homes = host.real_homes(&facts.homes).iter().cloned().chain(own);
    let is_shown = |alias: &Path| trees().any(|tree| alias.is_in(&tree.source));
    let is_named = |alias: &Path| {
        let mut asked = grants.iter().filter(|grant| grant.origin >= Origin::Cache);
        asked.any(|grant| alias.is_in(&grant.source) || grant.source.is_in(alias))
    };
    homes
        .filter(|home| home != Path::new("/"))
        .flat_map(|home| mounts.aliases(&home))
        .filter(|alias| is_shown(alias) && !is_named(alias))
        .collect()
}

fn is_asked(grants: &[Grant], path: &Path) -> bool {
    grants.iter().any(|grant| grant.origin == Origin::Asked && grant.source == path)
}

/// What was named explicitly, or would be writable if nothing in it had to be hidden.
fn kept_read_only(grants: &[Grant]) -> Vec<PathBuf> {
    let named = grants.iter().filter(|grant| grant.origin >= Origin::Cache);
    named.map(|grant| grant.target.clone()).collect()
}

/// Links that lead to the home directory and to the caller's `PWD`: programs use those names.
fn links_on_the_way(facts: &HostFacts, host: &Host<'_>) -> Vec<Link> {
    let resolved = |path: &Path| host.resolve(path).ok();
    let home = facts.home.as_deref().and_then(resolved);
    let stands = facts.env.get(OsStr::new("PWD")).map(Path::new).filter(|path| path.is_absolute());
    let stands = stands.and_then(resolved).filter(|found| found.path == facts.cwd);
    home.into_iter().chain(stands).flat_map(|found| found.links).collect()
}

/// The home directory exists even if nothing in it is visible.
fn dirs(is_there_anyway: bool, host: &Host<'_>) -> Vec<PathBuf> {
    if is_there_anyway { Vec::new() } else { host.home().map(Path::to_owned).into_iter().collect() }
}

/// If only granted paths are visible, the rest of the home directory is empty and private to the run. Tools
/// that create a cache or a history file there keep working, and their files are discarded.
fn home_to_replace<'host>(grants: &[Grant], host: &'host Host<'_>) -> Option<&'host Path> {
    let home = host.home()?;
    let is_granted = grants.iter().any(|grant| home.is_in(&grant.target));
    let is_own = own::OWN_AREAS.into_iter().any(|area| home.is_in(area));
    (!is_granted && !is_own && home != Path::new("/")).then_some(home)
}

/// A path in the project refers to the project's place in the view: `--ro .` should make it read-only, not show
/// it a second time.
fn put_in_workspace(asked: &mut [Grant], root: &Path) {
    for grant in asked {
        if let Ok(rest) = grant.source.strip_prefix(root) {
            grant.target = join(Path::new(WORKSPACE), rest);
        }
    }
}

fn with_home(
    mut own: PathMap<MountOp>,
    home: Option<&Path>,
    size: Option<u64>,
) -> PathMap<MountOp> {
    if let Some(home) = home {
        let target = home.to_owned();
        let op = MountOp::Tmpfs { target: target.clone(), mode: 0o700, size, exec: true };
        own.insert(target, op);
    }
    own
}

fn wanted_cwd(policy: &Policy, facts: &HostFacts) -> Result<PathBuf> {
    match &policy.process.cwd {
        Some(text) => Scope::new(facts).typed(text),
        None => Ok(facts.cwd.clone()),
    }
}

/// With links resolved, if it exists.
pub(crate) fn resolved_cwd(policy: &Policy, facts: &HostFacts, host: &Host<'_>) -> Result<PathBuf> {
    let cwd = wanted_cwd(policy, facts)?;
    Ok(host.resolve(&cwd).map_or(cwd, |found| found.path))
}

/// PROC-8: the command must be able to enter its working directory.
pub(crate) fn check_cwd(seen: &Seen, host: &Host<'_>) -> Result<()> {
    if seen.has_dir(&seen.cwd, host) {
        return Ok(());
    }
    let path = seen.cwd.clone();
    Err(match host.resolve(&path) {
        Ok(_) => PlanError::WorkingDirectory { path },
        Err(_) => PlanError::NoWorkingDirectory { path },
    })
}
