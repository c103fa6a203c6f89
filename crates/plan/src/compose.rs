//! Composes the mount view: grants minus denied paths, as mounts in a working order.
//!
//! Hidden means not bound. A directory that contains something denied is never bound and masked, because a
//! rename on the host detaches a mask. It becomes a directory of our own with its other children bound one by
//! one or, if there are many, an overlay in which the denied names are whiteouts: the cost of a start never
//! depends on how many files lie beside a secret. A writable directory cannot be split like that, so a denied
//! path in it is an error.

use crate::caches;
use crate::denied::{Class, Denial, Denied};
use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts, HostMount};
use crate::grant::{Grant, GrantKind, Origin};
use crate::host::{Host, Link};
use crate::model::{MountAccess, MountOp, NodeKind};
use crate::own::{self, OWN_AREAS};
use crate::path_map::PathMap;
use crate::path_text::PathText as _;
use crate::view::Composition;
use palisade_policy::model::{Approval, TransactionBy};
use std::path::{Path, PathBuf};

/// A directory with more children to show than this is not expanded: one overlay costs less.
const MAX_CHILDREN: usize = 64;
/// Bind mounts for expanded directories in one view. Each needs a descriptor while the view is built, and the
/// usual limit of a process is 1024.
const MAX_BINDS: usize = 400;
/// Each Landlock rule costs a system call, but no descriptor.
const MAX_RULES: usize = 2000;
/// The maximum number of host mounts below a directory that is shown as an overlay, because the overlay lacks
/// them.
const MAX_MOUNTS_WITHIN: usize = 8;

/// Everything that the view consists of.
pub(crate) struct Parts<'a> {
    pub(crate) own: PathMap<MountOp>,
    pub(crate) grants: Vec<Grant>,
    /// Links to recreate where their place is on our own root.
    pub(crate) links: Vec<Link>,
    /// Directories that must exist, even if empty.
    pub(crate) dirs: Vec<PathBuf>,
    /// Read-only in the sandbox, although the directory around them is writable.
    pub(crate) seals: Vec<PathBuf>,
    pub(crate) technique: Technique,
    pub(crate) facts: &'a HostFacts,
    /// Paths that a preset names, with links resolved.
    pub(crate) named_by_preset: Vec<PathBuf>,
    /// Where the changes of a transaction are kept.
    pub(crate) layer: &'a Path,
    pub(crate) transaction_by: TransactionBy,
}

/// How the view is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Technique {
    Mounts,
    /// Landlock rules. They support no overlays and cannot exclude anything below a directory.
    Rules,
}

pub(crate) fn compose(parts: Parts<'_>, denied: &Denied, host: &Host<'_>) -> Result<Composition> {
    // Only a path that is mounted from elsewhere can lack a mount point.
    let moves = parts.grants.iter().any(|grant| grant.source != grant.target);
    let (technique, facts, layer) = (parts.technique, parts.facts, parts.layer);
    let transaction_by = parts.transaction_by;
    let view = Composition::default();
    let named_by_preset = parts.named_by_preset;
    let mut composer = Composer {
        host,
        denied,
        moves,
        technique,
        facts,
        layer,
        transaction_by,
        named_by_preset,
        view,
        binds: 0,
    };
    let mut links = parts.links;
    let mut kept: PathMap<Grant> = PathMap::default();
    for (target, grant) in settle(parts.grants)? {
        links.extend(grant.links.iter().cloned());
        if composer.may_show(&grant)? && !composer.is_redundant(&grant, &kept) {
            composer.make_room(&target)?;
            composer.place(&grant)?;
            kept.insert(target, grant);
        }
    }
    for (target, op) in parts.own {
        composer.make_room(&target)?;
        composer.view.ops.insert(target, op);
    }
    for dir in parts.dirs {
        composer.ensure_dir(&dir);
    }
    for link in links {
        composer.recreate(link);
    }
    for target in parts.seals {
        composer.seal(target);
    }
    Ok(composer.view)
}

