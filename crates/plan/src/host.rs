//! The host's file tree with a cache. Resolves links itself.
//!
//! A directory in which many names are looked up is listed instead: one listing costs less than a dozen
//! lookups, and most names of the shipped lists do not exist.

use crate::error::PlanError;
use crate::facts::{EntryKind, HostTree, SMALL_FILE};
use crate::known::{KnownTree, Names, kind_of};
use crate::model::Located;
use crate::model::Owner;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The kernel's `MAXSYMLINKS`.
pub(crate) const MAX_LINKS: usize = 40;
/// Directories down to this depth below the home directory are listed instead of looked up name by name.
const LISTED_DEPTH: usize = 2;
/// How many names of a directory are examined for links.
const MAX_NAMES: usize = 1024;
/// A directory with more names is not listed to look for a few.
const FEW_NAMES: usize = 128;
/// Up to this many home directories in one directory are looked up by name.
const FEW_HOMES: usize = 4;

/// All names of a directory, and the listings of subdirectories that were needed.
#[derive(Debug)]
struct Listing {
    names: Names,
    dirs: RefCell<BTreeMap<OsString, Rc<Listing>>>,
}

pub(crate) struct Host<'a> {
    tree: KnownTree<'a>,
    /// Canonical. Without one, nothing is listed.
    home: Option<PathBuf>,
    /// Listed when it is first needed.
    home_listing: OnceCell<Rc<Listing>>,
    real_homes: OnceCell<Vec<PathBuf>>,
    /// Cached: without git, the search tries every marker in every directory above.
    pub(crate) project: OnceCell<Located>,
}

/// A link that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its own path, with all other links resolved.
    pub(crate) place: PathBuf,
    pub(crate) points_to: PathBuf,
}

/// A path with all links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) path: PathBuf,
    pub(crate) kind: EntryKind,
    pub(crate) links: Vec<Link>,
}

/// How far a path that does not exist could be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) parent: PathBuf,
    /// The missing part below it.
    pub(crate) rest: PathBuf,
    pub(crate) links: Vec<Link>,
}

impl Missing {
    /// The path at which it would be created. `None` if the missing part contains `..`: the path then leads
    /// nowhere, and its meaning changes as soon as somebody creates a link there.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        let goes_back = self.rest.components().any(|part| part == Component::ParentDir);
        (!goes_back).then(|| join(&self.parent, &self.rest))
    }
}

impl<'a> Host<'a> {
    pub(crate) fn new(tree: &'a dyn HostTree, home: Option<&Path>) -> Self {
        let mut host = Self {
            tree: KnownTree::new(tree),
            home: None,
            home_listing: OnceCell::new(),
            real_homes: OnceCell::new(),
            project: OnceCell::new(),
        };
        host.home = home.and_then(|home| host.resolve(home).ok()).map(|home| home.path);
        host
    }

    /// The home directory, resolved.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Every link on the way to a path's target, and finally the target.
    pub(crate) fn way_to(&self, path: &Path) -> Vec<PathBuf> {
        let (end, links) = match self.resolve(path) {
            Ok(found) => (found.path, found.links),
            Err(missing) => (join(&missing.parent, &missing.rest), missing.links),
        };
        links.into_iter().map(|link| link.place).chain([end]).collect()
    }

    /// The home directories of accounts, with links resolved. The accounts are the same in every call. If many
    /// are in one directory, a listing shows which of them are links, and the homes themselves are not
    /// accessed.
    pub(crate) fn real_homes(&self, accounts: &[PathBuf]) -> &[PathBuf] {
        self.real_homes.get_or_init(|| {
            let mut by_parent: BTreeMap<&OsStr, Vec<&Path>> = BTreeMap::new();
            for home in accounts {
                if let Some((parent, _)) = split_last(home) {
                    by_parent.entry(parent.as_os_str()).or_default().push(home);
                }
            }
            let mut real = Vec::with_capacity(accounts.len());
            for (parent, homes) in by_parent {
                real.extend(self.real_homes_in(Path::new(parent), &homes));
            }
            real
        })
    }

    fn real_homes_in(&self, parent: &Path, homes: &[&Path]) -> Vec<PathBuf> {
        let resolved = |home: &Path| self.resolve(home).map_or(home.to_owned(), |home| home.path);
        let is_few = homes.len() <= FEW_HOMES;
        let Ok(parent) = self.resolve(parent).map(|parent| parent.path) else { return Vec::new() };
        let listing = (!is_few).then(|| self.tree.names(&parent));
        let is_link = |name: &OsStr| {
            listing.as_deref().and_then(|names| kind_of(names, name)) == Some(EntryKind::Symlink)
        };
        let real = |home: &Path| {
            let (_, name) = split_last(home)?;
            Some(match is_few || is_link(name) {
                true => resolved(home),
                false => parent.join(name),
            })
        };
        homes.iter().filter_map(|home| real(home)).collect()
    }

