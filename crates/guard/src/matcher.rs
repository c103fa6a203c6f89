//! Decides whether the host would later run what is at a path.
//!
//! Called for every file that is created, so ordinary names must cost only a few comparisons and no allocation.

use crate::fold::comparable;
use crate::names::{Rule, Scope, rules};
use crate::pattern::NamePattern;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the matcher knows about one run. Paths are absolute, as seen in the sandbox, with symlinks resolved.
#[derive(Clone, Debug, Default)]
pub struct MatchContext {
    /// Home directories, where names of scope `home` apply.
    pub homes: Vec<PathBuf>,
    /// Package caches. Third-party archives are unpacked there and nobody works in them, so only names of scope
    /// `home` apply.
    pub stores: Vec<PathBuf>,
    /// Opened for writing by the user, with everything below. Overrides every name.
    pub opened: Vec<PathBuf>,
    pub more: Vec<GuardedPath>,
}

/// A path that is guarded in addition to the names, with everything below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardedPath {
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    pub why: &'static str,
}

fn as_text<S: serde::Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.display())
}

/// The rule that matched, and why it guards the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit<'m> {
    /// The name as listed, or the path.
    pub name: &'m str,
    pub why: &'static str,
}

/// An entry that would be guarded once its directory has its new name. It matters only if it exists and is not
/// opened; [`Matcher::judge`] decides that for its full path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below<'m> {
    /// Relative to the renamed directory; empty for that directory itself.
    pub dir: PathBuf,
    /// The names in `dir` that this is about.
    pub name: NamePattern,
    pub hit: Hit<'m>,
}

#[derive(Clone, Debug)]
pub struct Matcher {
    homes: Vec<PathBuf>,
    stores: Vec<PathBuf>,
    opened: Vec<PathBuf>,
    more: Vec<Guarded>,
}

/// A guarded path, split into its parts from the root on.
#[derive(Clone, Debug)]
struct Guarded {
    parts: Vec<NamePattern>,
    path: PathBuf,
    name: String,
    why: &'static str,
}

/// Rules, grouped by the length of their first part.
#[derive(Clone, Debug, Default)]
struct Table {
    by_length: Vec<Vec<Rule>>,
    /// Rules whose first part has a `*`.
    around: Vec<Rule>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Apply in a guarded tree.
    local: Table,
    /// Apply below a home directory.
    home: Table,
}

/// Built once a process, when the first path is judged: many runs judge none.
fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables::default();
        for rule in rules() {
            let table =
                if rule.scope == Scope::Home { &mut tables.home } else { &mut tables.local };
            table.add(rule);
        }
        tables
    })
}

impl Matcher {
    pub fn new(grounds: MatchContext) -> Self {
        let more = grounds.more.into_iter().map(Guarded::new).collect();
        let MatchContext { homes, stores, opened, .. } = grounds;
        Self { homes, stores, opened, more }
    }

    /// Whether the host would later run something at `path`. `path` is absolute, without symlinks and `..`, and
    /// below `tree`, the top of its guarded tree. Names that `tree` itself matches do not count: the user
    /// granted it by name. `is_old` says whether a directory existed before the run; it is called only if a
    /// name of scope `top` matches.
    pub fn judge(
        &self,
        tree: &Path,
        path: &Path,
        is_old: &mut dyn FnMut(&Path) -> bool,
    ) -> Option<Hit<'_>> {
        let below_tree = path.strip_prefix(tree).ok()?;
        if below_tree.as_os_str().is_empty() || self.is_opened(path) {
            return None;
        }
        self.judge_local(path, below_tree, is_old)
            .or_else(|| self.judge_home(tree, path))
            .or_else(|| self.judge_more(tree, path))
    }

    /// What would be guarded below a directory that is about to get the name `path`.
    pub fn below(
        &self,
        tree: &Path,
        path: &Path,
        is_old: &mut dyn FnMut(&Path) -> bool,
    ) -> Vec<Below<'_>> {
        let mut found = Vec::new();
        let Ok(below_tree) = path.strip_prefix(tree) else { return found };
        if !self.is_in_store(path) {
            for (dir, rest) in places(path, below_tree) {
                for rule in tables().local.starting(rest) {
                    if let Some(Reach::Within(matched)) = reach(&rule.parts, rest)
                        && rule.counts_in(dir, tree, is_old)
                    {
                        found.push(rule.remaining(matched));
                    }
                }
            }
        }
        for home in &self.homes {
            let Ok(rest) = path.strip_prefix(home) else { continue };
            let rest = rest.as_os_str().as_bytes();
            for rule in tables().home.starting(rest) {
                if let Some(Reach::Within(matched)) = reach(&rule.parts, rest) {
                    found.push(rule.remaining(matched));
                }
            }
        }
        let from_root = path.as_os_str().as_bytes().get(1..).unwrap_or_default();
        for guarded in &self.more {
            if let Some(Reach::Within(matched)) = reach(&guarded.parts, from_root) {
                found.push(below(&guarded.parts[matched..], guarded.hit()));
            }
        }
        found.retain(|below| match &below.name {
            NamePattern::Exact(name) => {
                !self.is_opened(&path.join(&below.dir).join(OsStr::from_bytes(name)))
            }
            NamePattern::Around(..) => true,
        });
        found
    }

    /// Whether the user opened the path, or a directory above it, for writing.
    pub fn is_opened(&self, path: &Path) -> bool {
        self.opened.iter().any(|opened| path.starts_with(opened))
    }

    fn is_in_store(&self, path: &Path) -> bool {
        self.stores.iter().any(|store| path.starts_with(store))
    }

    fn judge_local(
        &self,
        path: &Path,
        below_tree: &Path,
        is_old: &mut dyn FnMut(&Path) -> bool,
    ) -> Option<Hit<'_>> {
        let tree = parent_of(path, below_tree);
        let mut in_store = None;
        for (dir, rest) in places(path, below_tree) {
            for rule in tables().local.starting(rest) {
                if reach(&rule.parts, rest) == Some(Reach::Whole)
                    && !*in_store.get_or_insert_with(|| self.is_in_store(path))
                    && rule.counts_in(dir, tree, is_old)
                {
                    return Some(rule.hit());
                }
            }
        }
        None
    }

    fn judge_home(&self, tree: &Path, path: &Path) -> Option<Hit<'_>> {
        for home in &self.homes {
            let Ok(rest) = path.strip_prefix(home) else { continue };
            let rest = rest.as_os_str().as_bytes();
            let hit = |rule: &&Rule| {
                let granted = tree.strip_prefix(home).map_or(0, |tree| tree.components().count());
                rule.parts.len() > granted && reach(&rule.parts, rest) == Some(Reach::Whole)
            };
            if let Some(rule) = tables().home.starting(rest).find(hit) {
                return Some(rule.hit());
            }
        }
        None
    }

    fn judge_more(&self, tree: &Path, path: &Path) -> Option<Hit<'_>> {
        let from_root = path.as_os_str().as_bytes().get(1..)?;
        let hit = |guarded: &&Guarded| {
            !tree.starts_with(&guarded.path)
                && reach(&guarded.parts, from_root) == Some(Reach::Whole)
        };
        self.more.iter().find(hit).map(Guarded::hit)
    }
}

