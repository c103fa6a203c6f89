//! Whether the host would run later what stands at a path.
//!
//! Asked for every file that is made, so ordinary names cost a few comparisons and no allocation.

use crate::fold::comparable;
use crate::names::{Rule, Scope, rules};
use crate::pattern::NamePattern;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the matcher knows of one run. Paths are absolute, as they are inside, without links.
#[derive(Clone, Debug, Default)]
pub struct MatchContext {
    /// Home directories in which the names of scope `home` count.
    pub homes: Vec<PathBuf>,
    /// Package caches: archives of others are unpacked there and nobody works in them, so only the
    /// names of scope `home` count.
    pub stores: Vec<PathBuf>,
    /// Open for writing, with everything below: stronger than every name.
    pub opened: Vec<PathBuf>,
    pub more: Vec<GuardedPath>,
}

/// A path that is guarded by itself, with everything below.
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

/// What was hit, and why it is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit<'m> {
    /// The name as it is listed, or the path.
    pub name: &'m str,
    pub why: &'static str,
}

/// Something that would be guarded below a directory under its new name. It counts if it is there and
/// is not opened, which [`Matcher::judge`] tells for the whole path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below<'m> {
    /// Relative to the directory; empty for the directory itself.
    pub dir: PathBuf,
    /// Which names in `dir` are meant.
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

/// A guarded path in parts, from the root.
#[derive(Clone, Debug)]
struct Guarded {
    parts: Vec<NamePattern>,
    path: PathBuf,
    name: String,
    why: &'static str,
}

/// Rules by the length of their first part.
#[derive(Clone, Debug, Default)]
struct Table {
    by_length: Vec<Vec<Rule>>,
    /// Those whose first part has a `*`.
    around: Vec<Rule>,
}

/// The shipped names.
#[derive(Debug, Default)]
struct Tables {
    /// Those below a tree.
    local: Table,
    /// Those below a home directory.
    home: Table,
}

/// Sorted once a process, and only when the first path is judged: many a run has none.
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

    /// Would something at `path` be run later? `path` is absolute, free of links and `..`, and below
    /// `tree`, the top of the guarded tree it is in. What is named by `tree` itself was granted by
    /// name and does not count. `is_old`, whether a directory was there before the run, is asked only
    /// when a name of scope `top` is met.
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

    /// A directory is about to get the name `path`: what below it would be guarded then.
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

    /// Whether somebody opened the path, or something above it, for writing.
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

/// How far a rule and a path go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The path is what the rule names, or lies in it.
    Whole,
    /// The path ends on the way there, after so many parts.
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

/// Every directory on the way from the tree to the path, with the rest of the path as seen from it.
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

/// `path` without its last bytes and the slash before them.
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

    /// The rules whose first part is the first name of this path. All of them, if the path is empty.
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
