//! The differences of one text file, in parts that can be chosen one by one.

use crate::changeset::{Change, ChangeKind};
use crate::contents::{ContentDigest, digest_of, is_binary, read};
use crate::entry::EntryKind;
use crate::error::Result;
use crate::layers::Layers;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longer files are named as different, not shown.
pub(crate) const MAX_TEXT_BYTES: usize = 4 << 20;
const CONTEXT_LINES: usize = 3;
/// After this, a difference is still right but no longer the shortest: a session could choose contents that take hours.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// A line of a hunk, with its line end if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    Context(Vec<u8>),
    Removed(Vec<u8>),
    Added(Vec<u8>),
}

/// A part of a file that differs, with some lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Line numbers, from 0.
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
    pub lines: Vec<HunkLine>,
}

/// A modified text file and its differences.
#[derive(Clone, Debug)]
pub struct FileHunks {
    path: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
    hunks: Vec<Hunk>,
}

/// What a file becomes with only some of its hunks.
#[derive(Clone, Debug)]
pub struct ChosenHunks {
    pub(crate) path: PathBuf,
    pub(crate) contents: Vec<u8>,
    /// Of the file that the hunks were shown for. If the host's is another by now, that is a conflict.
    pub(crate) old_digest: ContentDigest,
}

/// The hunks of a modified text file; none for anything else, and for what is too large to be shown.
pub fn hunks(layers: &Layers, change: &Change) -> Result<Option<FileHunks>> {
    let (Some(old), Some(new)) = (change.old_at, change.new_at) else { return Ok(None) };
    if change.kind != ChangeKind::Modified || new.found.kind != EntryKind::File {
        return Ok(None);
    }
    let old = read(layers, &change.path, old, MAX_TEXT_BYTES)?;
    let new = read(layers, &change.path, new, MAX_TEXT_BYTES)?;
    let (Some(old), Some(new)) = (old, new) else { return Ok(None) };
    if is_binary(&old) || is_binary(&new) {
        return Ok(None);
    }
    let hunks = between(&old, &new);
    Ok(Some(FileHunks { path: change.path.clone(), old, new, hunks }))
}

impl FileHunks {
    pub fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// The file with the hunks of these numbers, from 0.
    pub fn choose(&self, chosen: &BTreeSet<usize>) -> ChosenHunks {
        let (old, new) = (lines(&self.old), lines(&self.new));
        let mut contents = Vec::new();
        let mut done = 0;
        for (number, hunk) in self.hunks.iter().enumerate() {
            contents.extend(old[done..hunk.old.start].concat());
            contents.extend(if chosen.contains(&number) {
                new[hunk.new.clone()].concat()
            } else {
                old[hunk.old.clone()].concat()
            });
            done = hunk.old.end;
        }
        contents.extend(old[done..].concat());
        ChosenHunks { path: self.path.clone(), contents, old_digest: digest_of(&self.old) }
    }
}

impl Hunk {
    /// `@@ -1,3 +1,4 @@`
    pub fn header(&self) -> String {
        format!("@@ -{} +{} @@", span(&self.old), span(&self.new))
    }
}

/// As diff(1) counts: an empty range is named by the line before it, and a length of one is left out.
fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        length => format!("{},{length}", range.start + 1),
    }
}

pub(crate) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

pub(crate) fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let deadline = Instant::now().checked_add(DIFF_TIMEOUT);
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

pub(crate) fn between(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let groups = group_diff_ops(operations(&old, &new), CONTEXT_LINES);
    let hunk = |group: Vec<DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        let ranges = (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        );
        let mut shown = Vec::new();
        for operation in &group {
            let texts =
                |lines: &[&[u8]]| lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
            if let DiffOp::Equal { .. } = operation {
                let equal = texts(&old[operation.old_range()]);
                shown.extend(equal.into_iter().map(HunkLine::Context));
            } else {
                let removed = texts(&old[operation.old_range()]);
                shown.extend(removed.into_iter().map(HunkLine::Removed));
                let added = texts(&new[operation.new_range()]);
                shown.extend(added.into_iter().map(HunkLine::Added));
            }
        }
        Some(Hunk { old: ranges.0, new: ranges.1, lines: shown })
    };
    groups.into_iter().filter_map(hunk).collect()
}

#[cfg(test)]
#[path = "hunks_tests.rs"]
mod tests;
