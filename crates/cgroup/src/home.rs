//! Prepares a parent group in the unified hierarchy for a run's group: enables controllers, and if our own group is to
//! be divided, first moves us into a leaf of it. Must always undo its changes.

use crate::bus;
use crate::controllers;
use crate::directory::{read_at, write_at};
use crate::error::{CgroupError, Doing as _, Result};
use crate::group::lacks;
use crate::hierarchy::Hierarchies;
use palisade_plan::limit::{Controller, GroupCreation};
use palisade_sys::{At as _, Errno, Mode, proc};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The leaf for the supervisor when its own group is divided.
pub(crate) const LEAF: &str = "palisade-supervisor";
const STEP: &str = "dividing our control group";

/// A parent group for the run's group.
#[derive(Debug)]
pub(crate) struct Home {
    parent: PathBuf,
    /// Whether we moved into a leaf for it.
    is_divided: bool,
    /// A forked child has a copy of this, and must not undo what its parent did.
    maker: u32,
}

/// The root group has no type, and may contain both processes and groups.
pub(crate) fn is_the_root(group: &Path) -> bool {
    group.join("cgroup.procs").exists() && !group.join("cgroup.type").exists()
}

impl Home {
    /// Controllers in `wanted` but not in `needed` only count, and may fail.
    pub(crate) fn prepare(
        parent: &Path,
        way: GroupCreation,
        session: &str,
        needed: &BTreeSet<Controller>,
        wanted: &BTreeSet<Controller>,
    ) -> Result<Self> {
        let parent = match way {
            GroupCreation::SystemdScope => own_scope(session)?,
            GroupCreation::OwnGroup | GroupCreation::BesideOwn => parent.to_owned(),
        };
        let mut home = Self { parent, is_divided: false, maker: std::process::id() };
        if way != GroupCreation::BesideOwn {
            home.divide()?;
            enable(&home.parent, needed, wanted)?;
        }
        let enabled = read_at(&home.parent, "cgroup.subtree_control").doing(STEP, LOOK)?;
        let enabled = controllers::named_in(&enabled);
        match needed.iter().find(|controller| !enabled.contains(controller)) {
            Some(lacking) => Err(lacks(*lacking)),
            None => Ok(home),
        }
    }

    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// A group with processes of its own cannot delegate controllers, so we move into a leaf.
    fn divide(&mut self) -> Result<()> {
        if is_the_root(&self.parent) {
            return Ok(());
        }
        self.is_divided = true;
        let members = read_at(&self.parent, "cgroup.procs").doing(STEP, LOOK)?;
        let is_in = members.lines().any(|member| member == self.maker.to_string());
        if !is_in {
            return Ok(());
        }
        let leaf = self.parent.join(LEAF);
        match rustix::fs::mkdir(&leaf, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            refused => refused.at("mkdir", &leaf).doing(STEP, LOOK)?,
        }
        write_at(&leaf, "cgroup.procs", "0").doing(STEP, LOOK)
    }

    /// Undoes all changes, unless another run's group still needs them.
    pub(crate) fn leave(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_divided) {
            return Ok(());
        }
        let leaf = self.parent.join(LEAF);
        let is_needed = std::fs::read_dir(&self.parent)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name() != LEAF && entry.path().is_dir());
        if is_needed {
            return Ok(());
        }
        let enabled = read_at(&self.parent, "cgroup.subtree_control").doing(STEP, LOOK)?;
        let words: Vec<String> =
            enabled.split_whitespace().map(|name| format!("-{name}")).collect();
        if !words.is_empty() {
            write_at(&self.parent, "cgroup.subtree_control", &words.join(" ")).doing(STEP, LOOK)?;
        }
        write_at(&self.parent, "cgroup.procs", "0").doing(STEP, LOOK)?;
        match empty_and_remove(&leaf, &self.parent) {
            // New processes may keep appearing there.
            Ok(()) | Err(Errno::NOENT | Errno::BUSY) => Ok(()),
            refused => refused.at("rmdir", &leaf).doing(STEP, LOOK),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.maker == std::process::id() {
            let _ = self.put_back();
        }
    }
}

/// The broker and the keeper were started in the leaf, and one of them may not have ended yet.
fn empty_and_remove(leaf: &Path, parent: &Path) -> Result<(), Errno> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(2);
    for _ in 0..TRIES {
        for member in read_at(leaf, "cgroup.procs").unwrap_or_default().lines() {
            // A process that has just ended cannot be moved, and need not be.
            let _ = write_at(parent, "cgroup.procs", member);
        }
        match rustix::fs::rmdir(leaf) {
            Err(Errno::BUSY) => {}
            removed => return removed,
        }
        if proc::poll(&mut [], Some(PAUSE)).is_err() {
            break;
        }
    }
    rustix::fs::rmdir(leaf)
}

const LOOK: &str = "sandbox doctor says which control groups can be used here";

/// One write enables several controllers together or none.
fn enable(
    parent: &Path,
    needed: &BTreeSet<Controller>,
    wanted: &BTreeSet<Controller>,
) -> Result<()> {
    const FILE: &str = "cgroup.subtree_control";
    let enabled = controllers::named_in(&read_at(parent, FILE).doing(STEP, LOOK)?);
    let words = |controllers: &BTreeSet<Controller>| -> Vec<String> {
        let lacking =
            |controller| controllers.contains(controller) && !enabled.contains(controller);
        let names = controllers::V2.iter().filter(|(controller, _)| lacking(controller));
        names.map(|(_, name)| format!("+{name}")).collect()
    };
    let now = words(needed);
    if !now.is_empty() {
        write_at(parent, FILE, &now.join(" ")).doing(
            STEP,
            "a process that came into the group meanwhile (EBUSY) or one with a realtime priority \
             (EINVAL) prevents it; end it, or waive the limit",
        )?;
    }
    for word in words(wanted).iter().filter(|word| !now.contains(word)) {
        let _ = write_at(parent, FILE, word);
    }
    Ok(())
}

/// The scope into which the user's service manager moved us.
fn own_scope(session: &str) -> Result<PathBuf> {
    let unit = bus::start_scope(session)?;
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = Hierarchies::parse(&mounts, &membership).v2.map(|spot| spot.own);
    let is_the_scope = |own: &PathBuf| own.file_name().is_some_and(|name| name == unit.as_str());
    own.filter(is_the_scope).ok_or_else(|| CgroupError::Systemd {
        step: "finding the scope",
        why: format!("{unit} was made, but we are not in it"),
    })
}
