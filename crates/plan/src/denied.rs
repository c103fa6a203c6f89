//! The paths that must not be visible, wherever the host shows them.
//!
//! A name is denied together with its link target and with its aliases through other mounts of the same file
//! system (F24). `compose` decides how a denied path is hidden.

use crate::aliases::Mounts;
use crate::error::Result;
use crate::facts::{EntryKind, HostFacts};
use crate::host::{Host, join};
use crate::lists::{self, Listed};
use crate::path_map::PathMap;
use crate::path_text::PathText as _;
use crate::paths::Scope;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Why a path is denied, from the weakest reason to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// File permissions hide it, because the command is never root. Matters where a grant maps ids.
    RootOnly,
    /// On the shipped list; an explicit grant makes it visible.
    Secret,
    /// Our own records; no grant makes them visible.
    Own,
    /// From `deniedPaths`; no grant makes it visible.
    Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) class: Class,
    pub(crate) exists: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Denied {
    /// Ordered by components, so that everything below a directory follows it.
    paths: PathMap<Denial>,
    /// The denied directories that contain secrets.
    directories: Vec<PathBuf>,
}

impl Denied {
    /// Collects everything that the policy and the product deny. `granted` determines which missing secrets
    /// matter: those that could appear in a visible directory.
    pub(crate) fn gather(
        asked: &[String],
        hide_secrets: bool,
        granted: &HashSet<&Path>,
        facts: &HostFacts,
        host: &Host<'_>,
    ) -> Result<Self> {
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
            denied.add_other_homes(granted, facts, host, &mounts);
        }
        Ok(denied)
    }

    /// Home directories other than `$HOME`. If something in one is granted, its secrets are hidden. If one only
    /// lies in a granted directory, it is hidden as a whole and not searched.
    fn add_other_homes(
        &mut self,
        granted: &HashSet<&Path>,
        facts: &HostFacts,
        host: &Host<'_>,
        mounts: &Mounts<'_>,
    ) {
        let text = |path: &'_ Path| path.as_os_str().to_owned();
        let above_grants: HashSet<_> = granted
            .iter()
            .copied()
            .chain(host.home())
            .flat_map(Path::ancestors)
            .map(text)
            .collect();
        let granted_text: HashSet<_> = granted.iter().copied().map(text).collect();
        for home in host.real_homes(&facts.homes) {
            if Some(home.as_path()) == host.home() {
                continue;
            }
            if above_grants.contains(home.as_os_str()) {
                self.add_secrets_of(home, granted, host, mounts);
            } else if home.ancestors().any(|above| granted_text.contains(above.as_os_str())) {
                let denial = Denial { class: Class::Secret, exists: true };
                for alias in mounts.aliases(home) {
                    self.insert(alias, denial);
                }
                self.insert(home.clone(), denial);
            }
        }
    }

    /// The listed names in a home directory that are in or above a grant.
    fn add_secrets_of(
        &mut self,
        home: &Path,
        granted: &HashSet<&Path>,
        host: &Host<'_>,
        mounts: &Mounts<'_>,
    ) {
        let below = lists::SECRETS.iter().filter_map(|listed| listed.name.strip_prefix("~/"));
        for name in below.filter(|name| !name.ends_with('*')) {
            let path = home.join(name);
            if granted.iter().any(|grant| path.is_in(grant) || grant.is_in(&path)) {
                self.add(&path, Class::Secret, host, mounts);
            }
        }
    }

    /// The targets of links in directories of secrets are secrets as well: `~/.ssh/id_rsa` may be a link to
    /// `~/keys/id_rsa`. Reads each existing directory once. Targets for which `is_shown` holds are not secrets:
    /// they are visible to everybody, or the command needs them.
    pub(crate) fn follow_links(
        &mut self,
        facts: &HostFacts,
        host: &Host<'_>,
        is_shown: impl Fn(&Path) -> bool,
    ) {
        let scope = Scope::new(facts);
        let settings: Vec<PathBuf> =
            lists::NOT_SECRET.iter().filter_map(|listed| scope.listed(listed.name)).collect();
        let mounts = Mounts::new(&facts.mounts);
        for directory in std::mem::take(&mut self.directories) {
            for link in host.links_in(&directory) {
                if settings.contains(&link) {
                    continue;
                }
                for place in host.places(&link).into_iter().skip(1).filter(|place| !is_shown(place))
                {
                    self.add(&place, Class::Secret, host, &mounts);
                }
            }
        }
        self.directories.clear();
    }

    /// Denies an alias of a home directory.
    pub(crate) fn add_home(&mut self, alias: PathBuf) {
        self.insert(alias, Denial { class: Class::Secret, exists: true });
    }

    /// Denies a path as a secret, with its aliases.
    pub(crate) fn add_secret(&mut self, path: &Path, facts: &HostFacts, host: &Host<'_>) {
        self.add(path, Class::Secret, host, &Mounts::new(&facts.mounts));
    }

    /// The strongest denial of this path or of a directory above it.
    pub(crate) fn above(&self, path: &Path) -> Option<(&Path, Class)> {
        path.ancestors()
            .filter_map(|above| self.paths.get_key_value(above))
            .map(|(above, denial)| (above, denial.class))
            .max_by_key(|(_, class)| *class)
    }

    /// Whether the policy itself denies anything.
    pub(crate) fn has_asked(&self) -> bool {
        self.paths.values().any(|denial| denial.class == Class::Asked)
    }

    /// The denial of exactly this path.
    pub(crate) fn at(&self, path: &Path) -> Option<Denial> {
        self.paths.get(path).copied()
    }

    /// All paths that are denied for such a reason.
    pub(crate) fn of(&self, is_meant: impl Fn(Class) -> bool) -> impl Iterator<Item = PathBuf> {
        let meant = self.paths.iter().filter(move |(_, denial)| is_meant(denial.class));
        meant.map(|(path, _)| path.to_owned())
    }

    /// The denied paths strictly below a directory.
    pub(crate) fn below(&self, dir: &Path) -> impl Iterator<Item = (&Path, Denial)> {
        self.paths
            .after(dir)
            .take_while(move |(path, _)| path.is_in(dir))
            .map(|(path, denial)| (path, *denial))
    }

    fn add(&mut self, path: &Path, class: Class, host: &Host<'_>, mounts: &Mounts<'_>) {
        for place in host.places(path) {
            let exists = host.exists(&place);
            if class == Class::Secret && exists && host.kind(&place) == Some(EntryKind::Dir) {
                self.directories.push(place.clone());
            }
            for alias in mounts.aliases(&place) {
                self.insert(alias, Denial { class, exists });
            }
            self.insert(place, Denial { class, exists });
        }
    }

    fn insert(&mut self, path: PathBuf, denial: Denial) {
        let kept = self.paths.get_or_insert(path, denial);
        kept.class = kept.class.max(denial.class);
        kept.exists |= denial.exists;
    }
}