    /// Does not follow a final link. The path must not contain any other link.
    pub(crate) fn kind(&self, path: &Path) -> Option<EntryKind> {
        let path = without_last_slash(path);
        if let Some(entry) = self.tree.known_entry(path) {
            return entry.map(|entry| entry.kind);
        }
        if let Some((parent, name)) = split_last(path)
            && let Some(names) = self.names_around(parent)
        {
            return kind_of(&names, name);
        }
        self.tree.entry(path).map(|entry| entry.kind)
    }

    /// Asks the host itself, which can look up a name even in a directory that cannot be listed.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.tree.entry(path).is_some()
    }

    pub(crate) fn owner(&self, path: &Path) -> Option<Owner> {
        self.tree.entry(path).map(|entry| Owner { uid: entry.uid, gid: entry.gid })
    }

    pub(crate) fn first_children(&self, path: &Path, most: usize) -> Vec<(OsString, EntryKind)> {
        self.tree.first_names(path, most)
    }

    /// Sorted by name.
    pub(crate) fn children(&self, path: &Path) -> Names {
        self.tree.names(path)
    }

    pub(crate) fn read_small(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.tree.read_start(path, SMALL_FILE)?).ok()
    }

    pub(crate) fn read_link(&self, path: &Path) -> Option<PathBuf> {
        self.tree.read_link(path)
    }

    /// Why the kernel mounts no overlay there.
    pub(crate) fn overlay_obstacle(&self, lower: &Path) -> Option<String> {
        self.tree.overlay_obstacle(lower)
    }

    pub(crate) fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.tree.read_part(path, offset, length)
    }

    pub(crate) fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        self.tree.is_same_file(one, other)
    }

    /// Follows all links, as the kernel would.
    pub(crate) fn resolve(&self, path: &Path) -> Result<Resolved, Missing> {
        let (mut walk, path) = self.start(path);
        let mut rest = path.components();
        // Most paths contain no link. Only after the first link a new path must be composed.
        while let Some(part) = rest.next() {
            match self.step(&mut walk, part) {
                Step::Done => {}
                Step::Link(to) => return self.resolve_on(walk, join(&to, rest.as_path())),
                Step::Missing(name) => {
                    return Err(walk.missing(name, rest.as_path()));
                }
            }
        }
        Ok(walk.arrived())
    }

    /// Where to start: in the home directory if the path begins with it, as most do, because that part contains
    /// no link; otherwise at the root.
    fn start<'p>(&self, path: &'p Path) -> (Walk, &'p Path) {
        let mut at = PathBuf::with_capacity(path.as_os_str().len() + 1);
        let home = self.home.as_deref();
        let known = home.and_then(|home| Some((home, self.kind(home)?, below(path, home)?)));
        let (dir, kind, rest) = match known {
            Some((home, kind, rest)) => (home, kind, Path::new(OsStr::from_bytes(rest))),
            None => (Path::new("/"), EntryKind::Dir, path),
        };
        at.push(dir);
        (Walk { at, kind, links: Vec::new() }, rest)
    }

    /// Continues after a link.
    fn resolve_on(&self, mut walk: Walk, mut ahead: PathBuf) -> Result<Resolved, Missing> {
        loop {
            let mut parts = ahead.components();
            let stopped = loop {
                let Some(part) = parts.next() else { return Ok(walk.arrived()) };
                match self.step(&mut walk, part) {
                    Step::Done => {}
                    Step::Link(points_to) => break join(&points_to, parts.as_path()),
                    Step::Missing(name) => {
                        return Err(walk.missing(name, parts.as_path()));
                    }
                }
            };
            ahead = stopped;
        }
    }

    /// The path that a policy means, which exists or is to be created, with the links on the way to it.
    pub(crate) fn meant(
        &self,
        path: PathBuf,
        what: &'static str,
    ) -> Result<(PathBuf, Vec<Link>), PlanError> {
        match self.resolve(&path) {
            Ok(found) => Ok((found.path, found.links)),
            Err(missing) => match missing.place() {
                Some(place) => Ok((place, missing.links)),
                None => Err(PlanError::Missing { what, path, parent: missing.parent }),
            },
        }
    }

    fn step<'p>(&self, walk: &mut Walk, part: Component<'p>) -> Step<'p> {
        let name = match part {
            Component::RootDir => {
                walk.at = PathBuf::from("/");
                walk.kind = EntryKind::Dir;
                return Step::Done;
            }
            Component::ParentDir => {
                walk.at.pop();
                walk.kind = EntryKind::Dir;
                return Step::Done;
            }
            Component::CurDir | Component::Prefix(_) => return Step::Done,
            Component::Normal(name) => name,
        };
        if walk.kind != EntryKind::Dir {
            return Step::Missing(name);
        }
        walk.at.push(name);
        match self.kind(&walk.at) {
            Some(EntryKind::Symlink) if walk.links.len() < MAX_LINKS => {
                let Some(points_to) = self.tree.read_link(&walk.at) else {
                    walk.at.pop();
                    return Step::Missing(name);
                };
                walk.links.push(Link { place: walk.at.clone(), points_to: points_to.clone() });
                walk.at.pop();
                Step::Link(points_to)
            }
            Some(EntryKind::Symlink) | None => {
                walk.at.pop();
                Step::Missing(name)
            }
            Some(kind) => {
                walk.kind = kind;
                Step::Done
            }
        }
    }

    /// For a path below the home directory: the directory in which its first missing name is missing, if there
    /// is no link before it. Fast, because most names of the shipped lists do not exist.
    pub(crate) fn missing_in<'p>(&self, below_home: &'p str) -> Option<&'p str> {
        let mut listing = self.home_listing()?;
        let mut dir = "";
        for (depth, name) in below_home.as_bytes().split(|byte| *byte == b'/').enumerate() {
            let end = dir.len() + usize::from(depth > 0) + name.len();
            let name = OsStr::from_bytes(name);
            match kind_of(&listing.names, name) {
                None => return Some(dir),
                Some(EntryKind::Dir) if depth < LISTED_DEPTH && end < below_home.len() => {}
                Some(_) => return None,
            }
            dir = &below_home[..end];
            listing = self.list_below(&listing, name, Path::new(dir))?;
        }
        None
    }

    /// Every path at which the last name of a path is found: the name itself and, if it is a link, its target,
    /// and so on. The last one may not exist.
    pub(crate) fn places(&self, path: &Path) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let mut next = path.to_owned();
        while places.len() <= MAX_LINKS {
            let (Some(parent), Some(name)) = (next.parent(), next.file_name()) else {
                // The root, or a path that ends in `..`.
                places.extend(self.resolve(&next).ok().map(|found| found.path));
                break;
            };
            let parent = match self.resolve(parent) {
                Ok(found) => found.path,
                Err(missing) => missing.parent.join(missing.rest),
            };
            let place = parent.join(name);
            let points_to = match self.kind(&place) {
                Some(EntryKind::Symlink) => self.tree.read_link(&place),
                _ => None,
            };
            places.push(place);
            let Some(points_to) = points_to else { break };
            next = parent.join(points_to);
        }
        places
    }

    /// The names in `dir` with this prefix.
    pub(crate) fn matching(&self, dir: &Path, prefix: &[u8]) -> Vec<PathBuf> {
        let Ok(dir) = self.resolve(dir) else { return Vec::new() };
        let matches = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix);
        let names = match self.listing(&dir.path) {
            Some(listing) => listing.names.clone(),
            None => self.tree.names(&dir.path),
        };
        let found = names.iter().filter(|(name, _)| matches(name));
        found.map(|(name, _)| dir.path.join(name)).collect()
    }

    /// The links and directories directly in a directory, sorted by name. In a very large directory only the
    /// first names count.
    pub(crate) fn ways_in(&self, dir: &Path) -> Vec<(PathBuf, EntryKind)> {
        let ways: Vec<_> = match self.known_listing(dir) {
            Some(listing) => {
                let ways = listing.names.iter().filter(|(_, kind)| kind.is_way());
                ways.cloned().collect()
            }
            None => {
                let names = self.tree.first_names(dir, MAX_NAMES).into_iter();
                names.filter(|(_, kind)| kind.is_way()).collect()
            }
        };
        let mut found: Vec<(PathBuf, EntryKind)> =
            ways.into_iter().map(|(name, kind)| (dir.join(name), kind)).collect();
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        found
    }

    /// The links directly in a directory.
    pub(crate) fn links_in(&self, dir: &Path) -> Vec<PathBuf> {
        let links = self.ways_in(dir).into_iter().filter(|(_, kind)| *kind == EntryKind::Symlink);
        links.map(|(link, _)| link).collect()
    }

    /// A listing that already exists, made for another lookup.
    fn known_listing(&self, dir: &Path) -> Option<Rc<Listing>> {
        let below = below(dir, self.home.as_deref()?)?;
        let mut listing = self.home_listing.get()?.clone();
        for name in below.split(|byte| *byte == b'/').filter(|_| !below.is_empty()) {
            let known = listing.dirs.borrow().get(OsStr::from_bytes(name))?.clone();
            listing = known;
        }
        Some(listing)
    }

    /// The names of a directory in which many are looked up, or that was listed for another reason.
    fn names_around(&self, dir: &Path) -> Option<Names> {
        if let Some(listing) = self.listing(dir) {
            return Some(listing.names.clone());
        }
        if dir.as_os_str() != "/" {
            return self.tree.known_names(dir);
        }
        // Where the root cannot be listed, its names can still be looked up.
        Some(self.tree.names(dir)).filter(|names| !names.is_empty())
    }

    /// All names of a directory; `None` if there are many, or it cannot be listed.
    pub(crate) fn few_names(&self, dir: &Path) -> Option<Names> {
        self.names_around(dir).or_else(|| {
            let mut names = self.tree.first_names(dir, FEW_NAMES + 1);
            names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            (1..=FEW_NAMES).contains(&names.len()).then(|| names.into())
        })
    }

    /// All names of a directory, if many names are looked up in it.
    fn listing(&self, dir: &Path) -> Option<Rc<Listing>> {
        let below = below(dir, self.home.as_deref()?)?;
        if below.iter().filter(|byte| **byte == b'/').count() >= LISTED_DEPTH {
            return None;
        }
        let mut listing = self.home_listing()?;
        let mut end = 0;
        for name in below.split(|byte| *byte == b'/').filter(|_| !below.is_empty()) {
            end += usize::from(end > 0) + name.len();
            let dir = Path::new(OsStr::from_bytes(&below[..end]));
            // An empty name, `.` and `..` are in no listing.
            listing = self.list_below(&listing, OsStr::from_bytes(name), dir)?;
        }
        Some(listing)
    }

    fn home_listing(&self) -> Option<Rc<Listing>> {
        let home = self.home.as_deref()?;
        Some(self.home_listing.get_or_init(|| self.list(home)).clone())
    }

    /// `dir` is the path relative to the home directory.
    fn list_below(&self, above: &Listing, name: &OsStr, dir: &Path) -> Option<Rc<Listing>> {
        if let Some(listing) = above.dirs.borrow().get(name) {
            return Some(listing.clone());
        }
        if kind_of(&above.names, name) != Some(EntryKind::Dir) {
            return None;
        }
        let listing = self.list(&self.home.as_deref()?.join(dir));
        above.dirs.borrow_mut().insert(name.to_owned(), listing.clone());
        Some(listing)
    }

    fn list(&self, dir: &Path) -> Rc<Listing> {
        Rc::new(Listing { names: self.tree.names(dir), dirs: RefCell::default() })
    }
}

