//! Decides about each selected change: apply, refuse, or conflict. Writes nothing.

use super::conflicts::Conflicts;
use super::outcome::{Conflict, ConflictReason, Refused, RefusedReason};
use super::request::{ApplyRequest, BaseContents, OnConflict};
use super::workspace::STAGE_PREFIX;
use crate::changeset::{Change, ChangeKind, ChangeSet};
use crate::contents::{digest_of, is_binary, read};
use crate::entry::{Entry, EntryKind};
use crate::error::{ChangesError, Result};
use crate::git::MAX_CONFIG_BYTES;
use crate::hunks::{ChosenHunks, MAX_TEXT_BYTES};
use crate::judge::Coming;
use crate::merge::merge;
use crate::merged_tree::MergedTree;
use crate::objection::{Objection, Verdict};
use crate::paths::{is_within, link_stays_within};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What an apply stages, and the unfinished directories of the broker, which are left if it is killed: everything in them
/// has another name.
const RESERVED: [&str; 2] = [STAGE_PREFIX, ".palisade-moving-"];

/// What is decided. Changes are named by their numbers in the set.
#[derive(Debug, Default)]
pub(super) struct Reviewed {
    pub(super) accepted: BTreeMap<usize, Contents>,
    pub(super) refused: Vec<Refused>,
    /// Nothing may be applied while there are any.
    pub(super) conflicts: Vec<Conflict>,
    /// Conflicts in which the host's version stays.
    pub(super) kept: Vec<Conflict>,
    pub(super) merged: Vec<PathBuf>,
}

/// Which bytes a file gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    OfSession,
    /// Read and judged already: whatever the session writes from now on.
    Judged(Vec<u8>),
    /// Made from both versions. The permissions stay the host's.
    Composed(Vec<u8>),
}

enum Decision {
    Accept(Contents),
    Refuse(RefusedReason),
    Conflict(ConflictReason),
    /// The host's version stays.
    Keep(ConflictReason),
    /// It makes no difference.
    Skip,
}

pub(super) fn review(
    request: &ApplyRequest<'_>,
    set: &ChangeSet,
    tree: &MergedTree<'_>,
) -> Result<Reviewed> {
    if !request.layers.is_whole() {
        return Err(ChangesError::NotWhole);
    }
    let conflicts = Conflicts::new(request.layers, request.baseline, set);
    let mut review = Review { request, set, tree, conflicts, reviewed: Reviewed::default() };
    let mut left_out: Option<&Path> = None;
    for number in with_directories_around(set, request.selection.of(set)) {
        let change = &set.changes[number];
        if left_out.is_some_and(|directory| is_within(&change.path, directory)) {
            continue;
        }
        let is_taken = review.decide(number)?;
        // Without its directory, nothing below it can come. A directory that is not replaced keeps what is in it.
        let is_directory = |entry: &Option<Entry>| {
            entry.as_ref().is_some_and(|entry| entry.kind == EntryKind::Directory)
        };
        if !is_taken && (is_directory(&change.new) || is_directory(&change.old)) {
            left_out = Some(&change.path);
        }
    }
    for directory in &set.too_deep {
        let (path, reason) = (directory.clone(), RefusedReason::PathTooLong);
        review.reviewed.refused.push(Refused { path, reason });
    }
    review.drop_what_is_not_empty();
    Ok(review.reviewed)
}

/// A selected file brings the new directories that it is in.
fn with_directories_around(set: &ChangeSet, selected: BTreeSet<usize>) -> BTreeSet<usize> {
    if selected.len() == set.changes.len() {
        return selected;
    }
    let mut all = selected.clone();
    for number in selected {
        let change = &set.changes[number];
        if change.new.is_none() {
            continue;
        }
        for above in change.path.ancestors().skip(1) {
            if let Some(at) = set.number(above)
                && matches!(set.changes[at].kind, ChangeKind::Added | ChangeKind::TypeChanged)
            {
                all.insert(at);
            }
        }
    }
    all
}

struct Review<'r> {
    request: &'r ApplyRequest<'r>,
    set: &'r ChangeSet,
    tree: &'r MergedTree<'r>,
    conflicts: Conflicts<'r>,
    reviewed: Reviewed,
}

