//! A run's groups in the separate hierarchies of v1: one directory in each that limits or counts.

use crate::controllers;
use crate::directory::Directory;
use crate::disks;
use crate::entry::GroupEntry;
use crate::error::{CgroupError, Doing as _, Result};
use crate::group::{GroupUsage, Hits, Watched};
use crate::sweep::{group_name, sweep};
use crate::text::{keyed, number};
use crate::v1_settings;
use palisade_plan::limit::{Controller, GroupSettings};
use palisade_sys::proc::PollFlags;
use palisade_sys::{At as _, Errno, OFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

const READING: &str = "reading a control group";
const GONE: &str = "somebody removed it; the run cannot be held";
const WATCHING: &str = "asking to be told when memory runs out";

#[derive(Debug)]
pub(crate) struct Groups {
    /// One per hierarchy; some have several controllers.
    directories: Vec<(BTreeSet<Controller>, Directory)>,
    members: Vec<OwnedFd>,
    oom: Option<OomBell>,
}

/// The kernel signals it before it kills a process.
#[derive(Debug)]
struct OomBell {
    event: OwnedFd,
    rang: Cell<bool>,
    kills_heard_of: Cell<u64>,
}

impl Groups {
    pub(crate) fn create(
        parents: &BTreeMap<Controller, PathBuf>,
        settings: &GroupSettings,
        session: &str,
    ) -> Result<Self> {
        // Only those: each costs a directory to create and to remove, and what no group counts is measured from
        // outside.
        let mut wanted = controllers::needed(settings);
        wanted.insert(Controller::CpuAccount);
        let mut hierarchies: BTreeMap<&Path, BTreeSet<Controller>> = BTreeMap::new();
        for (controller, parent) in parents.iter().filter(|(it, _)| wanted.contains(it)) {
            hierarchies.entry(parent).or_default().insert(*controller);
        }
        let limits_io = settings.io_bandwidth.or(settings.iops).is_some();
        let disks = if limits_io { disks::whole() } else { Vec::new() };
        let name = group_name(session);
        let mut groups = Self { directories: Vec::new(), members: Vec::new(), oom: None };
        for (parent, controllers) in hierarchies {
            sweep(parent);
            let directory = Directory::make(parent, OsStr::new(&name))?;
            for controller in &controllers {
                v1_settings::apply(*controller, &directory, settings, &disks)?;
            }
            // Not cgroup.procs: it takes a lock that waits for all CPUs, five milliseconds and more. A single thread
            // that moves itself does not need it (5.11).
            let members = directory.open("tasks", OFlags::WRONLY).doing(READING, GONE)?;
            groups.members.push(members);
            groups.directories.push((controllers, directory));
        }
        if let (Some(memory), Some(_)) = (groups.of(Controller::Memory), settings.memory) {
            groups.oom = Some(OomBell::hang(memory)?);
        }
        Ok(groups)
    }

    fn of(&self, controller: Controller) -> Option<&Directory> {
        let held = self.directories.iter().find(|(held, _)| held.contains(&controller));
        held.map(|(_, directory)| directory)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(|(_, directory)| directory.path())
    }

    pub(crate) fn entry(&self) -> GroupEntry<'_> {
        let members = self.members.iter().map(|members| members.as_fd()).collect();
        GroupEntry { directory: None, members }
    }

    pub(crate) fn events(&self) -> Option<Watched<'_>> {
        let interest = PollFlags::IN;
        self.oom.as_ref().map(|bell| Watched { fd: bell.event.as_fd(), interest })
    }

    pub(crate) fn hits(&self) -> Result<Hits> {
        // Before the count is read: a later kill signals again.
        let rang = self.oom.as_ref().map_or(Ok(false), OomBell::answer)?;
        let memory = self.read_surely(Controller::Memory, "memory.oom_control")?;
        let cpu = self.read_surely(Controller::Cpu, "cpu.stat")?;
        let pids = self.read_surely(Controller::Pids, "pids.events")?;
        let oom_kills = keyed(&memory, "oom_kill").unwrap_or(0);
        Ok(Hits {
            oom_kills,
            oom_expected: self.oom.as_ref().is_some_and(|bell| bell.is_pending(rang, oom_kills)),
            forks_refused: keyed(&pids, "max"),
            throttled_periods: keyed(&cpu, "nr_throttled"),
            throttled: keyed(&cpu, "throttled_time").map(Duration::from_nanos),
        })
    }

    pub(crate) fn usage(&self) -> Result<GroupUsage> {
        let lone = |controller, name| Ok::<_, CgroupError>(number(&self.read(controller, name)?));
        let cpu = lone(Controller::CpuAccount, "cpuacct.usage")?.map(Duration::from_nanos);
        let (user, system) = split(cpu, &self.read(Controller::CpuAccount, "cpuacct.stat")?);
        let bytes = self.read(Controller::Io, "blkio.throttle.io_service_bytes_recursive")?;
        let operations = self.read(Controller::Io, "blkio.throttle.io_serviced_recursive")?;
        Ok(GroupUsage {
            cpu_user: user,
            cpu_system: system,
            memory: lone(Controller::Memory, "memory.usage_in_bytes")?,
            memory_peak: lone(Controller::Memory, "memory.max_usage_in_bytes")?,
            tasks: lone(Controller::Pids, "pids.current")?,
            tasks_peak: lone(Controller::Pids, "pids.peak")?,
            read_bytes: sum_of_disks(&bytes, "Read"),
            written_bytes: sum_of_disks(&bytes, "Write"),
            read_operations: sum_of_disks(&operations, "Read"),
            write_operations: sum_of_disks(&operations, "Write"),
        })
    }

    /// Empty if this kernel does not have the file, or the hierarchy is not ours.
    fn read(&self, controller: Controller, name: &str) -> Result<String> {
        let text = self.of(controller).map(|directory| directory.read_if_there(name)).transpose();
        Ok(text.doing(READING, GONE)?.flatten().unwrap_or_default())
    }

    /// Every kernel has these files: if one cannot be read, the group is gone.
    fn read_surely(&self, controller: Controller, name: &str) -> Result<String> {
        let text = self.of(controller).map(|directory| directory.read(name)).transpose();
        Ok(text.doing(READING, GONE)?.unwrap_or_default())
    }

    pub(crate) fn remove(self, patience: Duration) -> Result<()> {
        let Self { directories, members, oom } = self;
        drop((members, oom));
        let mut outcome = Ok(());
        for (_, directory) in directories {
            outcome = outcome.and(directory.remove(patience));
        }
        outcome
    }
}