/// How far a path follows a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The path is what the rule names, or lies below it.
    Whole,
    /// The path matches this many parts of the rule and ends there.
    Within(usize),
}

fn reach(parts: &[NamePattern], path: &[u8]) -> Option<Reach> {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    for (index, part) in parts.iter().enumerate() {
        let Some(name) = names.next() else { return Some(Reach::Within(index)) };
        if !part.matches(name) {
            return None;
        }
    }
    Some(Reach::Whole)
}

/// Every directory from the tree down to the path, with the rest of the path below it.
fn places<'p>(
    path: &'p Path,
    below_tree: &'p Path,
) -> impl Iterator<Item = (&'p Path, &'p [u8])> + 'p {
    let whole = path.as_os_str().as_bytes();
    let mut next = Some(below_tree.as_os_str().as_bytes()).filter(|rest| !rest.is_empty());
    std::iter::from_fn(move || {
        let rest = next?;
        next = rest.iter().position(|byte| *byte == b'/').map(|at| &rest[at + 1..]);
        Some((prefix(whole, rest.len()), rest))
    })
}

/// `path` without its last `without` bytes and the slash before them.
fn prefix(path: &[u8], without: usize) -> &Path {
    let end = path.len().saturating_sub(without + 1).max(1);
    Path::new(OsStr::from_bytes(path.get(..end).unwrap_or(path)))
}

fn parent_of<'p>(path: &'p Path, below: &Path) -> &'p Path {
    prefix(path.as_os_str().as_bytes(), below.as_os_str().len())
}

fn below<'m>(parts: &[NamePattern], hit: Hit<'m>) -> Below<'m> {
    let (name, dirs) = match parts.split_last() {
        Some((name, dirs)) => (name.clone(), dirs),
        None => (NamePattern::Exact(Cow::Borrowed(&[])), parts),
    };
    let dir = dirs.iter().filter_map(|dir| match dir {
        NamePattern::Exact(text) => Some(OsStr::from_bytes(text)),
        NamePattern::Around(..) => None,
    });
    Below { dir: dir.collect(), name, hit }
}

impl Table {
    fn add(&mut self, rule: Rule) {
        match rule.parts.first() {
            Some(NamePattern::Exact(first)) => {
                let length = first.len();
                if self.by_length.len() <= length {
                    self.by_length.resize_with(length + 1, Vec::new);
                }
                self.by_length[length].push(rule);
            }
            _ => self.around.push(rule),
        }
    }

    /// The rules whose first part matches the first name of this path; all rules if the path is empty.
    fn starting(&self, path: &[u8]) -> impl Iterator<Item = &Rule> {
        let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        let name = comparable(&path[..end]);
        let of_length = if path.is_empty() {
            self.by_length.as_slice()
        } else {
            self.by_length.get(name.len()..=name.len()).unwrap_or_default()
        };
        let is_any = path.is_empty();
        of_length.iter().flatten().chain(&self.around).filter(move |rule| {
            is_any || rule.parts.first().is_some_and(|first| first.matches_comparable(&name))
        })
    }
}

impl Rule {
    fn hit(&self) -> Hit<'_> {
        Hit { name: self.name, why: self.why }
    }

    fn counts_in(&self, dir: &Path, tree: &Path, is_old: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.scope == Scope::Anywhere || dir == tree || is_old(dir)
    }

    fn remaining(&self, matched: usize) -> Below<'_> {
        below(&self.parts[matched..], self.hit())
    }
}

impl Guarded {
    fn new(GuardedPath { path, why }: GuardedPath) -> Self {
        let parts = path
            .iter()
            .skip(1)
            .map(|part| NamePattern::Exact(Cow::Owned(comparable(part.as_bytes()).into_owned())));
        Self { parts: parts.collect(), name: path.display().to_string(), path, why }
    }

    fn hit(&self) -> Hit<'_> {
        Hit { name: &self.name, why: self.why }
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