/// The paths that a line of a list names: one, or all that match its `*`.
pub(crate) fn listed_paths(listed: &Listed, scope: &Scope<'_>, host: &Host<'_>) -> Vec<PathBuf> {
    let Some(path) = scope.listed(listed.name) else { return Vec::new() };
    let dir = if listed.name.ends_with('*') { path.parent() } else { None };
    let Some(dir) = dir else { return vec![path] };
    let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    host.matching(dir, name.strip_suffix(b"*").unwrap_or(name))
}

/// Determines which secrets matter: a missing one only where it could appear in the view, an existing one also
/// through links and other mounts.
struct Relevance<'a> {
    granted: &'a HashSet<&'a Path>,
    mounts: &'a Mounts<'a>,
    host: &'a Host<'a>,
    /// Whether directories below the home directory are visible.
    shown: RefCell<HashMap<&'static str, bool>>,
}

impl<'a> Relevance<'a> {
    fn new(granted: &'a HashSet<&'a Path>, mounts: &'a Mounts<'a>, host: &'a Host<'a>) -> Self {
        Self { granted, mounts, host, shown: RefCell::default() }
    }

    fn has(&self, listed: &Listed) -> bool {
        let name = listed.name.strip_suffix('*').unwrap_or(listed.name);
        if let Some(below_home) = name.strip_prefix("~/") {
            // For a pattern, only its directory can be looked up.
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
        // Compared as text: an unnecessary denial does no harm, and this runs at every start.
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

#[cfg(test)]
#[path = "denied_tests.rs"]
mod tests;
