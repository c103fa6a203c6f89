//! Grants: what may be in the view, where it comes from and who asked for it.
//!
//! A grant names a real path of the host, with links resolved. This module removes nothing; `compose` hides the
//! denied paths.

use crate::denied::listed_paths;
use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts, HostMount};
use crate::host::{Host, Link, Resolved};
use crate::lists::{self, Listed};
use crate::model::{NodeKind, Owner};
use crate::path_text::PathText as _;
use crate::paths::Scope;
use crate::request::IfMissing;
use crate::{locate, own};
use palisade_policy::model::{Filesystem, Mode, NetworkMode, ProjectAccess};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantKind {
    ReadOnly,
    ReadWrite,
    /// Changes are discarded.
    Overlay,
    /// Changes are kept for later sandboxes of the project.
    OwnCache,
    /// Changes are kept apart (LIFE-2).
    Transaction,
}

/// The name of [`Origin::Toolchain`] in the plan.
pub(crate) const TOOLCHAIN: &str = "toolchain";

/// The name of [`Origin::Tree`] in the plan.
pub(crate) const HOST_TREE: &str = "host tree";

/// Why something is in the view. A later origin overrides an earlier one at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    RootPath,
    /// Static mode: the host's tree.
    Tree,
    System,
    Toolchain,
    Cache,
    Git,
    Project,
    /// `--ro`, `--rw`, `--overlay` or their keys in a policy.
    Asked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) node: NodeKind,
    pub(crate) kind: GrantKind,
    pub(crate) exec: bool,
    pub(crate) origin: Origin,
    /// Only if root starts the run.
    pub(crate) idmap: Option<Owner>,
    pub(crate) links: Vec<Link>,
}

impl Grant {
    /// Whether a grant of the system already shows the same path with at least the same rights.
    pub(crate) fn is_shown_by(&self, other: &Self) -> bool {
        self.kind == GrantKind::ReadOnly
            && other.origin == Origin::System
            && other.source == other.target
            && self.source.is_in(&other.source)
            && (other.exec || !self.exec)
    }

    /// For display, as in the plan's table.
    pub(crate) fn why(&self) -> &'static str {
        match (self.origin, self.kind) {
            (Origin::RootPath, _) => "rootPath",
            (Origin::Tree, _) => HOST_TREE,
            (Origin::System, _) => "system",
            (Origin::Toolchain, _) => TOOLCHAIN,
            (Origin::Cache, _) => "cache",
            (Origin::Git, _) => "git directory of the project",
            (Origin::Project, _) => "project",
            (Origin::Asked, GrantKind::ReadOnly) => "--ro",
            (Origin::Asked, GrantKind::ReadWrite) => "--rw",
            (Origin::Asked, GrantKind::Overlay | GrantKind::OwnCache) => "--overlay",
            (Origin::Asked, GrantKind::Transaction) => "--transaction",
        }
    }
}

/// Creates grants for one caller.
pub(crate) struct Granter<'a> {
    pub(crate) facts: &'a HostFacts,
    pub(crate) host: &'a Host<'a>,
    pub(crate) scope: Scope<'a>,
    /// Resolved paths of the system list. They are never id-mapped, because that would make root's own files
    /// readable.
    pub(crate) system: Vec<PathBuf>,
}

/// What the user asked for, and the directories that must be created for it first.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) grants: Vec<Grant>,
    pub(crate) create_dirs: Vec<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// The contents of `rootPath`, which appear at `/`.
#[derive(Debug, Default)]
pub(crate) struct RootPath {
    pub(crate) found: Option<Resolved>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) links: Vec<Link>,
    pub(crate) note: Option<String>,
}

/// Static mode: what is visible of the host beyond the lists.
#[derive(Debug, Default)]
pub(crate) struct HostTree {
    pub(crate) grants: Vec<Grant>,
    pub(crate) links: Vec<Link>,
    pub(crate) notes: Vec<String>,
}

/// The maximum number of entries directly below the root; directories come first.
const MAX_TOP: usize = 64;
/// The mounts below a directory are copied with it at every start.
const MAX_MOUNTS_BELOW: usize = 64;

impl<'a> Granter<'a> {
    pub(crate) fn new(facts: &'a HostFacts, host: &'a Host<'a>) -> Self {
        Self { facts, host, scope: Scope::new(facts), system: Vec::new() }
    }

    /// The system list, and what static mode adds to it.
    pub(crate) fn system(&mut self, mode: Mode) -> Vec<Grant> {
        let mut grants = Vec::with_capacity(24);
        for listed in lists::SYSTEM {
            if listed.has("static") && mode != Mode::Static {
                continue;
            }
            let path = Path::new(listed.name);
            let origin = if listed.has("static") { Origin::Tree } else { Origin::System };
            if let Ok(found) = self.host.resolve(path) {
                grants.extend(self.shipped(found, listed.has("exec"), origin));
            }
        }
        self.system = grants.iter().map(|grant| grant.source.clone()).collect();
        grants
    }