/// The state of resolving a path.
struct Walk {
    at: PathBuf,
    kind: EntryKind,
    links: Vec<Link>,
}

enum Step<'p> {
    Done,
    /// Not followed yet; the walk is at the link's directory.
    Link(PathBuf),
    Missing(&'p OsStr),
}

impl Walk {
    fn arrived(self) -> Resolved {
        Resolved { path: self.at, kind: self.kind, links: self.links }
    }

    fn missing(self, name: &OsStr, rest: &Path) -> Missing {
        Missing { parent: self.at, rest: join(Path::new(name), rest), links: self.links }
    }
}

// These functions work on the text of paths, because iterating over components would take most of the time of a
// start. A spelling that they do not recognize is never treated as listed; the host is asked instead.

/// The rest of a path after a directory that is equal to it or contains it.
fn below<'p>(path: &'p Path, dir: &Path) -> Option<&'p [u8]> {
    let path = without_last_slash(path).as_os_str().as_bytes();
    let dir = dir.as_os_str().as_bytes();
    let rest = path.strip_prefix(dir)?;
    let start = rest.iter().take_while(|byte| **byte == b'/').count();
    (start > 0 || rest.is_empty() || dir == b"/").then(|| &rest[start..])
}

/// The directory of a path's last name, and the name.
fn split_last(path: &Path) -> Option<(&Path, &OsStr)> {
    let path = path.as_os_str().as_bytes();
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (dir, name) = (&path[..slash.max(1)], &path[slash + 1..]);
    let is_name = !matches!(name, b"" | b"." | b"..");
    is_name.then(|| (Path::new(OsStr::from_bytes(dir)), OsStr::from_bytes(name)))
}

/// With a trailing slash, the host would follow a final link.
fn without_last_slash(path: &Path) -> &Path {
    match path.as_os_str().as_bytes() {
        [start @ .., b'/'] if !start.is_empty() => {
            without_last_slash(Path::new(OsStr::from_bytes(start)))
        }
        _ => path,
    }
}

/// Like `Path::join`, but without a trailing slash if `rest` is empty.
pub(crate) fn join(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { base.to_owned() } else { base.join(rest) }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
