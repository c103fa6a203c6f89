//! One run's control group, of either version.

use crate::controllers;
use crate::entry::GroupEntry;
use crate::error::{CgroupError, Result};
use crate::group::{GroupUsage, Hits, Watched, lacks};
use crate::v1::Groups;
use crate::v2::Unified;
use palisade_plan::limit::{CgroupHome, Group};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After the last process has ended, a group stays busy for milliseconds at most.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The group of a run, with its limits set. Dropping it removes it if it is empty; [`RunGroup::remove`] waits for that
/// and reports errors.
#[derive(Debug)]
pub struct RunGroup(Version);

#[derive(Debug)]
enum Version {
    V2(Unified),
    V1(Groups),
}

impl RunGroup {
    /// Creates the group and sets its limits. First removes what killed supervisors left there.
    pub fn create(group: &Group, session: &str) -> Result<Self> {
        check_name(session)?;
        let needed = controllers::needed(&group.settings);
        if let Some(lacking) = needed.iter().find(|controller| !group.home.has(**controller))
            && !matches!(group.home, CgroupHome::Nowhere { .. })
        {
            return Err(lacks(*lacking));
        }
        let version = match &group.home {
            CgroupHome::V2 { parent, controllers, way } => {
                Version::V2(Unified::create(parent, controllers, *way, &group.settings, session)?)
            }
            CgroupHome::V1 { parents } => {
                Version::V1(Groups::create(parents, &group.settings, session)?)
            }
            CgroupHome::Nowhere { why } => return Err(CgroupError::Nowhere { why: why.clone() }),
        };
        Ok(Self(version))
    }

    /// One, or one per hierarchy in v1.
    pub fn directories(&self) -> Vec<PathBuf> {
        match &self.0 {
            Version::V2(unified) => vec![unified.path().to_owned()],
            Version::V1(groups) => groups.paths().map(Path::to_owned).collect(),
        }
    }

    /// For the first process of the run.
    pub fn entry(&self) -> GroupEntry<'_> {
        match &self.0 {
            Version::V2(unified) => unified.entry(),
            Version::V1(groups) => groups.entry(),
        }
    }

    /// Ready when memory ran out, and occasionally for less. [`RunGroup::hits`] resets them.
    pub fn events(&self) -> Vec<Watched<'_>> {
        match &self.0 {
            Version::V2(unified) => unified.events(),
            Version::V1(groups) => groups.events(),
        }
        .into_iter()
        .collect()
    }

    /// After an error the limits may no longer be enforced: the run has to end.
    pub fn hits(&self) -> Result<Hits> {
        match &self.0 {
            Version::V2(unified) => unified.hits(),
            Version::V1(groups) => groups.hits(),
        }
    }

    pub fn usage(&self) -> Result<GroupUsage> {
        match &self.0 {
            Version::V2(unified) => unified.usage(),
            Version::V1(groups) => groups.usage(),
        }
    }

    /// Kills all processes in the group, and returns whether the kernel supports that (v2, 5.14). Otherwise, the end of
    /// the run's pid 1 kills them.
    pub fn kill(&self) -> Result<bool> {
        match &self.0 {
            Version::V2(unified) => unified.kill(),
            Version::V1(_) => Ok(false),
        }
    }

    /// Removes the group after the last process has ended.
    pub fn remove(self) -> Result<()> {
        match self.0 {
            Version::V2(unified) => unified.remove(REMOVE_TIMEOUT),
            Version::V1(groups) => groups.remove(REMOVE_TIMEOUT),
        }
    }
}

/// It becomes part of a directory's name and of a unit's.
fn check_name(session: &str) -> Result<()> {
    const MAX_NAME_BYTES: usize = 64;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_right =
        !session.is_empty() && session.len() <= MAX_NAME_BYTES && session.bytes().all(is_plain);
    is_right.then_some(()).ok_or_else(|| CgroupError::Name { name: session.to_owned() })
}

#[cfg(test)]
#[path = "run_group_tests.rs"]
mod tests;
