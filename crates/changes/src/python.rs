//! Path files of Python environments (`site-packages/*.pth`): the interpreter runs some of their lines at every start. The
//! rules are those of the broker (`broker/src/python.rs`).

use crate::entry::EntryKind;
use crate::merged_tree::MergedTree;
use crate::objection::{Objection, Verdict};
use palisade_guard::{comparable, path_file};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const PACKAGES: &str = "site-packages";

pub(crate) fn is_path_file(name: &OsStr) -> bool {
    comparable(name.as_bytes()).to_ascii_lowercase().ends_with(b".pth")
}

/// None outside of an environment that the host knows.
pub(crate) fn judge(tree: &MergedTree<'_>, path: &Path, kind: EntryKind) -> Option<Verdict> {
    let (dir, name) = (path.parent()?, path.file_name()?);
    if is_path_file(name) && is_named(dir, PACKAGES) {
        if !tree.existed(environment_of(dir).unwrap_or(dir)) {
            return None;
        }
        return match kind {
            EntryKind::File => Some(Verdict::ByContents),
            EntryKind::Directory => None,
            _ => Some(Verdict::Refused(denied())),
        };
    }
    // A link that becomes an ancestor of path files.
    let environment = environment_of(path)?;
    let is_known = tree.existed(environment) && tree.exists(&environment.join("pyvenv.cfg"));
    (kind == EntryKind::Link && is_known).then(|| Verdict::Refused(denied()))
}

pub(crate) fn judge_path_file(old: Option<&[u8]>, new: &[u8]) -> Result<(), Objection> {
    if path_file::brings_code(old, new) { Err(denied()) } else { Ok(()) }
}

fn denied() -> Objection {
    let why = "Python runs its `import` lines at every start, and editors start it by themselves";
    Objection::new("site-packages/*.pth", why)
}

fn is_named(dir: &Path, wanted: &str) -> bool {
    dir.file_name().is_some_and(|name| name == wanted)
}

/// For `lib`, `lib/python3.12` and `lib/python3.12/site-packages`: the environment.
fn environment_of(path: &Path) -> Option<&Path> {
    let is_version =
        |dir: &Path| dir.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"));
    let mut dir = path;
    if is_named(dir, PACKAGES) {
        dir = dir.parent().filter(|above| is_version(above))?;
    }
    if is_version(dir) {
        dir = dir.parent()?;
    }
    if is_named(dir, "lib") { dir.parent() } else { None }
}
