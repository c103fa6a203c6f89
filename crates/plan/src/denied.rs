//! What must not be in the view, at every place where the host shows it.
//!
//! A name is denied together with what it links to and with its aliases through other mounts of the
//! same file system (F24). Never decides what to do about a denied path: that is the view's part.

use crate::error::PlanError;
use crate::facts::{HostFacts, HostMount};
use crate::host::{Host, join};
use crate::lists::{self, Listed};
use crate::paths::Scope;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Why a path is denied, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Permissions hide it, as the command is never root: counts where a grant undoes that.
    RootOnly,
    /// On the shipped list; an explicit grant opens it.
    Secret,
    /// The product's own records; nothing opens them.
    Own,
    /// `deniedPaths`; nothing opens it.
    Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) class: Class,
    pub(crate) exists: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Denied {
    /// Ordered by components, so that all below a directory follow it.
    paths: BTreeMap<PathBuf, Denial>,
}

impl Denied {
    /// All that the policy and the product deny. `granted` tells which missing secrets matter: those
    /// that could appear in a directory that is shown.
    pub(crate) fn gather(
        asked: &[String],
        hide_secrets: bool,
        granted: &HashSet<&Path>,
        facts: &HostFacts,
        host: &Host<'_>,
    ) -> Result<Self, PlanError> {
        let scope = Scope::new(facts);
        let mounts = Mounts::new(&facts.mounts);
        let mut denied = Self::default();
        for text in asked {
            denied.add(&scope.typed(text)?, Class::Asked, host, &mounts);
        }
        for path in &facts.own_paths {
            denied.add(path, Class::Own, host, &mounts);
        }
        if hide_secrets {
            let relevance = Relevance::new(granted, &mounts, host);
            for listed in lists::SECRETS.iter().filter(|listed| relevance.has(listed)) {
                let class = if listed.has("root-only") { Class::RootOnly } else { Class::Secret };
                for path in listed_paths(listed, &scope, host) {
                    denied.add(&path, class, host, &mounts);
                }
            }
            for home in facts.homes.iter().filter(|home| is_shown(home, granted, host)) {
                let below =
                    lists::SECRETS.iter().filter_map(|listed| listed.name.strip_prefix("~/"));
                for name in below.filter(|name| !name.ends_with('*')) {
                    denied.add(&home.join(name), Class::Secret, host, &mounts);
                }
            }
        }
        Ok(denied)
    }

    /// Denies a path as a secret, with its aliases.
    pub(crate) fn add_secret(&mut self, path: &Path, facts: &HostFacts, host: &Host<'_>) {
        self.add(path, Class::Secret, host, &Mounts::new(&facts.mounts));
    }

    /// What denies this very path: itself or a directory above it. The strongest counts.
    pub(crate) fn above(&self, path: &Path) -> Option<(&Path, Class)> {
        path.ancestors()
            .filter_map(|above| self.paths.get_key_value(above))
            .map(|(above, denial)| (above.as_path(), denial.class))
            .max_by_key(|(_, class)| *class)
    }

    /// Whether the policy itself denies anything.
    pub(crate) fn has_asked(&self) -> bool {
        self.paths.values().any(|denial| denial.class == Class::Asked)
    }

    /// What denies exactly this path.
    pub(crate) fn at(&self, path: &Path) -> Option<Denial> {
        self.paths.get(path).copied()
    }

    /// Everything that is denied for such a reason.
    pub(crate) fn of(&self, is_meant: impl Fn(Class) -> bool) -> impl Iterator<Item = PathBuf> {
        let meant = self.paths.iter().filter(move |(_, denial)| is_meant(denial.class));
        meant.map(|(path, _)| path.clone())
    }

    /// What is denied strictly below a directory.
    pub(crate) fn below(&self, dir: &Path) -> impl Iterator<Item = (&Path, Denial)> {
        self.paths
            .range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded))
            .take_while(move |(path, _)| path.starts_with(dir))
            .map(|(path, denial)| (path.as_path(), *denial))
    }

    fn add(&mut self, path: &Path, class: Class, host: &Host<'_>, mounts: &Mounts<'_>) {
        for place in host.places(path) {
            let exists = host.exists(&place);
            for alias in mounts.aliases(&place) {
                self.insert(alias, Denial { class, exists });
            }
            self.insert(place, Denial { class, exists });
        }
    }

    fn insert(&mut self, path: PathBuf, denial: Denial) {
        let kept = self.paths.entry(path).or_insert(denial);
        kept.class = kept.class.max(denial.class);
        kept.exists |= denial.exists;
    }
}