impl Review<'_> {
    /// Whether the change is applied.
    fn decide(&mut self, number: usize) -> Result<bool> {
        let change = &self.set.changes[number];
        let path = change.path.clone();
        match self.decision(change)? {
            Decision::Accept(contents) => {
                if matches!(contents, Contents::Composed(_))
                    && self.request.selection.hunks_of(&path).is_none()
                {
                    self.reviewed.merged.push(path);
                }
                self.reviewed.accepted.insert(number, contents);
                return Ok(true);
            }
            Decision::Refuse(reason) => self.reviewed.refused.push(Refused { path, reason }),
            Decision::Conflict(reason) => self.reviewed.conflicts.push(Conflict { path, reason }),
            Decision::Keep(reason) => self.reviewed.kept.push(Conflict { path, reason }),
            Decision::Skip => {}
        }
        Ok(false)
    }

    fn decision(&self, change: &Change) -> Result<Decision> {
        if let Some(reason) = objection_to_entry(change) {
            return Ok(Decision::Refuse(reason));
        }
        if self.request.hidden.iter().any(|hidden| touches_hidden(change, hidden)) {
            return Ok(Decision::Refuse(RefusedReason::Hidden));
        }
        let contents = match self.composed(change)? {
            Ok(contents) => contents,
            Err(decision) => return Ok(decision),
        };
        match self.judged(change, contents)? {
            Ok(contents) => Ok(Decision::Accept(contents)),
            Err(objection) => Ok(Decision::Refuse(RefusedReason::RunLater(objection))),
        }
    }

    /// What the file would become, with conflicts resolved and hunks chosen.
    fn composed(&self, change: &Change) -> Result<std::result::Result<Contents, Decision>> {
        let hunks = self.request.selection.hunks_of(&change.path);
        if let Some(chosen) = hunks.filter(|_| change.kind == ChangeKind::Modified) {
            return self.with_hunks(change, chosen);
        }
        let Some(reason) = self.conflicts.find(change)? else { return Ok(Ok(Contents::OfSession)) };
        Ok(match self.request.on_conflict {
            OnConflict::Refuse => Err(Decision::Conflict(reason)),
            OnConflict::Force => Ok(Contents::OfSession),
            OnConflict::KeepHost => Err(Decision::Keep(reason)),
            OnConflict::Merge(base) => self.merged(change, base)?.map_err(Decision::Conflict),
        })
    }

    fn with_hunks(
        &self,
        change: &Change,
        chosen: &ChosenHunks,
    ) -> Result<std::result::Result<Contents, Decision>> {
        let host =
            change.old_at.map(|at| read(self.request.layers, &change.path, at, MAX_TEXT_BYTES));
        let Some(Some(host)) = host.transpose()? else {
            return Ok(Err(Decision::Conflict(ConflictReason::ChangedOnHost)));
        };
        if digest_of(&host) != chosen.old_digest {
            return Ok(Err(Decision::Conflict(ConflictReason::ChangedOnHost)));
        }
        if host == chosen.contents {
            return Ok(Err(Decision::Skip));
        }
        Ok(Ok(Contents::Composed(chosen.contents.clone())))
    }

    fn merged(
        &self,
        change: &Change,
        base: &dyn BaseContents,
    ) -> Result<std::result::Result<Contents, ConflictReason>> {
        let (Some(old), Some(new)) = (change.old_at, change.new_at) else {
            return Ok(Err(ConflictReason::CannotMerge));
        };
        if change.kind != ChangeKind::Modified || change.entry_kind() != EntryKind::File {
            return Ok(Err(ConflictReason::CannotMerge));
        }
        let Some(base) = base.base(&change.path) else { return Ok(Err(ConflictReason::NoBase)) };
        let host = read(self.request.layers, &change.path, old, MAX_TEXT_BYTES)?;
        let session = read(self.request.layers, &change.path, new, MAX_TEXT_BYTES)?;
        let (Some(host), Some(session)) = (host, session) else {
            return Ok(Err(ConflictReason::CannotMerge));
        };
        if [&base, &host, &session].into_iter().any(|content| is_binary(content)) {
            return Ok(Err(ConflictReason::CannotMerge));
        }
        let merged = merge(&base, &host, &session);
        Ok(merged.map(Contents::Composed).ok_or(ConflictReason::CannotMerge))
    }

    /// What the host would run later, by name or by what would be written.
    fn judged(
        &self,
        change: &Change,
        contents: Contents,
    ) -> Result<std::result::Result<Contents, Objection>> {
        let Some(new) = change.new.as_ref().filter(|_| change.kind != ChangeKind::Touched) else {
            return Ok(Ok(contents));
        };
        let coming = Coming { path: &change.path, kind: new.kind, target: new.target.as_deref() };
        match self.request.judge.judge(self.tree, coming) {
            Verdict::Allowed => Ok(Ok(contents)),
            Verdict::Refused(objection) => Ok(Err(objection)),
            Verdict::ByContents if change.kind == ChangeKind::ModeChanged => Ok(Ok(contents)),
            Verdict::ByContents => self.judged_by_contents(change, contents),
        }
    }

    fn judged_by_contents(
        &self,
        change: &Change,
        contents: Contents,
    ) -> Result<std::result::Result<Contents, Objection>> {
        let layers = self.request.layers;
        let bytes = match &contents {
            Contents::Judged(bytes) | Contents::Composed(bytes) => Some(bytes.clone()),
            Contents::OfSession => match change.new_at {
                Some(at) => read(layers, &change.path, at, MAX_CONFIG_BYTES)?,
                None => None,
            },
        };
        let Some(bytes) = bytes else {
            return Ok(Err(Objection::new("size", "the file is too long to be judged")));
        };
        let old = self.tree.content_before(&change.path, MAX_CONFIG_BYTES);
        let judge = self.request.judge;
        if let Err(objection) =
            judge.judge_contents(self.tree, &change.path, old.as_deref(), &bytes)
        {
            return Ok(Err(objection));
        }
        Ok(Ok(match contents {
            Contents::Composed(_) => contents,
            Contents::OfSession | Contents::Judged(_) => Contents::Judged(bytes),
        }))
    }

    /// A directory goes, or becomes something else, only with everything in it.
    fn drop_what_is_not_empty(&mut self) {
        let was_directory = |change: &Change| {
            change.old.as_ref().is_some_and(|old| old.kind == EntryKind::Directory)
        };
        let numbers: Vec<usize> = self.reviewed.accepted.keys().copied().rev().collect();
        for number in numbers {
            let change = &self.set.changes[number];
            let goes = matches!(change.kind, ChangeKind::Deleted | ChangeKind::TypeChanged);
            if !goes || !was_directory(change) {
                continue;
            }
            // What is below follows in the set.
            let count = self.set.below(&change.path).len();
            let stays = |number: &usize| !self.reviewed.accepted.contains_key(number);
            if (number + 1..=number + count).any(|number| stays(&number)) {
                self.reviewed.accepted.remove(&number);
                if change.kind == ChangeKind::TypeChanged {
                    let (path, reason) = (change.path.clone(), RefusedReason::PartOfItStays);
                    self.reviewed.refused.push(Refused { path, reason });
                }
            }
        }
    }
}

/// Whether it is in the place of something hidden, or takes it away with its directory.
fn touches_hidden(change: &Change, hidden: &Path) -> bool {
    let is_gone = matches!(change.kind, ChangeKind::Deleted | ChangeKind::TypeChanged);
    change.path.starts_with(hidden) || (is_gone && hidden.starts_with(&change.path))
}

/// Whatever the policy says.
fn objection_to_entry(change: &Change) -> Option<RefusedReason> {
    let is_reserved = |name: &OsStr| {
        let name = name.as_bytes().to_ascii_lowercase();
        RESERVED.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
    };
    if change.path.iter().any(is_reserved) {
        return Some(RefusedReason::ReservedName);
    }
    #[cfg(feature = "layers-off")]
    if crate::entry::UNREVIEWED.load(std::sync::atomic::Ordering::Relaxed) {
        return None;
    }
    let new = change.new.as_ref()?;
    match new.kind {
        EntryKind::File | EntryKind::Directory => None,
        EntryKind::Link => {
            let target = new.target.as_deref()?.as_os_str().as_bytes();
            let stays = link_stays_within(&change.path, target);
            (!stays).then_some(RefusedReason::LinkLeavesProject)
        }
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => Some(RefusedReason::SpecialFile),
    }
}
