//! A view that the caller lists entry by entry, as the command line of bubblewrap does: nothing else of the host is shown, and nobody is
//! asked. What the policy denies and secrets are left out of it all the same, and what is always private to a sandbox (`/proc`, `/dev`, `/tmp` …)
//! stays so. This module turns entries into grants and steps; `compose` makes the view of them as of any others.

use crate::compose::{Parts, Technique, compose};
use crate::error::{PlanError, Result};
use crate::facts::EntryKind;
use crate::grant::{Grant, GrantKind, Granter};
use crate::host::{Host, Link};
use crate::model::{MountOp, NodeKind};
use crate::own::{self, OWN_AREAS};
use crate::request::PlanRequest;
use crate::see::{self, Outside, Seen};
use crate::{planted, policy_files};
use palisade_guard::GuardedPath;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// In errors.
const WHAT: &str = "--bind";
const WHY_GUARDED: &str = "the listed view covers this name";

/// What the command sees, in the order in which it was said: what comes later covers what was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedView {
    pub entries: Vec<ListedEntry>,
}

/// One entry. Its place is an absolute path without `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub place: PathBuf,
    pub shown: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A file, directory or socket of the host.
    Host {
        source: PathBuf,
        access: ListedAccess,
        if_missing: IfSourceMissing,
    },
    /// A directory that is empty at first, and private to the run.
    Private {
        mode: u32,
        size: Option<u64>,
        is_read_only: bool,
    },
    /// A directory, where there is none.
    Directory {
        mode: u32,
    },
    Link {
        points_to: PathBuf,
    },
    /// A file with this content, read-only.
    File {
        content: String,
        mode: u32,
    },
    /// Nothing: what the host has there cannot be seen, and nothing can be made in its place.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedAccess {
    ReadOnly,
    ReadWrite,
    /// Looks writable; changes are discarded.
    Overlay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfSourceMissing {
    IsAnError,
    IsLeftOut,
}

/// What the entries come to on this host.
struct Listed {
    grants: Vec<Grant>,
    links: Vec<Link>,
    /// Steps on top of the grants, by their place.
    steps: BTreeMap<PathBuf, MountOp>,
}

pub(crate) fn see(request: &PlanRequest<'_>, view: &ListedView, host: &Host<'_>) -> Result<Seen> {
    let PlanRequest { policy, facts, policy_files, .. } = *request;
    let mut granter = Granter::new(facts, host);
    // Only so that it knows which paths are the system's.
    let _ = granter.system(policy.mode);
    let settled = settle(view, host);
    let Listed { mut grants, mut links, steps } = list(&settled, &granter)?;
    let program = program(request, &settled, &granter);
    let links_to_program = program.as_ref().map(|program| program.links.clone());
    grants.extend(program);
    let mut notes = Vec::new();
    let grants = planted::refuse(grants, &mut notes)?;
    let seals = policy_files::seals(policy_files, &grants, facts, host)?;
    let denied = see::deny(policy, &grants, facts, host, &mut notes)?;
    let mut own = own::mounts(&policy.filesystem, policy.isolation_level, facts, &denied, host);
    own.extend(steps);
    links.extend(own::links(host));
    let own_places: HashSet<PathBuf> = own.keys().cloned().collect();
    let parts = Parts {
        own,
        grants,
        links,
        dirs: Vec::new(),
        seals,
        technique: Technique::Mounts,
        facts,
        named_by_preset: Vec::new(),
        layer: request.layer,
        transaction_by: policy.filesystem.transaction_by,
    };
    let mut view = compose(parts, &denied, host)?;
    view.frame_what_stands_on_tmpfs(&own_places, |_| true);
    for link in links_to_program.into_iter().flatten() {
        view.add_link(link);
    }
    let mut seen = Seen {
        view,
        denied,
        cwd: see::resolved_cwd(policy, facts, host)?,
        home: None,
        create_dirs: Vec::new(),
        when_used: Vec::new(),
        notes,
        routine_notes: Vec::new(),
        outside: Outside::Absent,
    };
    // As bubblewrap does: one that was named must be there, and the caller's own need not.
    if policy.process.cwd.is_none() && !seen.has_dir(&seen.cwd, host) {
        seen.cwd = PathBuf::from("/");
    }
    see::check_cwd(&seen, host)?;
    Ok(seen)
}