    /// The file with the host's name servers, if it is in `/run`, which is private to the sandbox.
    pub(crate) fn resolver(&self, network: NetworkMode) -> Option<Grant> {
        let found = self.host.resolve(Path::new("/etc/resolv.conf")).ok()?;
        let needed = network == NetworkMode::Host && found.path.starts_with("/run");
        needed.then(|| self.shipped(found, false, Origin::System)).flatten()
    }

    /// Static mode: the other entries directly below the root, each as a whole. Excluded are directories that
    /// contain home directories or belong to the sandbox, and `/var`, of which the system list names the parts.
    /// They contain secrets and the mounts of containers.
    pub(crate) fn host_tree(&self) -> HostTree {
        let mut tree = HostTree::default();
        let accounts = self.host.real_homes(&self.facts.homes).iter().map(PathBuf::as_path);
        // The names directly below the root that lead to home directories.
        let above_homes: HashSet<&OsStr> =
            accounts.chain(self.host.home()).filter_map(|home| home.iter().nth(1)).collect();
        let mut children = self.host.children(Path::new("/")).to_vec();
        children.sort_by_key(|(_, kind)| *kind != EntryKind::Dir);
        for (name, kind) in children.into_iter().take(MAX_TOP) {
            let path = Path::new("/").join(&name);
            let is_own = own::OWN_AREAS.into_iter().any(|area| Path::new(area).is_in(&path));
            if is_own || own::holds_homes(&path) || self.system.contains(&path) {
                continue;
            }
            if kind == EntryKind::Symlink {
                let points_to = self.host.read_link(&path);
                tree.links.extend(points_to.map(|points_to| Link { place: path, points_to }));
                continue;
            }
            if let Some(why) = self.why_not_whole(&path, above_homes.contains(name.as_os_str())) {
                tree.notes.push(format!(
                    "{} is not in the view: {why}; name what you need with --ro",
                    path.display()
                ));
                continue;
            }
            let found = Resolved { path, kind, links: Vec::new() };
            tree.grants.extend(self.shipped(found, true, Origin::Tree));
        }
        tree
    }

