//! A view that the caller lists entry by entry, as the command line of bubblewrap does: nothing else of the host is shown, and nobody is
//! asked. What the policy denies and secrets are left out of it all the same, and what is always private to a sandbox (`/proc`, `/dev`, `/tmp` …)
//! stays so. This module turns entries into grants and steps; `compose` makes the view of them as of any others.

use crate::compose::{Parts, Technique, compose};
use crate::error::{PlanError, Result};
use crate::facts::EntryKind;
use crate::grant::{Grant, GrantKind, Granter};
use crate::host::{Host, Link, join};
use crate::listed_view::{IfSourceMissing, ListedAccess, ListedEntry, ListedView, Shown};
use crate::model::{MountOp, NodeKind};
use crate::own::{self, OWN_AREAS};
use crate::path_map::PathMap;
use crate::planted::PlantedPlaces;
use crate::policy_files;
use crate::request::PlanRequest;
use crate::see::{self, Outside, Seen};
use palisade_guard::GuardedPath;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// In errors.
const WHAT: &str = "--bind";
const PLACE: &str = "the listed place";
const WHY_GUARDED: &str = "the listed view covers this name";

/// What the entries come to on this host.
struct Listed {
    grants: Vec<Grant>,
    links: Vec<Link>,
    /// Steps on top of the grants, by their place.
    steps: PathMap<MountOp>,
}

