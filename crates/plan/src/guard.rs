//! Determines where names are guarded that the host would run later (FS-9), and what is guarded there in
//! addition to the shipped list.
//!
//! Only writable trees of the host are guarded: nobody else runs the files that are private to the run. This
//! module decides where names are guarded, never what a name means; `palisade-guard` does that.

use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts};
use crate::host::{Host, Resolved, join};
use crate::indirect::Indirect;
use crate::model::{Gate, Guard, MountAccess, MountOp};
use crate::own;
use crate::path_text::PathText as _;
use crate::paths::Scope;
use crate::request::PlanRequest;
use crate::{build_dirs, gate, git, indirect, listed, locate, policy_files, sourced, virtualenv};
use palisade_guard::{GuardedPath, MatchContext, Matcher};
use palisade_policy::model::Mode;
use std::path::{Path, PathBuf};

/// The guard, and notes for the user.
#[derive(Debug, Default)]
pub(crate) struct Guarded {
    pub(crate) guard: Option<Guard>,
    pub(crate) notes: Vec<String>,
}

/// Whether the view is built from mounts, or only from Landlock rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mounted {
    Yes,
    No,
}

pub(crate) fn choose(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    mounts: &[MountOp],
    mounted: Mounted,
) -> Result<Guarded> {
    let (filesystem, facts) = (&request.policy.filesystem, request.facts);
    let mut grounds = Trees::of(mounts);
    if mounted == Mounted::No {
        grounds.add_shared(host);
    }
    if grounds.0.is_empty() && !may_grant_later(request, mounted) {
        return Ok(Guarded::default());
    }
    if !filesystem.protect_names {
        let covered = listed::guarded(request.listed, host, |path| grounds.inside(path))?;
        if let Some(GuardedPath { path, .. }) = covered.into_iter().next() {
            return Err(PlanError::CouldBeMade { path });
        }
        let note = "names that the host would run later (git hooks, editor, agent and shell settings) \
                    can be written: they are not protected in this run";
        return Ok(Guarded { guard: None, notes: vec![note.to_owned()] });
    }
    if facts.landlock_abi == 0 {
        return Err(PlanError::NamesUnprotected);
    }
    let mut notes = Vec::new();
    let mut opened = Vec::new();
    // With nothing of the host to write to, they count when changes are applied.
    let unprotected = filesystem.unprotected_paths.iter().filter(|_| !grounds.0.is_empty());
    for text in unprotected {
        let path = grounds.named(&Scope::new(facts).typed(text)?, host)?;
        match grounds.inside(&path) {
            Some(inside) => opened.push(inside),
            None => notes.push(format!(
                "--allow-write {} has no effect: it is not in a writable directory of the host",
                path.display()
            )),
        }
    }
    let root = locate::root_of(facts, host);
    let top = host.children(&root);
    let inside = |path: &Path| grounds.inside(path);
    let Indirect { guarded: mut more, hooks } = indirect::guarded(&root, &top, host, inside);
    more.extend(virtualenv::guarded(&root, &top, virtualenv::active(facts), host, inside));
    more.extend(sourced::guarded(&root, &facts.cwd, &top, host, inside));
    more.extend(listed::guarded(request.listed, host, inside)?);
    more.extend(policy_files::guarded(request.policy_files, facts, host, inside));
    let trees: Vec<PathBuf> = grounds.0.iter().map(|tree| tree.target.clone()).collect();
    let surroundings = surroundings(mounts, &trees, mounted);
    let mut guard = Guard {
        islands: match mounted {
            Mounted::Yes => islands(mounts, &trees, &surroundings),
            Mounted::No => Vec::new(),
        },
        surroundings,
        homes: homes(facts, host, &grounds),
        stores: grounds
            .0
            .iter()
            .filter(|tree| tree.is_cache)
            .map(|tree| tree.target.clone())
            .collect(),
        limited: git::limited(&root, host)
            .into_iter()
            .filter(|limited| trees.contains(&limited.directory))
            .collect(),
        trees,
        opened,
        build_dirs: Vec::new(),
        more,
        hooks,
    };
    let found = build_dirs::choose(request, host, &guard, inside)?;
    guard.build_dirs = found.taken;
    notes.extend(found.notes);
    Ok(Guarded { guard: Some(guard), notes })
}

/// Whether a person may make something of the host writable while the command runs, though nothing is from the start. Over the gate's
/// file system creations are asked about, and the broker judges the names that are created. In static mode nobody is asked.
fn may_grant_later(request: &PlanRequest<'_>, mounted: Mounted) -> bool {
    mounted == Mounted::Yes
        && request.policy.mode == Mode::Dynamic
        && request.facts.landlock_abi > 0
        && request.policy.filesystem.protect_names
        && gate::serves_files(request.policy, request.facts)
}

impl Guard {
    /// The matcher that judges single paths.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(MatchContext {
            homes: self.homes.clone(),
            stores: self.stores.clone(),
            opened: self.not_guarded(),
            more: self.more.clone(),
        })
    }

    /// The same for paths that the user grants during a run, which may be in any home directory.
    pub fn matcher_for_grants(&self, gate: &Gate) -> Matcher {
        let mut homes = self.homes.clone();
        homes.extend(gate.homes.iter().chain(&gate.private_home).cloned());
        homes.sort_unstable();
        homes.dedup();
        Matcher::new(MatchContext {
            homes,
            stores: self.stores.clone(),
            opened: self.not_guarded(),
            more: self.more.clone(),
        })
    }

    /// The name on the list because of which a path of the host cannot be granted for writing, if any.
    pub fn keeps_from_grant(&self, gate: &Gate, path: &Path) -> Option<String> {
        let matcher = self.matcher_for_grants(gate);
        let hit = matcher.judge(Path::new("/"), path, &mut |_| true)?;
        Some(hit.name.to_owned())
    }

    fn not_guarded(&self) -> Vec<PathBuf> {
        self.opened.iter().chain(&self.build_dirs).cloned().collect()
    }

    /// Where Landlock must not let the command itself create or change anything.
    pub(crate) fn held_back(&self) -> Vec<PathBuf> {
        self.trees.iter().chain(&self.surroundings).cloned().collect()
    }
}

