//! Compares two states of one session. Each is one upper layer with all of its changes: what is in neither of them is the
//! project's in both, and is not looked at.

use crate::changeset::{ChangeKind, ChangeSet};
use crate::contents::Located;
use crate::difference::{change, difference};
use crate::error::{ChangesError, Result};
use crate::hard_links::HardLinks;
use crate::layers::Layers;
use crate::listing::names_in;
use crate::paths::{MAX_PATH_BYTES, order};
use crate::renames;
use crate::scan::{MAX_CHANGES, MAX_DEPTH, beside_a_session};
use palisade_sys::{Errno, Result as SysResult};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// In [`Layers::states`].
const NOW: usize = 0;
const BEFORE: usize = 1;

/// What became of the first state of [`Layers::states`] in the second one.
pub fn compare(layers: &Layers) -> Result<ChangeSet> {
    beside_a_session(|| compare_once(layers))
}

fn compare_once(layers: &Layers) -> Result<ChangeSet> {
    let Pairs { pairs, too_deep, .. } = pairs(layers)?;
    let mut set = ChangeSet { too_deep, ..ChangeSet::default() };
    let mut hard_links = HardLinks::default();
    for Pair { path, before, now } in pairs {
        let kind = match (before, now) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Deleted),
            (Some(old), Some(new)) if old.found.kind != new.found.kind => {
                Some(ChangeKind::TypeChanged)
            }
            (Some(old), Some(new)) => difference(layers, &path, old, new)?,
        };
        if let Some(now) = now {
            hard_links.note(&path, kind, before, now);
        }
        if let Some(kind) = kind {
            set.changes.push(change(layers, path, kind, (before, now))?);
        }
    }
    hard_links.name(layers, &mut set)?;
    set.changes.sort_unstable_by(|one, other| order(&one.path, &other.path));
    set.renames = renames::find(layers, &set)?;
    Ok(set)
}

/// One path in both states, with where it comes from.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) path: PathBuf,
    pub(crate) before: Option<Located>,
    pub(crate) now: Option<Located>,
}

#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// Ordered by path: a directory comes before what is in it.
    pub(crate) pairs: Vec<Pair>,
    /// Directories of which nothing more is known.
    pub(crate) too_deep: Vec<PathBuf>,
    /// One of them that is in the second state: what is in it may have to come back.
    pub(crate) too_deep_now: Option<PathBuf>,
}

/// Every path that may differ.
pub(crate) fn pairs(layers: &Layers) -> Result<Pairs> {
    // A copy has all of the project.
    let below = layers.copied().is_none().then(|| layers.project());
    let mut found = Pairs::default();
    let mut pending = vec![Directory {
        path: PathBuf::new(),
        now: [NOW].into_iter().chain(below).collect(),
        before: [BEFORE].into_iter().chain(below).collect(),
    }];
    while let Some(directory) = pending.pop() {
        directory.visit(layers, &mut found, &mut pending)?;
        if found.pairs.len() > MAX_CHANGES {
            return Err(ChangesError::TooMany { limit: MAX_CHANGES });
        }
    }
    found.pairs.sort_unstable_by(|one, other| order(&one.path, &other.path));
    Ok(found)
}

/// A directory of either state, and the layers that each of them is merged from there.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    now: Vec<usize>,
    before: Vec<usize>,
}

impl Directory {
    fn visit(
        &self,
        layers: &Layers,
        found: &mut Pairs,
        pending: &mut Vec<Directory>,
    ) -> Result<()> {
        let mut names = BTreeSet::new();
        let now = self.open(layers, &self.now, &self.before, &mut names)?;
        let before = self.open(layers, &self.before, &self.now, &mut names)?;
        for name in names {
            let path = self.path.join(&name);
            if path.as_os_str().len() >= MAX_PATH_BYTES || path.iter().count() > MAX_DEPTH {
                found.too_deep.push(self.path.clone());
                if !self.now.is_empty() {
                    found.too_deep_now = Some(self.path.clone());
                }
                break;
            }
            let now = layers.stack(&now, &name, &path)?;
            let before = layers.stack(&before, &name, &path)?;
            let is_directory = |top: &Option<(usize, crate::entry::Found)>| {
                top.is_some_and(|(_, at)| at.is_directory())
            };
            let (is_now, was) = (is_directory(&now.top), is_directory(&before.top));
            let located = |(layer, found)| Located { layer, found };
            let pair = Pair {
                path: path.clone(),
                before: before.top.map(located),
                now: now.top.map(located),
            };
            let is_of_project =
                |at: &Option<Located>| at.is_some_and(|at| at.layer == layers.project());
            // The project's in both.
            if is_of_project(&pair.before) && is_of_project(&pair.now) {
                continue;
            }
            if pair.before.is_some() || pair.now.is_some() {
                found.pairs.push(pair);
            }
            if is_now || was {
                let merged = |is: bool, layers: Vec<usize>| if is { layers } else { Vec::new() };
                pending.push(Directory {
                    path,
                    now: merged(is_now, now.layers),
                    before: merged(was, before.layers),
                });
            }
        }
        Ok(())
    }

    /// The project's names count only where one state does not show them.
    fn open(
        &self,
        layers: &Layers,
        merged: &[usize],
        other: &[usize],
        names: &mut BTreeSet<OsString>,
    ) -> SysResult<Vec<(usize, OwnedFd)>> {
        let mut opened = Vec::new();
        for layer in merged {
            if *layer == layers.project() && other.contains(layer) {
                opened.push((*layer, layers.open_parent(*layer, &self.path)?));
                continue;
            }
            match layers.open_directory(*layer, &self.path) {
                // A directory of the host that we may not read stays unknown, and so does one on which something is mounted.
                Err(error)
                    if matches!(error.errno, Errno::ACCESS | Errno::XDEV)
                        && *layer == layers.project() => {}
                directory => {
                    let directory = directory?;
                    names.extend(names_in(&directory, &self.path)?);
                    opened.push((*layer, directory));
                }
            }
        }
        Ok(opened)
    }
}