    fn why_not_whole(&self, path: &Path, holds_homes: bool) -> Option<&'static str> {
        let is_below = |mount: &&HostMount| mount.mount_point.is_in(path);
        if holds_homes {
            Some("it contains home directories")
        } else if self.facts.mounts.iter().filter(is_below).nth(MAX_MOUNTS_BELOW).is_some() {
            Some("too much is mounted below it")
        } else {
            None
        }
    }

    /// Grants for the toolchains or caches that exist.
    pub(crate) fn listed(&self, list: &[Listed], origin: Origin) -> Vec<Grant> {
        let mut grants = Vec::new();
        for listed in list {
            let below_home = listed.name.strip_prefix("~/").filter(|name| !name.ends_with('*'));
            if below_home.is_some_and(|name| self.host.missing_in(name).is_some()) {
                continue;
            }
            for path in listed_paths(listed, &self.scope, self.host) {
                if let Ok(found) = self.host.resolve(&path)
                    && Some(found.path.as_path()) != self.host.home()
                {
                    let grant = self.shipped(found, listed.has("exec"), origin);
                    grants.extend(grant.map(|grant| match listed.has("overlay") {
                        true if grant.node == NodeKind::Dir => {
                            Grant { kind: GrantKind::Overlay, ..grant }
                        }
                        _ => grant,
                    }));
                }
            }
        }
        grants
    }

    /// The contents of `rootPath`, at `/`.
    pub(crate) fn root_path(&self, text: &str) -> Result<RootPath> {
        let path = self.scope.typed(text)?;
        let mut contents = RootPath::default();
        let Ok(found) = self.host.resolve(&path) else {
            contents.note = Some(format!(
                "rootPath {} does not exist: nothing is added from it",
                path.display()
            ));
            return Ok(contents);
        };
        if found.kind != EntryKind::Dir {
            return Err(PlanError::NotADirectory { what: "rootPath", path });
        }
        for (name, kind) in self.host.children(&found.path).iter() {
            let (child, kind) = (found.path.join(name), *kind);
            let place = Path::new("/").join(name);
            if kind == EntryKind::Symlink {
                let points_to = self.host.read_link(&child);
                contents.links.extend(points_to.map(|points_to| Link { place, points_to }));
                continue;
            }
            let child = Resolved { path: child, kind, links: Vec::new() };
            let grant = self.shipped(child, true, Origin::RootPath);
            contents.grants.extend(grant.map(|grant| Grant { target: place, ..grant }));
        }
        contents.found = Some(found);
        Ok(contents)
    }

    /// `--ro`, `--rw`, `--overlay`.
    pub(crate) fn asked(&self, filesystem: &Filesystem, missing: IfMissing) -> Result<Asked> {
        let mut asked = Asked::default();
        for text in &filesystem.read_only_paths {
            match self.existing(text, GrantKind::ReadOnly, "--ro") {
                Ok(grant) => asked.grants.push(grant),
                Err(PlanError::Missing { path, .. }) if missing == IfMissing::IsNoted => {
                    // If the command may write there, it could create what should stay read-only.
                    if self.may_write(&path, filesystem)? {
                        return Err(PlanError::CouldBeMade { path });
                    }
                    asked.notes.push(format!(
                        "{} should be readable (readOnlyPaths) but does not exist",
                        path.display()
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        for text in &filesystem.overlay_paths {
            let grant = self.existing(text, GrantKind::Overlay, "--overlay")?;
            if grant.node != NodeKind::Dir {
                let path = grant.source;
                return Err(PlanError::NotADirectory { what: "--overlay", path });
            }
            asked.grants.push(grant);
        }
        for text in &filesystem.read_write_paths {
            let path = self.scope.typed(text)?;
            match self.host.resolve(&path) {
                Ok(found) => asked.grants.push(self.grant(found, GrantKind::ReadWrite, "--rw")?),
                Err(missing) => {
                    let Some(created) = missing.place() else {
                        let parent = missing.parent;
                        return Err(PlanError::Missing { what: "--rw", path, parent });
                    };
                    let found = Resolved {
                        path: created.clone(),
                        kind: EntryKind::Dir,
                        links: missing.links,
                    };
                    let mut grant = self.grant(found, GrantKind::ReadWrite, "--rw")?;
                    // The caller creates it, so the caller owns it.
                    grant.idmap = grant.idmap.map(|_| self.caller());
                    asked.grants.push(grant);
                    asked.create_dirs.push(created);
                }
            }
        }
        Ok(asked)
    }

    fn may_write(&self, path: &Path, filesystem: &Filesystem) -> Result<bool> {
        let project = locate::root_of(self.facts, self.host);
        if filesystem.project == ProjectAccess::ReadWrite && path.starts_with(project) {
            return Ok(true);
        }
        for text in &filesystem.read_write_paths {
            if path.starts_with(self.scope.typed(text)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A grant of our own for an existing path; `None` for sockets, pipes and devices.
    pub(crate) fn shipped(&self, found: Resolved, exec: bool, origin: Origin) -> Option<Grant> {
        let kind = match origin {
            Origin::Cache | Origin::Project => GrantKind::ReadWrite,
            _ => GrantKind::ReadOnly,
        };
        // Reading a system directory needs no mapping, and a mapping would make root's files readable.
        let mapped = match origin {
            Origin::System | Origin::Tree | Origin::RootPath => false,
            _ => kind == GrantKind::ReadWrite || !self.touches_system(&found.path),
        };
        let idmap = if mapped { self.idmap(&found.path) } else { None };
        let node = node_kind(found.kind)?;
        let Resolved { path, links, .. } = found;
        Some(Grant { target: path.clone(), source: path, node, kind, exec, origin, idmap, links })
    }

    fn existing(&self, text: &str, kind: GrantKind, what: &'static str) -> Result<Grant> {
        let path = self.scope.typed(text)?;
        match self.host.resolve(&path) {
            Ok(found) => self.grant(found, kind, what),
            Err(missing) => Err(PlanError::Missing { what, path, parent: missing.parent }),
        }
    }

    /// A grant for something that a person or a caller named.
    pub(crate) fn grant(
        &self,
        found: Resolved,
        kind: GrantKind,
        what: &'static str,
    ) -> Result<Grant> {
        let path = found.path.clone();
        let idmap = match kind {
            GrantKind::ReadOnly | GrantKind::Overlay if self.touches_system(&path) => None,
            _ => self.idmap(&path),
        };
        let grant = self.shipped(found, true, Origin::Asked);
        grant.map(|grant| Grant { kind, idmap, ..grant }).ok_or(PlanError::NotAFile { what, path })
    }

    /// The same for a socket or a pipe. A device cannot be opened where it is shown: no mount of ours has devices.
    pub(crate) fn special(&self, found: Resolved, kind: GrantKind) -> Grant {
        let Resolved { path, links, .. } = found;
        let (node, origin) = (NodeKind::File, Origin::Asked);
        let idmap = self.idmap(&path);
        let target = path.clone();
        Grant { source: path, target, node, kind, exec: false, origin, idmap, links }
    }

    fn touches_system(&self, path: &Path) -> bool {
        self.system.iter().any(|system| system.is_in(path) || path.is_in(system))
    }

    fn idmap(&self, path: &Path) -> Option<Owner> {
        if self.facts.uid != 0 {
            return None;
        }
        Some(self.host.owner(path).unwrap_or_else(|| self.caller()))
    }

    fn caller(&self) -> Owner {
        Owner { uid: self.facts.uid, gid: self.facts.gid }
    }
}

fn node_kind(kind: EntryKind) -> Option<NodeKind> {
    match kind {
        EntryKind::Dir => Some(NodeKind::Dir),
        EntryKind::File => Some(NodeKind::File),
        EntryKind::Symlink | EntryKind::Other => None,
    }
}
