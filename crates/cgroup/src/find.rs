//! Finds where a run's group could be created. It is part of every start, so it reads only a few small files. Must
//! never create, move or request anything.

use crate::bus;
use crate::controllers;
use crate::directory::read_at;
use crate::hierarchy::{Hierarchies, Spot};
use crate::home::{LEAF, is_the_root};
use palisade_plan::limit::{CgroupHome, Controller, GroupCreation};
use rustix::fs::Access;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What this process can use.
pub fn find() -> CgroupHome {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Look {
        hierarchies: Hierarchies::parse(&mounts, &membership),
        pid: std::process::id(),
        uid: rustix::process::getuid().as_raw(),
        has_bus: bus::address().is_some(),
        host_swaps: host_swaps(),
    }
    .choose()
}

/// Whether this host has any swap.
pub(crate) fn host_swaps() -> bool {
    // The first line is a heading.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

/// The facts that were found.
#[derive(Debug)]
struct Look {
    hierarchies: Hierarchies,
    pid: u32,
    uid: u32,
    /// The user's message bus is reachable.
    has_bus: bool,
    host_swaps: bool,
}

/// A location in the unified hierarchy.
#[derive(Debug)]
struct GroupPath {
    parent: PathBuf,
    controllers: BTreeSet<Controller>,
    way: GroupCreation,
}

impl Look {
    /// Each controller is in one version only; the version with more controllers is used.
    fn choose(&self) -> CgroupHome {
        let v1 = self.v1();
        match self.v2() {
            Some(GroupPath { parent, controllers, way }) if controllers.len() >= v1.len() => {
                CgroupHome::V2 { parent, controllers, way }
            }
            _ if !v1.is_empty() => CgroupHome::V1 { parents: v1 },
            _ => CgroupHome::Nowhere { why: self.why_nowhere() },
        }
    }

    fn v1(&self) -> BTreeMap<Controller, PathBuf> {
        let mut parents = BTreeMap::new();
        for (controller, spot) in &self.hierarchies.v1 {
            if is_writable(&spot.own) {
                parents.insert(*controller, spot.own.clone());
            }
        }
        if let Some(memory) = parents.get(&Controller::Memory)
            && (!self.host_swaps || memory.join("memory.memsw.limit_in_bytes").exists())
        {
            parents.insert(Controller::Swap, memory.clone());
        }
        parents
    }

    fn v2(&self) -> Option<GroupPath> {
        let spot = self.hierarchies.v2.as_ref()?;
        let mut place = self.own(spot).or_else(|| {
            let (beside, scope) = (self.beside(spot), self.scope(spot));
            let count =
                |place: &Option<GroupPath>| place.as_ref().map_or(0, |it| it.controllers.len());
            // A scope costs a conversation with systemd: only if it provides more controllers.
            if count(&scope) > count(&beside) { scope } else { beside }
        })?;
        if place.controllers.contains(&Controller::Memory) && self.counts_swap(spot) {
            place.controllers.insert(Controller::Swap);
        }
        Some(place)
    }

    /// Below our own group, which must contain no other process: a group with processes cannot be divided, and other
    /// processes are not ours to move. Only the root group is exempt from that rule.
    fn own(&self, spot: &Spot) -> Option<GroupPath> {
        let (parent, is_moved) = match spot.own.file_name() {
            Some(name) if name == LEAF => (spot.own.parent()?, true),
            _ => (spot.own.as_path(), false),
        };
        let is_free = is_moved || is_the_root(parent) || self.is_alone_in(parent);
        let files = ["", "cgroup.procs", "cgroup.subtree_control"];
        let is_ours = files.iter().all(|file| is_writable(&parent.join(file)));
        (is_free && is_ours).then_some(())?;
        place(parent, "cgroup.controllers", GroupCreation::OwnGroup)
    }

    fn is_alone_in(&self, group: &Path) -> bool {
        let is_domain = read_at(group, "cgroup.type").is_ok_and(|kind| kind.trim() == "domain");
        let members = read_at(group, "cgroup.procs").unwrap_or_default();
        is_domain && members.trim() == self.pid.to_string()
    }

    /// To move a process, we need write access to the common ancestor of both groups, which is the parent.
    fn beside(&self, spot: &Spot) -> Option<GroupPath> {
        let parent = spot.own.parent().filter(|_| spot.own != spot.top)?;
        let is_ours = ["", "cgroup.procs"].iter().all(|file| is_writable(&parent.join(file)));
        is_ours.then_some(())?;
        place(parent, "cgroup.subtree_control", GroupCreation::BesideOwn)
    }

    /// The user's service manager can delegate what was delegated to it.
    fn scope(&self, spot: &Spot) -> Option<GroupPath> {
        self.has_bus.then_some(())?;
        let uid = self.uid;
        let manager = spot.top.join(format!("user.slice/user-{uid}.slice/user@{uid}.service"));
        let given = place(&manager, "cgroup.controllers", GroupCreation::SystemdScope)?;
        Some(GroupPath { parent: spot.top.clone(), ..given })
    }

    /// If no group shows it, we assume the kernel's default; setting the limit will show.
    fn counts_swap(&self, spot: &Spot) -> bool {
        const FILE: &str = "memory.swap.max";
        !self.host_swaps || spot.own.join(FILE).exists() || !spot.own.join("memory.max").exists()
    }

    fn why_nowhere(&self) -> String {
        let Hierarchies { v2, v1 } = &self.hierarchies;
        let v2_controllers = v2.as_ref().map(|spot| {
            let there = read_at(&spot.own, "cgroup.controllers").unwrap_or_default();
            controllers::named_in(&there).len()
        });
        let has_controllers = v2.as_ref().filter(|_| v2_controllers != Some(0));
        if let Some(spot) =
            has_controllers.or(v1.values().next()).filter(|it| is_read_only(&it.own))
        {
            return format!(
                "{} is on a read-only file system, which holds for root too (sudo mount -o remount,rw {}; a \
                 container needs to be given groups it can write)",
                spot.own.display(),
                spot.top.display()
            );
        }
        match (v2, v1.values().next()) {
            (None, None) => "no hierarchy is mounted that shows our own group (sudo mount -t \
                             cgroup2 none /sys/fs/cgroup)"
                .to_owned(),
            (Some(spot), None) if v2_controllers == Some(0) => format!(
                "{} has no controllers; the groups above have to enable them in \
                 cgroup.subtree_control",
                spot.own.display()
            ),
            (Some(spot), _) if v2_controllers != Some(0) => format!(
                "{} cannot be divided: it is not ours or not ours alone, and there is no user's \
                 systemd to ask (systemd-run --user --scope -p Delegate=yes -- sandbox run …)",
                spot.own.display()
            ),
            (_, Some(spot)) => format!(
                "{} belongs to somebody else, as control groups of version 1 do for all but root",
                spot.own.display()
            ),
            (Some(spot), None) => format!("{} cannot be used", spot.own.display()),
        }
    }
}

/// `None` if there is no controller that limits anything.
fn place(parent: &Path, list: &str, way: GroupCreation) -> Option<GroupPath> {
    let controllers = controllers::named_in(&read_at(parent, list).ok()?);
    (!controllers.is_empty()).then(|| GroupPath { parent: parent.to_owned(), controllers, way })
}

/// Also checks that the mount is writable, which applies to root too.
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

fn is_read_only(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK) == Err(Errno::ROFS)
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
