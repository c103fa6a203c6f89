//! Finds the rules that may apply to a path without trying all of them.
//!
//! Exact paths and tops of trees are found by hash, globs by the directory they begin in. The result must be
//! the same as that of a scan over all rules.

use crate::glob::Glob;
use crate::pattern::Pattern;
use crate::rule::Rule;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    exact: HashMap<Box<[u8]>, Vec<usize>>,
    trees: HashMap<Box<[u8]>, Vec<usize>>,
    globs: HashMap<Box<[u8]>, Globs>,
}

/// The globs that begin in one directory, by the ending of their last name: the ending alone rules out most of
/// them. The outer key is the mask for the ending's length.
type Globs = HashMap<u64, HashMap<u64, Vec<usize>>>;

/// The last bytes of a path, up to eight, as one number.
#[derive(Clone, Copy, Debug)]
struct Tail {
    mask: u64,
    bytes: u64,
}

impl Tail {
    fn of(tail: &[u8]) -> Self {
        let mask = match tail.len() {
            0 => 0,
            length @ 1..8 => u64::MAX >> (8 * (8 - length)),
            _ => u64::MAX,
        };
        Tail { mask, bytes: last_bytes(tail) & mask }
    }
}

/// The last byte is the lowest. A short text is padded with zeros, which no path contains.
fn last_bytes(text: &[u8]) -> u64 {
    let last = &text[text.len().saturating_sub(8)..];
    last.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Index {
    pub(crate) fn insert(&mut self, place: usize, rule: &Rule) {
        match &rule.pattern {
            Pattern::Exact(path) => {
                self.exact.entry(path.as_os_str().as_bytes().into()).or_default().push(place);
            }
            Pattern::Tree(top) => {
                self.trees.entry(top.as_os_str().as_bytes().into()).or_default().push(place);
            }
            Pattern::Glob(glob) => {
                let directory = as_ancestor(glob.directory());
                let globs = self.globs.entry(directory.into()).or_default();
                let Tail { mask, bytes } = Tail::of(&glob.tail());
                globs.entry(mask).or_default().entry(bytes).or_default().push(place);
            }
        }
    }

    /// Calls `found` with every rule whose pattern matches the path.
    pub(crate) fn each(&self, path: &[u8], rules: &[Rule], mut found: impl FnMut(usize)) {
        self.exact.get(path).into_iter().flatten().copied().for_each(&mut found);
        if self.trees.is_empty() && self.globs.is_empty() {
            return;
        }
        let last = last_bytes(path);
        for ancestor in ancestors(path) {
            self.trees.get(ancestor).into_iter().flatten().copied().for_each(&mut found);
            let Some(globs) = self.globs.get(ancestor) else { continue };
            let below = &path[if ancestor == b"/" { 0 } else { ancestor.len() }..];
            let ending = globs.iter().filter_map(|(mask, tails)| tails.get(&(last & mask)));
            for place in ending.flatten() {
                if glob_of(&rules[*place]).is_some_and(|glob| glob.matches_below(below)) {
                    found(*place);
                }
            }
        }
    }
}

fn glob_of(rule: &Rule) -> Option<&Glob> {
    match &rule.pattern {
        Pattern::Glob(glob) => Some(glob),
        _ => None,
    }
}

fn as_ancestor(directory: &[u8]) -> &[u8] {
    if directory.is_empty() { b"/" } else { directory }
}

/// The path itself, its directory, and so on up to `/`.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) if path.len() > 1 => Some(&path[..1]),
        Some(0) | None => None,
        Some(slash) => Some(&path[..slash]),
    })
}