pub(crate) fn see(request: &PlanRequest<'_>, view: &ListedView, host: &Host<'_>) -> Result<Seen> {
    let PlanRequest { policy, facts, policy_files, .. } = *request;
    let mut granter = Granter::new(facts, host);
    // Only so that it knows which paths are the system's.
    let _ = granter.system(policy.mode);
    let settled = settle(view, host)?;
    let Listed { mut grants, mut links, steps } = list(&settled, &granter)?;
    let program = program(request, &settled, &granter);
    let links_to_program = program.as_ref().map(|program| program.links.clone());
    grants.extend(program);
    let mut notes = Vec::new();
    // What is shown of the project is what the entries say, as with bubblewrap.
    let planted = PlantedPlaces::of(&grants, None, host);
    let grants = planted.refuse(grants, &mut notes)?;
    let seals = policy_files::seals(policy_files, &grants, facts, host)?;
    let denied = see::deny(policy, &grants, facts, host, &mut notes)?;
    let mut own = own::mounts(&policy.filesystem, policy.isolation_level, facts, &denied, host);
    own.extend(steps);
    links.extend(own::links(host));
    let own_places: HashSet<PathBuf> = own.keys().map(Path::to_owned).collect();
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
        planted,
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

/// The names at which nothing may be made, although they are in a writable directory of the host and nothing is there to cover: by their
/// paths in the sandbox.
pub(crate) fn guarded(
    view: Option<&ListedView>,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<Vec<GuardedPath>> {
    let settled = view.map(|view| settle(view, host)).transpose()?.unwrap_or_default();
    let missing = settled.values().filter_map(|entry| match (&entry.shown, &entry.ground) {
        (Shown::Nothing, Ground::Host { path, kind: None }) => inside(path),
        _ => None,
    });
    Ok(missing.map(|path| GuardedPath { path, why: WHY_GUARDED }).collect())
}

/// An entry that no later one covers.
#[derive(Debug)]
struct Settled {
    shown: Shown,
    ground: Ground,
}

/// What is at a place before its own entry comes there.
#[derive(Debug, PartialEq, Eq)]
enum Ground {
    /// A part of the host: its path there, without links, and what it is.
    Host { path: PathBuf, kind: Option<EntryKind> },
    /// A file system of the run's own, in which names can be made.
    Own,
}

/// The entries that are not covered by a later one, by their places without links.
fn settle(view: &ListedView, host: &Host<'_>) -> Result<PathMap<Settled>> {
    let mut settled: PathMap<Settled> = PathMap::default();
    for ListedEntry { place, shown } in &view.entries {
        let (place, ground) = ground(place, &settled, host)?;
        match shown {
            Shown::Directory { .. } if settled.contains_key(&place) => continue,
            Shown::Directory { .. } | Shown::Link { .. } => {}
            _ => settled.retain(|earlier, _| !earlier.starts_with(&place)),
        }
        let is_missing = matches!(ground, Ground::Host { kind: None, .. });
        let covers_nothing = match shown {
            Shown::Host { source, .. } => covers_with_nothing(source, &place, is_missing, host),
            // Empty, and stays so.
            Shown::Private { is_read_only, .. } => *is_read_only && is_missing,
            _ => false,
        };
        let shown = if covers_nothing { Shown::Nothing } else { shown.clone() };
        settled.insert(place, Settled { shown, ground });
    }
    Ok(settled)
}

/// Whether an entry only keeps something from being seen or made: the null device or an empty directory in the place of something else.
fn covers_with_nothing(source: &Path, place: &Path, is_missing: bool, host: &Host<'_>) -> bool {
    let is_empty = || host.kind(source) == Some(EntryKind::Dir) && host.children(source).is_empty();
    source != place && (source == Path::new("/dev/null") || is_missing && is_empty())
}

/// What is at a place, and the place itself: where a link of the host leads on the way to it.
fn ground(place: &Path, settled: &PathMap<Settled>, host: &Host<'_>) -> Result<(PathBuf, Ground)> {
    for above in place.ancestors().skip(1) {
        let is_own = OWN_AREAS.into_iter().any(|area| above == Path::new(area));
        match settled.get(above).map(|entry| &entry.shown) {
            Some(Shown::Host { source, .. }) if !is_own || source != above => {
                let rest = place.strip_prefix(above).unwrap_or(place);
                return on_host(place, (above, source), rest, host);
            }
            Some(Shown::Directory { .. } | Shown::Link { .. }) => {}
            Some(_) => return Ok((place.to_owned(), Ground::Own)),
            None if is_own => return Ok((place.to_owned(), Ground::Own)),
            None => {}
        }
    }
    Ok((place.to_owned(), Ground::Own))
}

fn on_host(
    place: &Path,
    (above, source): (&Path, &Path),
    rest: &Path,
    host: &Host<'_>,
) -> Result<(PathBuf, Ground)> {
    let root = host.resolve(source).map_or_else(|_| source.to_owned(), |found| found.path);
    let (path, kind) = match host.resolve(&root.join(rest)) {
        Ok(found) => (found.path, Some(found.kind)),
        Err(missing) => match missing.place() {
            Some(path) => (path, None),
            None => {
                let (path, parent) = (place.to_owned(), missing.parent);
                return Err(PlanError::Missing { what: PLACE, path, parent });
            }
        },
    };
    // The same path as on the host: it is found wherever it leads.
    if above == root {
        return Ok((path.clone(), Ground::Host { path, kind }));
    }
    match path.strip_prefix(&root) {
        Ok(rest) => Ok((join(above, rest), Ground::Host { path, kind })),
        Err(_) => Err(PlanError::LeadsElsewhere { place: place.to_owned(), path }),
    }
}

fn list(settled: &PathMap<Settled>, granter: &Granter<'_>) -> Result<Listed> {
    let host = granter.host;
    let mut listed = Listed { grants: Vec::new(), links: Vec::new(), steps: PathMap::default() };
    for (place, Settled { shown, ground }) in settled.iter() {
        let is_missing = matches!(ground, Ground::Host { kind: None, .. });
        let target = place.to_owned();
        let needs_a_place = match shown {
            Shown::Host { source, .. } => source != place,
            Shown::Private { .. } | Shown::File { .. } => true,
            Shown::Directory { .. } | Shown::Link { .. } | Shown::Nothing => false,
        };
        // Made on the host, it would stay there.
        if needs_a_place && is_missing {
            let parent = place.parent().unwrap_or(place).to_owned();
            return Err(PlanError::Missing { what: PLACE, path: target, parent });
        }
        let op = match shown {
            Shown::Host { source, access, if_missing } => {
                let Some(grant) = grant(granter, (source, place), *access, *if_missing)? else {
                    continue;
                };
                if place == Path::new("/") && source == place {
                    let further = with_the_root(granter);
                    let not_said = |path: &&Path| !settled.contains_key(path);
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
                if matches!(ground, Ground::Host { kind: Some(_), .. }) {
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
            Shown::Nothing => match ground {
                Ground::Host { kind: Some(EntryKind::Dir), .. } => {
                    MountOp::Frame { target, mode: 0o000 }
                }
                Ground::Host { kind: Some(_), .. } => MountOp::Blank { target, optional: false },
                // The guard keeps it from being made.
                Ground::Host { kind: None, .. } => continue,
                Ground::Own => MountOp::File { target, content: String::new(), mode: 0o444 },
            },
        };
        listed.steps.insert(place.to_owned(), op);
    }
    Ok(listed)
}

/// The program that is to be run, where the whole host is listed: one beside a secret would otherwise be hidden with it.
fn program(
    request: &PlanRequest<'_>,
    settled: &PathMap<Settled>,
    granter: &Granter<'_>,
) -> Option<Grant> {
    let root = Path::new("/");
    let listed = settled.get(root).map(|entry| &entry.shown);
    let shows_all = matches!(listed, Some(Shown::Host { source, .. }) if source == root);
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
    // What belongs to the host's processes and devices is shown nowhere, and the whole host at its own place only.
    let private = ["/proc", "/dev", "/sys"].into_iter().find(|area| found.path.starts_with(area));
    let is_alias_of_all = found.path == Path::new("/") && !is_same;
    if let Some(area) = private.or(is_alias_of_all.then_some("/proc")) {
        return Err(PlanError::OwnArea { what: WHAT, path: source.to_owned(), area });
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
