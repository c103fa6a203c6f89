//! Predicts the broker's answer to a write, for `sandbox why`.
//!
//! Asks the same judge that answers in a run, about the host's current state. It must never decide anything
//! itself.

use crate::brokered_trees::{BrokeredTrees, Placement};
use crate::judge::{Foreseen, Judge};
use crate::place::{GRANTS, ResolvedParent};
use crate::verdict::{Allowed, Coming, Denied};
use crate::{DIRECTORY, NO_MODE};
use palisade_guard::Matcher;
use palisade_plan::model::{Gate, Guard};
use rustix::fs::{CWD, openat};
use std::path::Path;

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteVerdict {
    Allowed,
    /// Depends on the content: git settings, Python path files.
    ByContent,
    Refused {
        rule: String,
        why: String,
    },
}

/// Whether a file could be written, or created in a directory. `inside` is its path in the view, without links.
pub fn foresee_write(guard: &Guard, inside: &Path, on_host: &Path) -> WriteVerdict {
    let ground = BrokeredTrees::of(Some(guard), None, Vec::new());
    match ground.standing(inside) {
        Placement::In(tree) => judged(guard, guard.matcher(), tree, (inside, on_host)),
        Placement::Unjudged | Placement::Elsewhere => WriteVerdict::Allowed,
    }
}

/// The same for a path that would be asked about: what the broker refuses stays refused after a yes.
pub fn foresee_granted_write(guard: &Guard, gate: &Gate, path: &Path) -> WriteVerdict {
    judged(guard, guard.matcher_for_grants(gate), Path::new(GRANTS), (path, path))
}

fn judged(
    guard: &Guard,
    matcher: Matcher,
    tree: &Path,
    (inside, on_host): (&Path, &Path),
) -> WriteVerdict {
    let judge = Judge::new(matcher, guard.limited.clone()).with_hooks(guard.hooks.clone());
    let judge = match top_on_host(tree, inside, on_host) {
        Some(top) => {
            judge.before_a_run(Foreseen { inside: tree.to_owned(), on_host: top.to_owned() })
        }
        None => judge,
    };
    let coming = if on_host.is_dir() { Coming::Directory } else { Coming::Written };
    let judged = match place(tree, inside, on_host) {
        Some(place) => judge.may_come(&place, coming),
        None => judge.may_come_later(tree, inside).map(|()| Allowed::Plainly),
    };
    match judged {
        Ok(Allowed::AsJudgedContent) => WriteVerdict::ByContent,
        Ok(Allowed::Plainly | Allowed::AsNewborn | Allowed::AsOldRepository) => {
            WriteVerdict::Allowed
        }
        Err(Denied { rule, why }) => WriteVerdict::Refused { rule, why },
    }
}

/// The top of the tree, as far above the path on the host as inside.
fn top_on_host<'p>(tree: &Path, inside: &Path, on_host: &'p Path) -> Option<&'p Path> {
    let depth = inside.strip_prefix(tree).ok()?.components().count();
    on_host.ancestors().nth(depth)
}

/// None where the directory around it is not there.
fn place(tree: &Path, inside: &Path, on_host: &Path) -> Option<ResolvedParent> {
    Some(ResolvedParent {
        parent: openat(CWD, on_host.parent()?, DIRECTORY, NO_MODE).ok()?,
        name: inside.file_name()?.to_owned(),
        path: inside.to_owned(),
        tree: Some(tree.to_owned()),
        is_directory_meant: false,
    })
}

#[cfg(test)]
#[path = "foresee_tests.rs"]
mod tests;