/// A tree of the host that is writable in the sandbox.
struct Tree {
    source: PathBuf,
    target: PathBuf,
    is_cache: bool,
}

struct Trees(Vec<Tree>);

impl Trees {
    fn of(mounts: &[MountOp]) -> Self {
        let mut trees = Vec::new();
        for op in mounts {
            if let MountOp::Bind { source, target, access: MountAccess::ReadWrite, why, .. } = op
                && !continues_what_it_stands_on(source, target, mounts)
            {
                let (source, target) = (source.clone(), target.clone());
                trees.push(Tree { source, target, is_cache: *why == "cache" });
            }
        }
        Self(trees)
    }

    /// Without its own mount view, the command can write to the host's shared directories.
    fn add_shared(&mut self, host: &Host<'_>) {
        for shared in own::SHARED_WITH_HOST {
            if let Ok(Resolved { path, kind: EntryKind::Dir, .. }) = host.resolve(Path::new(shared))
                && !self.0.iter().any(|tree| tree.target == path)
            {
                self.0.push(Tree { source: path.clone(), target: path, is_cache: false });
            }
        }
    }

    /// The path in the sandbox of a path of the host, if it is writable there.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let covering = self.0.iter().filter(|tree| path.is_in(&tree.source));
        let nearest = covering.max_by_key(|tree| tree.source.components().count())?;
        Some(join(&nearest.target, path.strip_prefix(&nearest.source).ok()?))
    }

    /// Resolves a path that the user opens for writing. It must not lead through a link that a command could
    /// have created.
    fn named(&self, path: &Path, host: &Host<'_>) -> Result<PathBuf> {
        const WHAT: &str = "--allow-write";
        let (path, links) = host.meant(path.to_owned(), WHAT)?;
        match links.into_iter().find(|link| self.inside(&link.place).is_some()) {
            Some(link) => Err(PlanError::PlantedLink { what: WHAT, link: link.place, path }),
            None => Ok(path),
        }
    }
}

/// A directory mounted onto itself in a writable tree is still part of that tree.
fn continues_what_it_stands_on(source: &Path, target: &Path, mounts: &[MountOp]) -> bool {
    let at = |path: &Path| mounts.iter().find(|op| op.target().is_same(path));
    match target.ancestors().skip(1).find_map(at) {
        Some(MountOp::Bind {
            source: above,
            target: place,
            access: MountAccess::ReadWrite,
            ..
        }) => source.strip_prefix(above).ok() == target.strip_prefix(place).ok(),
        _ => false,
    }
}

/// Mounts in a tree that do not belong to it: sealed, read-only, or private to the run. Writable overlays are private to
/// the run wherever they are, and Landlock gives the command all rights there, unless there is a tree in them: nothing in
/// them needs the broker.
fn islands(mounts: &[MountOp], trees: &[PathBuf], surroundings: &[PathBuf]) -> Vec<PathBuf> {
    let is_writable_bind =
        |op: &&MountOp| matches!(op, MountOp::Bind { access: MountAccess::ReadWrite, .. });
    let is_writable_overlay =
        |op: &MountOp| matches!(op, MountOp::Overlay { access: MountAccess::ReadWrite, .. });
    mounts
        .iter()
        .filter(|op| !is_writable_bind(op))
        .filter(|op| is_writable_overlay(op) || is_below_any(op.target(), trees))
        .map(|op| op.target().to_owned())
        .filter(|target| !surroundings.contains(target))
        .collect()
}

/// Writable mounts that are not guarded but contain a tree.
fn surroundings(mounts: &[MountOp], trees: &[PathBuf], mounted: Mounted) -> Vec<PathBuf> {
    let holds_a_tree =
        |place: &Path| trees.iter().any(|tree| tree.is_in(place) && !tree.is_same(place));
    let of_the_run = mounts.iter().filter(|op| {
        let is_writable = matches!(
            op,
            MountOp::Tmpfs { .. } | MountOp::Overlay { access: MountAccess::ReadWrite, .. }
        );
        is_writable && mounted == Mounted::Yes
    });
    of_the_run
        .map(MountOp::target)
        .filter(|place| holds_a_tree(place))
        .map(Path::to_owned)
        .collect()
}

fn is_below_any(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.is_in(tree) && !path.is_same(tree))
}

/// Home directories that contain a tree or are in one.
fn homes(facts: &HostFacts, host: &Host<'_>, trees: &Trees) -> Vec<PathBuf> {
    let touches = |home: &Path| {
        trees.0.iter().any(|tree| home.is_in(&tree.target) || tree.target.is_in(home))
    };
    let others = host.real_homes(&facts.homes).iter().cloned();
    let mut homes: Vec<PathBuf> =
        host.home().map(Path::to_owned).into_iter().chain(others).collect();
    homes.retain(|home| home != Path::new("/") && touches(home));
    homes.sort_unstable();
    homes.dedup();
    homes
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
