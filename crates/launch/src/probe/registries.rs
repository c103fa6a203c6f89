//! Which hosts package managers are configured to use: read only where a policy asks for it.
//!
//! Files are read only if no command in a sandbox could have written them, and only the caller or the
//! administrator did, wherever a path leads.

use super::RealTree;
use palisade_hosts::HostEntry;
use palisade_hosts::registry::{Files, Tool, ToolContext, find};
use palisade_plan::facts::{HostFacts, HostTree as _};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What the tools are configured to use.
#[derive(Clone, Debug, Default)]
pub struct Registries {
    /// A tool that names no host has none.
    pub hosts: BTreeMap<Tool, Vec<HostEntry>>,
    /// Settings to pass to the tools where their configuration files are hidden. They contain no secrets.
    pub variables: BTreeMap<OsString, OsString>,
    /// Settings that were found and not followed, in words.
    pub notes: Vec<String>,
}

/// `writable` are the paths a command could have written to, without links.
pub fn registries(
    tools: &[Tool],
    facts: &HostFacts,
    project: &Path,
    writable: &[PathBuf],
) -> Registries {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let around = ToolContext { home: facts.home.as_deref(), project: &project, env: &facts.env };
    let files = Trusted { project: &project, writable, uid: facts.uid, gid: facts.gid };
    let mut registries = Registries::default();
    for tool in tools {
        let setup = find(*tool, &around, &files);
        registries.hosts.insert(*tool, setup.hosts);
        registries.notes.extend(setup.notes);
        let told = setup.variables.into_iter();
        registries.variables.extend(told.map(|(name, value)| (name.into(), value.into())));
    }
    registries
}

/// Files that only the caller and the administrator can have written.
struct Trusted<'a> {
    project: &'a Path,
    writable: &'a [PathBuf],
    uid: u32,
    gid: u32,
}

impl Trusted<'_> {
    /// A link in a writable directory leads where the command wants, so the path as given counts too.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let could_be_written = |path: &Path| {
            path.starts_with(self.project)
                || self.writable.iter().any(|place| path.starts_with(place))
        };
        (!could_be_written(path) && !could_be_written(&real)).then_some(real)
    }

    fn is_own(&self, real: &Path) -> bool {
        let Ok(found) = real.symlink_metadata() else { return false };
        let by_group = found.mode() & 0o020 != 0 && ![0, self.gid].contains(&found.gid());
        let by_others = found.mode() & 0o002 != 0;
        [0, self.uid].contains(&found.uid()) && !by_group && !by_others
    }
}

impl Files for Trusted<'_> {
    fn read(&self, path: &Path, longest: usize) -> Option<Vec<u8>> {
        let real = self.real(path).filter(|real| self.is_own(real))?;
        let content = RealTree.read_part(&real, 0, longest.saturating_add(1))?;
        (content.len() <= longest).then_some(content)
    }

    fn children(&self, directory: &Path) -> Vec<OsString> {
        let children = self.real(directory).map(|real| RealTree.children(&real));
        children.into_iter().flatten().map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
#[path = "registries_tests.rs"]
mod tests;