/// Keeps one grant for each target: the one with the strongest origin.
fn settle(grants: Vec<Grant>) -> Result<PathMap<Grant>> {
    let mut settled: PathMap<Grant> = PathMap::default();
    for grant in grants {
        let Some(other) = settled.get_mut(&grant.target) else {
            settled.insert(grant.target.clone(), grant);
            continue;
        };
        let both_asked = grant.origin == Origin::Asked && other.origin == Origin::Asked;
        if both_asked && grant.kind != other.kind {
            return Err(PlanError::GrantedTwice {
                path: grant.target.clone(),
                first: other.why(),
                second: grant.why(),
            });
        }
        if grant.origin > other.origin {
            let links = std::mem::take(&mut other.links);
            *other = grant;
            other.links.extend(links);
        } else {
            other.exec |= grant.exec && grant.origin == other.origin;
            other.links.extend(grant.links);
        }
    }
    Ok(settled)
}

/// Whether an expanded directory leaves out this path, so that it needs its own grant.
fn is_left_out(target: &Path, above: &Grant) -> bool {
    OWN_AREAS.into_iter().any(|area| Path::new(area).is_in(&above.target) && target.is_in(area))
}

struct Composer<'a> {
    host: &'a Host<'a>,
    denied: &'a Denied,
    /// Whether anything is mounted at another path than on the host.
    moves: bool,
    technique: Technique,
    facts: &'a HostFacts,
    layer: &'a Path,
    transaction_by: TransactionBy,
    named_by_preset: Vec<PathBuf>,
    view: Composition,
    binds: usize,
}