/// The names at which nothing may be made, although they are in a writable directory of the host and nothing is there to cover.
pub(crate) fn guarded(
    view: Option<&ListedView>,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Vec<GuardedPath> {
    let settled = view.map(|view| settle(view, host)).unwrap_or_default();
    let missing = settled
        .iter()
        .filter(|(place, shown)| matches!(shown, Shown::Nothing) && host.kind(place).is_none());
    let inside = missing.filter_map(|(place, _)| inside(place));
    inside.map(|path| GuardedPath { path, why: WHY_GUARDED }).collect()
}

/// The entries that are not covered by a later one.
fn settle(view: &ListedView, host: &Host<'_>) -> BTreeMap<PathBuf, Shown> {
    let mut settled: BTreeMap<PathBuf, Shown> = BTreeMap::new();
    for ListedEntry { place, shown } in &view.entries {
        match shown {
            Shown::Directory { .. } if settled.contains_key(place) => continue,
            Shown::Directory { .. } | Shown::Link { .. } => {}
            _ => settled.retain(|earlier, _| !earlier.starts_with(place)),
        }
        let is_missing = is_missing_in_host(place, &settled, host);
        let covers_nothing = match shown {
            Shown::Host { source, .. } => covers_with_nothing(source, place, is_missing, host),
            // Empty, and stays so.
            Shown::Private { is_read_only, .. } => *is_read_only && is_missing,
            _ => false,
        };
        let shown = if covers_nothing { Shown::Nothing } else { shown.clone() };
        settled.insert(place.clone(), shown);
    }
    settled
}

/// Whether an entry only keeps something from being seen or made: the null device or an empty directory in the place of something else.
fn covers_with_nothing(source: &Path, place: &Path, is_missing: bool, host: &Host<'_>) -> bool {
    let is_empty = || host.kind(source) == Some(EntryKind::Dir) && host.children(source).is_empty();
    source != place && (source == Path::new("/dev/null") || is_missing && is_empty())
}

/// Whether a place is in what is shown of the host, and the host has nothing there on which something could be mounted.
fn is_missing_in_host(place: &Path, settled: &BTreeMap<PathBuf, Shown>, host: &Host<'_>) -> bool {
    for above in place.ancestors().skip(1) {
        let is_own = OWN_AREAS.into_iter().any(|area| above == Path::new(area));
        match settled.get(above) {
            // By another path, if it is shown there by another path.
            Some(Shown::Host { source, .. }) if !is_own || source != above => {
                let rest = place.strip_prefix(above).unwrap_or(place);
                return host.kind(&source.join(rest)).is_none();
            }
            Some(Shown::Directory { .. } | Shown::Link { .. }) => {}
            Some(_) => return false,
            None if is_own => return false,
            None => {}
        }
    }
    false
}

/// Whether the nearest entry above a place is one of the host.
fn is_within_host(place: &Path, settled: &BTreeMap<PathBuf, Shown>) -> bool {
    let above = place.ancestors().skip(1).find_map(|above| settled.get(above));
    matches!(above, Some(Shown::Host { .. }))
}

fn list(settled: &BTreeMap<PathBuf, Shown>, granter: &Granter<'_>) -> Result<Listed> {
    let host = granter.host;
    let mut listed = Listed { grants: Vec::new(), links: Vec::new(), steps: BTreeMap::new() };
    for (place, shown) in settled {
        let target = place.clone();
        let needs_a_place = match shown {
            Shown::Host { source, .. } => source != place,
            Shown::Private { .. } | Shown::File { .. } => true,
            Shown::Directory { .. } | Shown::Link { .. } | Shown::Nothing => false,
        };
        // Made on the host, it would stay there.
        if needs_a_place && is_missing_in_host(place, settled, host) {
            let parent = place.parent().unwrap_or(place).to_owned();
            return Err(PlanError::Missing { what: "the listed place", path: target, parent });
        }
        let op = match shown {
            Shown::Host { source, access, if_missing } => {
                let Some(grant) = grant(granter, (source, place), *access, *if_missing)? else {
                    continue;
                };
                if place == Path::new("/") && source == place {
                    let further = with_the_root(granter);
                    let not_said = |path: &&Path| !settled.contains_key(*path);
                    let found = further.filter(not_said).filter_map(|path| host.resolve(path).ok());
                    for found in found.collect::<Vec<_>>() {
                        listed.grants.push(granter.grant(found, GrantKind::ReadOnly, WHAT)?);
                    }
                }
                listed.grants.push(grant);
                continue;
            }
            // The root is a directory of our own in any case.
            Shown::Private { .. } | Shown::Directory { .. } if place == Path::new("/") => continue,
            Shown::Private { mode, is_read_only: true, .. } => {
                MountOp::Frame { target, mode: *mode }
            }
            Shown::Private { mode, size, is_read_only: false } => {
                MountOp::Tmpfs { target, mode: *mode, size: *size, exec: true }
            }
            Shown::Directory { mode } => {
                if host.kind(place).is_some() && is_within_host(place, settled) {
                    continue;
                }
                MountOp::Dir { target, mode: *mode }
            }
            Shown::Link { points_to } => {
                listed.links.push(Link { place: target, points_to: points_to.clone() });
                continue;
            }
            Shown::File { content, mode } => {
                MountOp::File { target, content: content.clone(), mode: *mode }
            }
            Shown::Nothing => match host.kind(place) {
                Some(EntryKind::Dir) => MountOp::Frame { target, mode: 0o000 },
                Some(_) => MountOp::Blank { target, optional: true },
                // The guard keeps it from being made.
                None => continue,
            },
        };
        listed.steps.insert(place.clone(), op);
    }
    Ok(listed)
}

/// The program that is to be run, where the whole host is listed: one beside a secret would otherwise be hidden with it.
fn program(
    request: &PlanRequest<'_>,
    settled: &BTreeMap<PathBuf, Shown>,
    granter: &Granter<'_>,
) -> Option<Grant> {
    let root = Path::new("/");
    let shows_all = matches!(settled.get(root), Some(Shown::Host { source, .. }) if source == root);
    let program = Path::new(request.command.first()?);
    let found =
        granter.host.resolve(program).ok().filter(|_| shows_all && program.is_absolute())?;
    let is_listed = settled.keys().any(|place| place != root && found.path.starts_with(place));
    let grant = granter.grant(found, GrantKind::ReadOnly, WHAT).ok()?;
    (!is_listed && grant.node == NodeKind::File).then_some(grant)
}

/// What a view of the whole host needs besides: as root, files in the home directory are read with its owner's rights; and a working directory
/// in a directory that is private to the sandbox is shown.
fn with_the_root<'a>(granter: &Granter<'a>) -> impl Iterator<Item = &'a Path> {
    let cwd = granter.facts.cwd.as_path();
    let is_in = |area: &Path| cwd.starts_with(area) && cwd != area;
    let is_private = ["/tmp", "/var/tmp", "/run"].into_iter().any(|area| is_in(Path::new(area)));
    let home = granter.host.home().filter(|home| *home != Path::new("/"));
    home.into_iter().chain(is_private.then_some(cwd))
}

