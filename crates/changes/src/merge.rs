//! Merges two versions of a text by the one that both come from (diff3). Either both sets of changes fit together or there
//! is no result: never a file with conflict marks, which a build would read.

use crate::hunks::{lines, operations};
use similar::DiffOp;
use std::ops::Range;

/// None if both sides changed the same lines, or lines next to each other, in different ways.
pub(crate) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut ours_edits = edits(&base, &ours).into_iter().peekable();
    let mut theirs_edits = edits(&base, &theirs).into_iter().peekable();
    let mut merged = Vec::new();
    let mut done = 0;
    loop {
        let next = match (ours_edits.peek(), theirs_edits.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if one.same_as(other, &ours, &theirs) => {
                theirs_edits.next();
                ours_edits.next().map(|edit| (edit, &ours))
            }
            (Some(one), Some(other)) if one.touches(other) => return None,
            (Some(one), Some(other)) if one.base.start > other.base.start => {
                theirs_edits.next().map(|edit| (edit, &theirs))
            }
            (Some(_), _) => ours_edits.next().map(|edit| (edit, &ours)),
            (None, Some(_)) => theirs_edits.next().map(|edit| (edit, &theirs)),
        };
        let (edit, source) = next?;
        merged.extend(base[done..edit.base.start].concat());
        merged.extend(source[edit.new].concat());
        done = edit.base.end;
    }
    merged.extend(base[done..].concat());
    Some(merged)
}

/// Lines of the base that became other lines.
#[derive(Clone, Debug)]
struct Edit {
    base: Range<usize>,
    new: Range<usize>,
}

impl Edit {
    fn same_as(&self, other: &Self, ours: &[&[u8]], theirs: &[&[u8]]) -> bool {
        self.base == other.base && ours[self.new.clone()] == theirs[other.new.clone()]
    }

    /// Neighbours count, too: which of them comes first is not known.
    fn touches(&self, other: &Self) -> bool {
        self.base.start <= other.base.end && other.base.start <= self.base.end
    }
}

fn edits(base: &[&[u8]], new: &[&[u8]]) -> Vec<Edit> {
    let changed = |operation: &DiffOp| !matches!(operation, DiffOp::Equal { .. });
    let mut edits: Vec<Edit> = Vec::new();
    for operation in operations(base, new).iter().filter(|operation| changed(operation)) {
        let (base, new) = (operation.old_range(), operation.new_range());
        match edits.last_mut() {
            Some(last) if last.base.end == base.start && last.new.end == new.start => {
                last.base.end = base.end;
                last.new.end = new.end;
            }
            _ => edits.push(Edit { base, new }),
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::merge;

    fn merged(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())?;
        Some(String::from_utf8(merged).unwrap())
    }

    #[test]
    fn changes_in_different_places_fit_together() {
        let base = "1\n2\n3\n4\n5\n6\n";
        let both = merged(base, "1\nB\n3\n4\n5\n6\n", "1\n2\n3\n4\nE\n6\n7\n");
        assert_eq!(both.as_deref(), Some("1\nB\n3\n4\nE\n6\n7\n"));
        assert_eq!(merged(base, base, "x\n").as_deref(), Some("x\n"));
        assert_eq!(merged(base, "x\n", base).as_deref(), Some("x\n"));
        assert_eq!(merged("", "", "x").as_deref(), Some("x"));
    }

    #[test]
    fn the_same_change_on_both_sides_is_made_once() {
        assert_eq!(merged("1\n2\n", "1\nX\n", "1\nX\n").as_deref(), Some("1\nX\n"));
    }

    #[test]
    fn different_changes_of_the_same_lines_do_not_merge() {
        assert_eq!(merged("1\n2\n3\n", "1\nX\n3\n", "1\nY\n3\n"), None);
        assert_eq!(merged("1\n2\n3\n", "1\nX\n3\n", "1\n2\nY\n"), None, "next to each other");
        assert_eq!(merged("", "a\n", "b\n"), None);
    }
}
