//! Python environments in the project: editors start their interpreter and shells source their `activate` as
//! soon as the directory is opened.
//!
//! Only the files that start them are guarded; packages and their programs can be installed.

use crate::facts::{EntryKind, HostFacts};
use crate::host::Host;
use crate::indirect::Top;
use palisade_guard::GuardedPath;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Marks a directory as an environment and names its Python.
const MARK: &str = "pyvenv.cfg";
const STARTERS: [&str; 9] = [
    MARK,
    "bin/activate",
    "bin/activate.csh",
    "bin/activate.fish",
    "bin/activate.nu",
    "bin/activate.ps1",
    "bin/activate_this.py",
    "bin/python",
    "bin/python3",
];
const WHY: &str = "a Python environment that editors and shells start by themselves";

/// The environment that is active in the caller's shell.
pub fn active(facts: &HostFacts) -> Option<&Path> {
    facts.env.get(OsStr::new("VIRTUAL_ENV")).map(Path::new)
}

/// The guarded files of the environments directly below the project and of the active one, by their paths in
/// the sandbox.
pub(crate) fn guarded(
    root: &Path,
    top: &Top,
    active: Option<&Path>,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Vec<GuardedPath> {
    if inside(root).is_none() {
        return Vec::new();
    }
    let dirs = top.iter().filter(|(_, kind)| *kind == EntryKind::Dir);
    let dirs = dirs.map(|(name, _)| root.join(name));
    let mut environments: Vec<PathBuf> = dirs.chain(active.map(Path::to_owned)).collect();
    environments.dedup();
    environments
        .iter()
        .filter(|dir| dir.is_absolute() && host.exists(&dir.join(MARK)))
        .filter_map(|dir| Some((dir, inside(dir)?)))
        .flat_map(|(dir, place)| {
            let children = host.children(&dir.join("bin"));
            let versions = children.iter().filter_map(|(name, _)| {
                name.to_str()
                    .filter(|name| name.starts_with("python3."))
                    .map(|name| format!("bin/{name}"))
            });
            let paths = STARTERS.map(str::to_owned).into_iter().chain(versions);
            paths.map(|name| GuardedPath { path: place.join(name), why: WHY }).collect::<Vec<_>>()
        })
        .collect()
}