fn grant(
    granter: &Granter<'_>,
    (source, place): (&Path, &Path),
    access: ListedAccess,
    if_missing: IfSourceMissing,
) -> Result<Option<Grant>> {
    let found = match (granter.host.resolve(source), if_missing) {
        (Ok(found), _) => found,
        (Err(_), IfSourceMissing::IsLeftOut) => return Ok(None),
        (Err(missing), IfSourceMissing::IsAnError) => {
            return Err(PlanError::Missing {
                what: WHAT,
                path: source.to_owned(),
                parent: missing.parent,
            });
        }
    };
    let is_same = source == place;
    // A device of ours is there already; others are never shown.
    if own::DEVICES.iter().any(|(device, ..)| place == Path::new(device)) && is_same {
        return Ok(None);
    }
    let kind = match access {
        ListedAccess::ReadOnly => GrantKind::ReadOnly,
        ListedAccess::ReadWrite => GrantKind::ReadWrite,
        ListedAccess::Overlay => GrantKind::Overlay,
    };
    let mut grant = match found.kind {
        EntryKind::Other => granter.special(found, kind),
        _ => granter.grant(found, kind, WHAT)?,
    };
    if !is_same {
        grant.target = place.to_owned();
        grant.links = Vec::new();
    }
    if grant.node == NodeKind::File && grant.kind == GrantKind::Overlay {
        return Err(PlanError::NotADirectory { what: "--overlay-src", path: source.to_owned() });
    }
    Ok(Some(grant))
}

#[cfg(test)]
#[path = "listed_tests.rs"]
mod tests;