/// A list's line as paths: one, or all that match its `*`.
pub(crate) fn listed_paths(listed: &Listed, scope: &Scope<'_>, host: &Host<'_>) -> Vec<PathBuf> {
    let Some(path) = scope.listed(listed.name) else { return Vec::new() };
    match (path.parent(), listed.name.strip_suffix('*')) {
        (Some(dir), Some(_)) => {
            let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
            host.matching(dir, name.strip_suffix(b"*").unwrap_or(name))
        }
        _ => vec![path],
    }
}

/// Whether a home directory that is not `$HOME` could show anything of its own.
fn is_shown(home: &Path, granted: &HashSet<&Path>, host: &Host<'_>) -> bool {
    Some(home) != host.home() && granted.iter().any(|source| home.starts_with(source))
}

/// Tells which secrets matter: one that does not exist only where it could appear in the view; one that
/// exists also through links and other mounts.
struct Relevance<'a> {
    granted: &'a HashSet<&'a Path>,
    mounts: &'a Mounts<'a>,
    host: &'a Host<'a>,
    /// Whether directories below the home directory are shown.
    shown: RefCell<HashMap<&'static str, bool>>,
}

impl<'a> Relevance<'a> {
    fn new(granted: &'a HashSet<&'a Path>, mounts: &'a Mounts<'a>, host: &'a Host<'a>) -> Self {
        Self { granted, mounts, host, shown: RefCell::default() }
    }

    fn has(&self, listed: &Listed) -> bool {
        let name = listed.name.strip_suffix('*').unwrap_or(listed.name);
        if let Some(below_home) = name.strip_prefix("~/") {
            // A pattern has no name to look for but its directory's.
            let below_home = match below_home.rsplit_once('/') {
                _ if name == listed.name => below_home,
                Some((dir, _)) => dir,
                None => return true,
            };
            return self.host.missing_in(below_home).is_none_or(|dir| self.is_shown(dir));
        }
        if !name.starts_with('/') {
            return true;
        }
        // Compared as text: one denial too many does no harm here, and this runs at every start.
        let near = |grant: &&Path| {
            let grant = grant.as_os_str().as_encoded_bytes();
            grant.starts_with(name.as_bytes()) || name.as_bytes().starts_with(grant)
        };
        self.granted.iter().any(near) || (!listed.has("root-only") && self.mounts.has_aliases())
    }

    fn is_shown(&self, below_home: &'static str) -> bool {
        *self.shown.borrow_mut().entry(below_home).or_insert_with(|| {
            let dir = self.host.home().map(|home| join(home, Path::new(below_home)));
            dir.is_some_and(|dir| dir.ancestors().any(|above| self.granted.contains(above)))
        })
    }
}

/// The host's mounts, asked where else a path shows.
struct Mounts<'a> {
    all: &'a [HostMount],
    /// Those whose file system is mounted more than once.
    shared: Vec<&'a HostMount>,
}

impl<'a> Mounts<'a> {
    fn new(all: &'a [HostMount]) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::with_capacity(all.len());
        for mount in all {
            *counts.entry(&mount.device).or_default() += 1;
        }
        let is_shared =
            |mount: &&HostMount| counts.get(mount.device.as_str()).is_some_and(|n| *n > 1);
        Self { all, shared: all.iter().filter(is_shared).collect() }
    }

    fn has_aliases(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Other places of the same files: the path itself, and what is mounted below it.
    fn aliases(&self, path: &Path) -> Vec<PathBuf> {
        if !self.has_aliases() {
            return Vec::new();
        }
        let covering = self
            .all
            .iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            // The last one mounted at a place is the one that shows.
            .max_by_key(|mount| mount.mount_point.components().count());
        let below = self
            .all
            .iter()
            .filter(|mount| mount.mount_point.starts_with(path) && mount.mount_point != path);
        let own = covering.map(|mount| (mount, place_in(mount, path)));
        let mounted = below.map(|mount| (mount, mount.root.clone()));
        let mut aliases = Vec::new();
        for (mount, place) in own.into_iter().chain(mounted) {
            for other in self.shared.iter().filter(|other| other.device == mount.device) {
                let alias = if let Ok(rest) = place.strip_prefix(&other.root) {
                    join(&other.mount_point, rest)
                } else if other.root.starts_with(&place) {
                    // A part of what is denied, mounted elsewhere.
                    other.mount_point.clone()
                } else {
                    continue;
                };
                if !alias.starts_with(path) {
                    aliases.push(alias);
                }
            }
        }
        aliases
    }
}

/// Where in its file system a path lies.
fn place_in(mount: &HostMount, path: &Path) -> PathBuf {
    path.strip_prefix(&mount.mount_point)
        .map_or_else(|_| mount.root.clone(), |rest| join(&mount.root, rest))
}

#[cfg(test)]
#[path = "denied_tests.rs"]
mod tests;