impl Composer<'_> {
    /// Whether a grant is possible despite own areas and denied paths above it.
    fn may_show(&mut self, grant: &Grant) -> Result<bool> {
        let asked = grant.origin == Origin::Asked;
        if let Some(area) = own::area_of_grant(&grant.target) {
            let already_private = matches!(area, "/tmp" | "/var/tmp" | "/run" | "/dev/shm");
            return match (asked, already_private && grant.kind != GrantKind::ReadOnly) {
                (true, true) => {
                    self.note(format!(
                        "{area} is private to the sandbox: writable, and discarded at the end"
                    ));
                    Ok(false)
                }
                (true, false) => {
                    Err(PlanError::OwnArea { what: grant.why(), path: grant.target.clone(), area })
                }
                (false, _) => Ok(false),
            };
        }
        let Some((denied, class)) = self.denied.above(&grant.source) else { return Ok(true) };
        let (what, path) = (grant.why(), grant.source.clone());
        match class {
            Class::Asked if asked => {
                Err(PlanError::Contradiction { what, path, denied: denied.to_owned() })
            }
            Class::Own if asked => Err(PlanError::OwnPath { what, path }),
            Class::Secret | Class::RootOnly if asked => {
                let what = if self.named_by_preset.contains(&path) { "the preset" } else { what };
                self.note(format!(
                    "{} is on the list of secrets ({}) and shown because {what} names it",
                    path.display(),
                    denied.display()
                ));
                let reason = format!("{what} {}", path.display());
                self.view.approvals.push(Approval { what: "secret-path".to_owned(), reason });
                Ok(true)
            }
            Class::RootOnly => Ok(true),
            Class::Asked | Class::Own | Class::Secret => {
                if grant.origin == Origin::Project {
                    let denied = denied.display();
                    self.note(format!("the project is not in the view: {denied} is denied"));
                }
                Ok(false)
            }
        }
    }

    /// Whether a grant further up already gives the same access.
    fn is_redundant(&self, grant: &Grant, kept: &PathMap<Grant>) -> bool {
        let above = grant.target.ancestors().skip(1).find_map(|above| kept.get(above));
        let Some(above) = above else { return false };
        if grant.target.strip_prefix(&above.target) != grant.source.strip_prefix(&above.source) {
            return false;
        }
        if self.denied.above(&grant.source).is_some() || is_left_out(&grant.target, above) {
            return false;
        }
        // A user who makes a directory writable means all of it, including the shipped entries.
        if above.kind != GrantKind::ReadOnly
            && above.origin > grant.origin
            && grant.origin <= Origin::Git
        {
            return true;
        }
        let tightens = grant.origin == Origin::System && above.exec && !grant.exec;
        above.kind == grant.kind
            && matches!(above.kind, GrantKind::ReadOnly | GrantKind::ReadWrite)
            && above.idmap == grant.idmap
            && (above.exec || !grant.exec)
            && !tightens
    }

    fn place(&mut self, grant: &Grant) -> Result<()> {
        let (source, target) = (&grant.source, &grant.target);
        match grant.kind {
            GrantKind::ReadOnly => self.place_read_only(source, target, grant.node, grant)?,
            GrantKind::ReadWrite => match self.obstacle(grant)? {
                None => self.bind(source, target, grant.node, grant),
                Some(denied) => {
                    self.note(format!(
                        "{} ({}) is read-only: {} is inside it and stays hidden",
                        target.display(),
                        grant.why(),
                        denied.display()
                    ));
                    let read_only = Grant { kind: GrantKind::ReadOnly, ..grant.clone() };
                    self.place_read_only(source, target, grant.node, &read_only)?;
                }
            },
            GrantKind::Overlay | GrantKind::OwnCache | GrantKind::Transaction => {
                self.refuse_own_area_inside(grant)?;
                self.overlay(source, target, grant);
            }
        }
        Ok(())
    }

    /// One overlay mount that hides the denied paths, whatever else is in the directory.
    fn overlay(&mut self, source: &Path, target: &Path, grant: &Grant) {
        let hidden = self
            .denied
            .below(source)
            .filter(|(path, denial)| self.could_show(path, *denial))
            .filter_map(|(path, _)| path.strip_prefix(source).ok().map(Path::to_owned))
            .collect();
        let access = match grant.kind {
            GrantKind::ReadOnly => MountAccess::ReadOnly,
            GrantKind::ReadWrite
            | GrantKind::Overlay
            | GrantKind::OwnCache
            | GrantKind::Transaction => MountAccess::ReadWrite,
        };
        let stack = (grant.kind == GrantKind::OwnCache)
            .then(|| caches::stack_of(source, self.host.home(), self.facts));
        let layer = (grant.kind == GrantKind::Transaction).then(|| self.layer.to_owned());
        let is_copied = layer.is_some() && self.must_be_copied(source);
        let op = MountOp::Overlay {
            lower: source.to_owned(),
            target: target.to_owned(),
            hidden,
            access,
            layer,
            is_copied,
            stack,
            exec: grant.exec,
            idmap: grant.idmap,
            why: grant.why(),
        };
        self.view.ops.insert(target.to_owned(), op);
    }

    /// Whether a transaction has a copy of the project in place of an overlay, which costs time and room: it says so.
    fn must_be_copied(&mut self, project: &Path) -> bool {
        let why = match self.transaction_by {
            TransactionBy::Overlay => None,
            TransactionBy::Copy => Some("as filesystem.transactionBy says".to_owned()),
            TransactionBy::Auto => {
                caches::obstacle_to_transaction(project, self.layer, self.facts, self.host)
            }
        };
        let Some(why) = why else { return false };
        self.note(format!("the transaction works in a copy of {}: {why}", project.display()));
        true
    }

    /// The denied path because of which a grant cannot be writable. For a grant that the user asked for, this
    /// is an error.
    fn obstacle(&mut self, grant: &Grant) -> Result<Option<PathBuf>> {
        self.refuse_own_area_inside(grant)?;
        let mut not_yet_there = Vec::new();
        for (path, denial) in self.denied.below(&grant.source) {
            match (denial.class, denial.exists) {
                // Our own files: if the command created one, programs outside would obey or trust it.
                (Class::Own, _) | (_, true) => {}
                (Class::Asked, false) => {
                    not_yet_there.push(path.to_owned());
                    continue;
                }
                (Class::Secret | Class::RootOnly, false) => continue,
            }
            if grant.origin != Origin::Asked {
                return Ok(Some(path.to_owned()));
            }
            return Err(PlanError::DeniedInsideWritable {
                what: grant.why(),
                path: grant.source.clone(),
                denied: path.to_owned(),
            });
        }
        for path in not_yet_there {
            self.note(format!(
                "{} is denied but does not exist; if it is created later inside the writable {}, it will be visible",
                path.display(),
                grant.source.display()
            ));
        }
        Ok(None)
    }

    fn refuse_own_area_inside(&self, grant: &Grant) -> Result<()> {
        match OWN_AREAS.into_iter().find(|area| Path::new(area).is_in(&grant.target)) {
            Some(area) => {
                Err(PlanError::OwnArea { what: grant.why(), path: grant.target.clone(), area })
            }
            None => Ok(()),
        }
    }

    fn place_read_only(
        &mut self,
        source: &Path,
        target: &Path,
        node: NodeKind,
        grant: &Grant,
    ) -> Result<()> {
        if node == NodeKind::Dir && self.must_expand(source, target, grant) {
            self.expand(source, target, grant)
        } else {
            self.bind(source, target, node, grant);
            Ok(())
        }
    }

    fn must_expand(&self, source: &Path, target: &Path, grant: &Grant) -> bool {
        OWN_AREAS.into_iter().any(|area| Path::new(area).is_in(target))
            || self.denied.below(source).any(|(path, denial)| {
                let counts = match denial.class {
                    Class::RootOnly => grant.idmap.is_some(),
                    // If its owner creates it later, that reveals nothing secret. It only matters that the
                    // command cannot create it.
                    Class::Own => denial.exists,
                    Class::Secret | Class::Asked => true,
                };
                counts
                    && (denial.exists || path.parent() == Some(source) || {
                        let next =
                            path.strip_prefix(source).ok().and_then(|rest| rest.iter().next());
                        next.is_some_and(|next| self.host.kind(&source.join(next)).is_some())
                    })
            })
    }

    /// Whether a denied path exists, or could appear in an existing directory.
    fn could_show(&self, path: &Path, denial: Denial) -> bool {
        denial.exists
            || path.parent().is_some_and(|dir| self.host.kind(dir) == Some(EntryKind::Dir))
    }

    /// A directory of our own with the children of the host's directory, except the denied ones.
    fn expand(&mut self, source: &Path, target: &Path, grant: &Grant) -> Result<()> {
        let children = self.host.children(source);
        let shown: Vec<_> = children
            .iter()
            .map(|(name, kind)| (source.join(name), target.join(name), *kind))
            .filter(|(source, target, _)| {
                let is_own = OWN_AREAS.into_iter().any(|area| target.is_same(area));
                !is_own && !self.is_hidden(source, grant)
            })
            .collect();
        let is_root = target == Path::new("/");
        let (most_here, most) = match self.technique {
            Technique::Mounts => (MAX_CHILDREN, MAX_BINDS),
            Technique::Rules => (MAX_RULES, MAX_RULES),
        };
        if self.binds + shown.len() > most || (shown.len() > most_here && !is_root) {
            return self.show_large(source, target, grant, shown.len());
        }
        self.make_dir(target);
        for (source, target, kind) in shown {
            match kind {
                EntryKind::Dir => self.place_read_only(&source, &target, NodeKind::Dir, grant)?,
                EntryKind::File => self.bind(&source, &target, NodeKind::File, grant),
                EntryKind::Symlink => {
                    if let Some(points_to) = self.host.read_link(&source) {
                        let op = MountOp::Symlink { target: target.clone(), points_to };
                        self.view.ops.insert(target, op);
                    }
                }
                // A socket accepts connections even through a read-only mount.
                EntryKind::Other => {}
            }
        }
        Ok(())
    }

    /// Handles a directory that would need too many mounts to expand.
    fn show_large(
        &mut self,
        source: &Path,
        target: &Path,
        grant: &Grant,
        children: usize,
    ) -> Result<()> {
        let holds_own_area = OWN_AREAS.into_iter().any(|area| Path::new(area).is_in(target));
        let is_within = |mount: &&HostMount| {
            mount.mount_point.is_in(source) && !mount.mount_point.is_same(source)
        };
        let within = self.facts.mounts.iter().filter(is_within).count();
        let can_overlay =
            self.technique == Technique::Mounts && !holds_own_area && within <= MAX_MOUNTS_WITHIN;
        if can_overlay {
            if within > 0 {
                self.note(format!(
                    "mounts on the host below {} are not visible: add them with --ro",
                    source.display()
                ));
            }
            self.overlay(source, target, grant);
            return Ok(());
        }
        let mut denied = self.denied.below(source).map(|(path, _)| path.to_owned());
        let denied = denied.next().unwrap_or_else(|| source.to_owned());
        if grant.origin == Origin::Asked {
            let (what, path) = (grant.why(), source.to_owned());
            return Err(PlanError::TooManyMounts { what, path, denied, children });
        }
        self.note(format!(
            "{} is left empty: {} in it is hidden, and its {children} other entries are too many to mount \
             one by one; name what you need with --ro",
            target.display(),
            denied.display()
        ));
        self.make_dir(target);
        Ok(())
    }

    /// Whether a child of an expanded directory is hidden. Its parents were checked before.
    fn is_hidden(&self, source: &Path, grant: &Grant) -> bool {
        self.denied
            .at(source)
            .is_some_and(|denial| denial.class > Class::RootOnly || grant.idmap.is_some())
    }

    fn bind(&mut self, source: &Path, target: &Path, kind: NodeKind, grant: &Grant) {
        self.binds += 1;
        let access = if grant.kind == GrantKind::ReadWrite {
            MountAccess::ReadWrite
        } else {
            MountAccess::ReadOnly
        };
        let op = MountOp::Bind {
            source: source.to_owned(),
            target: target.to_owned(),
            access,
            exec: grant.exec,
            kind,
            idmap: grant.idmap,
            may_vanish: source != grant.source,
            why: grant.why(),
        };
        self.view.ops.insert(target.to_owned(), op);
    }

    fn make_dir(&mut self, target: &Path) {
        if target != Path::new("/") {
            let op = MountOp::Dir { target: target.to_owned(), mode: 0o755 };
            self.view.ops.insert(target.to_owned(), op);
        }
    }

    /// A mount point in a bound tree must exist there. If it does not, the directories above it are expanded.
    fn make_room(&mut self, target: &Path) -> Result<()> {
        while self.moves
            && let Some((source, above, grant)) = self.bound_above(target)
        {
            let Ok(rest) = target.strip_prefix(&above) else { return Ok(()) };
            if self.host.kind(&source.join(rest)).is_some() {
                return Ok(());
            }
            self.view.ops.remove(&above);
            self.expand(&source, &above, &grant)?;
        }
        Ok(())
    }

    /// The read-only bind mount from another path that would contain the target.
    fn bound_above(&self, target: &Path) -> Option<(PathBuf, PathBuf, Grant)> {
        match self.view.standing_above(target)? {
            MountOp::Bind {
                source,
                target,
                access: MountAccess::ReadOnly,
                exec,
                kind,
                idmap,
                ..
            } if source != target => {
                let grant = Grant {
                    source: source.clone(),
                    target: target.clone(),
                    node: *kind,
                    kind: GrantKind::ReadOnly,
                    exec: *exec,
                    origin: Origin::RootPath,
                    idmap: *idmap,
                    links: Vec::new(),
                };
                Some((source.clone(), target.clone(), grant))
            }
            _ => None,
        }
    }

    fn ensure_dir(&mut self, dir: &Path) {
        if !self.view.has_dir(dir, self.host) {
            self.make_dir(dir);
        }
    }

    /// A bound tree contains its own links; elsewhere they are recreated.
    fn recreate(&mut self, Link { place, points_to }: Link) {
        let is_bound = matches!(
            self.view.standing_above(&place),
            Some(MountOp::Bind { .. } | MountOp::Overlay { .. })
        );
        if !is_bound && self.denied.above(&place).is_none() && !self.view.ops.contains_key(&place) {
            let op = MountOp::Symlink { target: place.clone(), points_to };
            self.view.ops.insert(place, op);
        }
    }

    fn seal(&mut self, target: PathBuf) {
        let Some(MountOp::Bind { access: MountAccess::ReadWrite, target: writable, .. }) =
            self.view.standing_above(&target)
        else {
            return;
        };
        if !self.view.ops.contains_key(&target) {
            self.pin(&target, &writable.clone());
            self.view.ops.insert(target.clone(), MountOp::Seal { target, optional: true });
        }
    }

    /// Bind-mounts every directory between a writable one and the sealed path onto itself. A mount point cannot
    /// be renamed, but a directory that contains one can be, and another could be put in its place.
    fn pin(&mut self, sealed: &Path, writable: &Path) {
        let between: Vec<PathBuf> = sealed
            .ancestors()
            .skip(1)
            .take_while(|above| *above != writable)
            .map(Path::to_owned)
            .collect();
        let Some(op @ MountOp::Bind { .. }) = self.view.ops.get(writable).cloned() else { return };
        for place in between {
            let mut pin = op.clone();
            if let MountOp::Bind { source, target, .. } = &mut pin {
                let Ok(rest) = place.strip_prefix(writable) else { continue };
                source.push(rest);
                target.clone_from(&place);
            }
            self.view.ops.insert(place, pin);
        }
    }

    fn note(&mut self, note: String) {
        self.view.notes.push(note);
    }
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
