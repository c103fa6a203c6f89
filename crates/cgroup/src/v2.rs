//! A run's group in the unified hierarchy.

use crate::controllers;
use crate::directory::{Directory, read_all};
use crate::disks;
use crate::entry::GroupEntry;
use crate::error::{CgroupError, Doing as _, Result};
use crate::group::{GroupUsage, Hits, Watched, lacks};
use crate::home::Home;
use crate::sweep::{group_name, sweep};
use crate::text::{keyed, number, pair};
use crate::v2_settings;
use palisade_plan::limit::{Controller, GroupCreation, GroupSettings};
use palisade_sys::proc::PollFlags;
use palisade_sys::{Errno, OFlags, SysError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

const EVENTS: &str = "memory.events";
const READING: &str = "reading a control group";
const GONE: &str = "somebody removed it or took its controllers away; the run cannot be held";

#[derive(Debug)]
pub(crate) struct Unified {
    /// Dropped before `home`, which can be undone only after this is removed.
    directory: Directory,
    home: Home,
    members: OwnedFd,
    memory_events: Option<OwnedFd>,
    /// A manager of the host could disable them again, and the limits with them.
    needed: BTreeSet<Controller>,
}

impl Unified {
    pub(crate) fn create(
        parent: &Path,
        available: &BTreeSet<Controller>,
        way: GroupCreation,
        settings: &GroupSettings,
        session: &str,
    ) -> Result<Self> {
        let needed = controllers::needed(settings);
        let counting = controllers::COUNTING.into_iter().filter(|it| available.contains(it));
        let wanted: BTreeSet<Controller> = counting.chain(needed.iter().copied()).collect();
        let home = Home::prepare(parent, way, session, &needed, &wanted)?;
        sweep(home.parent());
        let directory = Directory::make(home.parent(), OsStr::new(&group_name(session)))?;
        v2_settings::apply(&directory, settings)?;
        let members = directory.open("cgroup.procs", OFlags::WRONLY).doing(READING, GONE)?;
        let memory_events = match directory.open(EVENTS, OFlags::RDONLY) {
            Err(error) if error.errno == Errno::NOENT && settings.memory.is_none() => None,
            opened => Some(opened.doing(READING, GONE)?),
        };
        let unified = Self { directory, home, members, memory_events, needed };
        // A file that was never read counts as changed.
        unified.hits()?;
        Ok(unified)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn entry(&self) -> GroupEntry<'_> {
        GroupEntry { directory: Some(self.directory.fd()), members: vec![self.members.as_fd()] }
    }

    /// kernfs reports a change since the last read as an exceptional condition.
    pub(crate) fn events(&self) -> Option<Watched<'_>> {
        let interest = PollFlags::PRI;
        self.memory_events.as_ref().map(|events| Watched { fd: events.as_fd(), interest })
    }

    pub(crate) fn hits(&self) -> Result<Hits> {
        let memory = match &self.memory_events {
            Some(events) => {
                let path = self.directory.path().join(EVENTS);
                read_all(events, &path).doing(READING, GONE)?
            }
            None => String::new(),
        };
        // This file exists as long as the group does, whatever the controllers.
        let cpu = self.directory.read("cpu.stat").doing(READING, GONE)?;
        let hits = Hits {
            oom_kills: keyed(&memory, "oom_kill").unwrap_or(0),
            oom_expected: false,
            forks_refused: keyed(&self.read("pids.events")?, "max"),
            throttled_periods: keyed(&cpu, "nr_throttled"),
            throttled: keyed(&cpu, "throttled_usec").map(Duration::from_micros),
        };
        let is_gone = |controller: &&Controller| match controller {
            Controller::Pids => hits.forks_refused.is_none(),
            Controller::Cpu => hits.throttled_periods.is_none(),
            Controller::Io => !self.directory.has("io.max"),
            Controller::CpuSet => !self.directory.has("cpuset.cpus"),
            // Reading the open file fails in that case.
            Controller::Memory | Controller::Swap | Controller::CpuAccount => false,
        };
        match self.needed.iter().find(is_gone) {
            Some(gone) => Err(lacks(*gone)),
            None => Ok(hits),
        }
    }

    pub(crate) fn usage(&self) -> Result<GroupUsage> {
        let cpu = self.read("cpu.stat")?;
        let lone = |name| Ok::<_, CgroupError>(number(&self.read(name)?));
        let mut usage = GroupUsage {
            cpu_user: keyed(&cpu, "user_usec").map(Duration::from_micros),
            cpu_system: keyed(&cpu, "system_usec").map(Duration::from_micros),
            memory: lone("memory.current")?,
            memory_peak: lone("memory.peak")?,
            tasks: lone("pids.current")?,
            tasks_peak: lone("pids.peak")?,
            ..GroupUsage::default()
        };
        if let Some(io) = self.directory.read_if_there("io.stat").doing(READING, GONE)? {
            let sum = |key| Some(sum_of_disks(&io, key));
            usage.read_bytes = sum("rbytes");
            usage.written_bytes = sum("wbytes");
            usage.read_operations = sum("rios");
            usage.write_operations = sum("wios");
        }
        Ok(usage)
    }

    /// Empty if this kernel does not have the file.
    fn read(&self, name: &str) -> Result<String> {
        Ok(self.directory.read_if_there(name).doing(READING, GONE)?.unwrap_or_default())
    }

    pub(crate) fn kill(&self) -> Result<bool> {
        match self.directory.write("cgroup.kill", "1") {
            Ok(()) => Ok(true),
            Err(SysError { errno: Errno::NOENT, .. }) => Ok(false),
            Err(error) => Err(error).doing("killing everybody in a control group", GONE),
        }
    }

    pub(crate) fn remove(self, patience: Duration) -> Result<()> {
        let Self { directory, home, .. } = self;
        directory.remove(patience)?;
        home.leave()
    }
}

/// Disks built on others would count the same bytes twice.
fn sum_of_disks(io: &str, key: &str) -> u64 {
    let lines = io.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(disk, _)| !disks::is_stacked(disk))
        .filter_map(|(_, words)| pair(words, key))
        .sum()
}

#[cfg(test)]
#[path = "v2_tests.rs"]
mod tests;
