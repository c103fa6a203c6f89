//! Turns many paths into a few patterns, so that the files a recorded run used become a readable policy.
//!
//! A pattern must never be wider than what a question would offer for one of the paths or for their common
//! directory.

use crate::offer::{FileKind, PathContext, offer};
use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// This many files of one directory stand for the directory.
const MANY: usize = 3;

/// Patterns that match all of these files. `paths` are real paths of the host.
pub fn group(paths: &[PathBuf], around: &PathContext<'_>) -> Vec<Pattern> {
    let mut files: BTreeSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut trees: BTreeSet<PathBuf> = BTreeSet::new();
    let mut wanting: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in &files {
        if let Some(directory) = offer(file, FileKind::File, around) {
            *wanting.entry(directory).or_default() += 1;
        }
    }
    trees.extend(wanting.into_iter().filter(|(_, count)| *count >= MANY).map(|(top, _)| top));
    while let Some(wider) = common_directory(&trees, around) {
        trees.retain(|tree| !tree.starts_with(&wider));
        trees.insert(wider);
    }
    files.retain(|file| {
        around.is_withheld(file) || !file.ancestors().any(|above| trees.contains(above))
    });
    let tops = trees.iter().filter(|tree| !tree.ancestors().skip(1).any(|up| trees.contains(up)));
    let mut patterns: Vec<Pattern> = tops.cloned().map(Pattern::Tree).collect();
    patterns.extend(files.into_iter().map(|file| Pattern::Exact(file.to_owned())));
    patterns
}

/// A directory that directly contains many of the trees and may be granted as a whole.
fn common_directory(trees: &BTreeSet<PathBuf>, around: &PathContext<'_>) -> Option<PathBuf> {
    let mut children: BTreeMap<&Path, usize> = BTreeMap::new();
    for parent in trees.iter().filter_map(|tree| tree.parent()) {
        *children.entry(parent).or_default() += 1;
    }
    children
        .into_iter()
        .filter(|(parent, count)| *count >= MANY && !trees.contains(*parent))
        .map(|(parent, _)| parent.to_owned())
        .find(|parent| around.may_be_offered(parent))
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