impl OomBell {
    /// Registers with `cgroup.event_control`; see the kernel's cgroup-v1/memory.rst.
    fn hang(memory: &Directory) -> Result<Self> {
        const MEND: &str = "the kernel needs CONFIG_MEMCG_V1; waive the limit of memory otherwise";
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .call("eventfd")
            .doing(WATCHING, MEND)?;
        let control = memory.open("memory.oom_control", OFlags::RDONLY).doing(WATCHING, MEND)?;
        let line = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
        memory.write("cgroup.event_control", &line).doing(WATCHING, MEND)?;
        Ok(Self { event, rang: Cell::new(false), kills_heard_of: Cell::new(0) })
    }

    /// Whether it was signalled since the last call.
    fn answer(&self) -> Result<bool> {
        match rustix::io::read(&self.event, &mut [0_u8; 8]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(errno).call("read").doing(WATCHING, GONE),
        }
    }

    /// Whether it was signalled, and no process was killed since.
    fn is_pending(&self, rang: bool, kills: u64) -> bool {
        let is_new = kills > self.kills_heard_of.replace(kills);
        self.rang.set((self.rang.get() || rang) && !is_new);
        self.rang.get()
    }
}

/// The sum is exact; the kernel estimates the split in ticks.
fn split(cpu: Option<Duration>, stat: &str) -> (Option<Duration>, Option<Duration>) {
    let Some(cpu) = cpu else { return (None, None) };
    let (user, system) = (keyed(stat, "user").unwrap_or(0), keyed(stat, "system").unwrap_or(0));
    let share = match user + system {
        0 => cpu,
        ticks => {
            let nanos = cpu.as_nanos().saturating_mul(u128::from(user)) / u128::from(ticks);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    };
    (Some(share), Some(cpu.saturating_sub(share)))
}

/// Sums lines of `MAJOR:MINOR KIND NUMBER`. Disks built on others would count the same bytes twice.
fn sum_of_disks(text: &str, kind: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut sum = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(disk), Some(found), Some(value)) = (words.next(), words.next(), words.next())
            && found == kind
            && !disks::is_stacked(disk)
        {
            sum += value.parse::<u64>().unwrap_or(0);
        }
    }
    Some(sum)
}

#[cfg(test)]
#[path = "v1_tests.rs"]
mod tests;
