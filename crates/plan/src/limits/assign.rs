//! Decides which mechanism enforces each limit, from what the host offers.

use super::overshoot::{limit, measured};
use super::{Room, is_waived};
use crate::error::{PlanError, Result};
use crate::facts::LimitFacts;
use crate::limit::{CgroupHome, Controller, Grip, Group, GroupSettings, Holder, Limit, LimitKind};
use crate::model::{Resource, Rlimit, Watch};
use palisade_policy::model::Policy;
use palisade_policy::units;

/// The broker and pid 1 are in the user namespace, and `RLIMIT_NPROC` counts them.
const OWN_IN_NAMESPACE: u64 = 2;
/// Of our processes, only pid 1 is in the control group.
const OWN_IN_GROUP: u64 = 1;
/// The server of the gate's file system, and its thread that watches calls.
const OWN_SERVING_FILES: u64 = 2;
/// How many seconds a process may exceed the limit before the kernel kills it, if the supervisor is late.
const CPU_SECONDS_OF_GRACE: u64 = 1;

/// Mechanisms of the confinement that can enforce a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enforcers {
    /// `RLIMIT_NPROC` counts only the sandbox's processes.
    pub(crate) own_user_namespace: bool,
    /// The filter prevents a process from changing its CPUs.
    pub(crate) filter: bool,
    /// A process of ours, with two threads, is counted with the command's: it serves the gate's file system.
    pub(crate) serves_files: bool,
}

/// Every limit with what enforces it, and the settings of each mechanism.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assigned {
    pub(crate) limits: Vec<Limit>,
    pub(crate) waived: Vec<LimitKind>,
    pub(crate) rlimits: Vec<Rlimit>,
    pub(crate) group: Option<Group>,
    pub(crate) affinity: Option<Vec<u32>>,
    pub(crate) watch: Watch,
}

/// `look` is called only if a limit is set: most runs have none.
pub(crate) fn assign(
    policy: &Policy,
    walls: Enforcers,
    by_root: bool,
    look: &dyn Fn() -> LimitFacts,
) -> Result<Assigned> {
    let mut assigned = Assigned::default();
    let rlimits = &mut assigned.rlimits;
    // A core file would write the command's memory into the project.
    if !policy.process.debug {
        rlimits.push(Rlimit { resource: Resource::Core, value: 0 });
    }
    if !wants_look(policy) {
        everywhere(policy, &mut assigned);
        return Ok(assigned);
    }
    let facts = look();
    let settings = GroupSettings::default();
    let refused = Vec::new();
    let mut work = Work { policy, walls, by_root, facts: &facts, assigned, settings, refused };
    work.memory();
    work.cpus()?;
    work.cpu_time();
    work.tasks();
    work.io();
    let why = work.why_no_group();
    let Work { mut assigned, settings, refused, .. } = work;
    refuse_together(refused, why)?;
    everywhere(policy, &mut assigned);
    if settings != GroupSettings::default() || counts_in_group(&assigned) {
        assigned.group = Some(Group { home: facts.cgroups, settings });
    }
    Ok(assigned)
}

/// Reports all refused limits in one error, so that the user need not fix them one after another.
fn refuse_together(mut refused: Vec<PlanError>, why: String) -> Result<()> {
    if refused.len() < 2 {
        return refused.pop().map_or(Ok(()), Err);
    }
    let (mut sampled, mut unheld) = (Vec::new(), Vec::new());
    for error in refused {
        match error {
            PlanError::LimitSampled { what, .. } => sampled.push(what),
            PlanError::LimitUnheld { what, .. } => unheld.push(what),
            other => return Err(other),
        }
    }
    Err(PlanError::LimitsUnheld { sampled, unheld, why })
}

/// Whether a limit is set that a control group could enforce.
fn wants_look(policy: &Policy) -> bool {
    let resources = &policy.resources;
    [
        resources.max_memory,
        resources.memory_high,
        resources.max_swap,
        resources.milli_cpus,
        resources.max_cpu,
        resources.max_threads,
        resources.max_io_bandwidth,
        resources.max_iops,
        policy.process.max_processes,
    ]
    .iter()
    .any(Option::is_some)
        || resources.cpu_set.is_some()
}

fn counts_in_group(assigned: &Assigned) -> bool {
    let held = |limit: &Limit| matches!(limit.holder, Holder::CgroupV1 | Holder::CgroupV2);
    assigned.limits.iter().any(held)
}

/// Limits that can be enforced on every host.
fn everywhere(policy: &Policy, assigned: &mut Assigned) {
    let hard = |what, holder, value: Option<u64>| {
        value.map(|value| limit(what, value, holder, Grip::Hard))
    };
    let (resources, filesystem) = (&policy.resources, &policy.filesystem);
    for (what, resource, value) in [
        (LimitKind::FileSize, Resource::FileSize, filesystem.max_file_size),
        (LimitKind::OpenFiles, Resource::OpenFiles, resources.max_file_descriptors),
    ] {
        assigned.limits.extend(hard(what, Holder::Rlimit, value));
        assigned.rlimits.extend(value.map(|value| Rlimit { resource, value }));
    }
    assigned.limits.extend(hard(LimitKind::WallTime, Holder::Timer, resources.timeout));
    assigned.limits.extend(hard(LimitKind::Output, Holder::Relay, resources.max_output_size));
}

struct Work<'a> {
    policy: &'a Policy,
    walls: Enforcers,
    by_root: bool,
    facts: &'a LimitFacts,
    assigned: Assigned,
    settings: GroupSettings,
    /// Limits that cannot be enforced as strictly as requested.
    refused: Vec<PlanError>,
}

impl Work<'_> {
    fn memory(&mut self) {
        let resources = &self.policy.resources;
        if let Some(high) = resources.memory_high {
            // Version 1 has only a soft limit, which applies when the whole host runs out of memory.
            match self.group_for(Controller::Memory) {
                Some(Holder::CgroupV2) => {
                    self.settings.memory_high = Some(high);
                    self.held(LimitKind::MemoryHigh, high, Holder::CgroupV2, Grip::Hard);
                }
                _ => self
                    .unheld(LimitKind::MemoryHigh, "only control groups version 2 can enforce it"),
            }
        }
        let Some(memory) = resources.max_memory else { return };
        // No swap unless requested: swapping affects the whole host.
        let swap = resources.max_swap.unwrap_or(0);
        let Some(group) = self.group_for(Controller::Memory) else {
            if self.held(LimitKind::Memory, memory, Holder::Watchdog, Grip::Sampled) {
                // Swapped memory counts as memory.
                self.assigned.watch.memory = Some(memory.saturating_add(swap));
            }
            return;
        };
        self.settings.memory = Some(memory);
        self.held(LimitKind::Memory, memory, group, Grip::Hard);
        if self.facts.cgroups.has(Controller::Swap) {
            self.settings.swap = Some(swap);
            self.held(LimitKind::Swap, swap, group, Grip::Hard);
        } else {
            let why = "the kernel does not account swap per group (swapaccount=0)";
            self.unheld(LimitKind::Swap, why);
        }
    }

    fn cpus(&mut self) -> Result<()> {
        let available = &self.facts.cpus;
        let mut usable = available.clone();
        if let Some(set) = &self.policy.resources.cpu_set {
            if let Some(missing) = set.iter().find(|cpu| !available.contains(cpu)) {
                let available = units::show_cpu_set(&available.iter().copied().collect());
                return Err(PlanError::NoSuchCpu { cpu: *missing, available });
            }
            usable = set.iter().copied().collect();
            let count = usable.len() as u64;
            match self.group_for(Controller::CpuSet) {
                Some(group) => {
                    self.settings.cpus = Some(usable.clone());
                    self.held(LimitKind::CpuSet, count, group, Grip::Hard);
                }
                None => self.pin(LimitKind::CpuSet, count, usable.clone(), Grip::Hard),
            }
        }
        let Some(milli) = self.policy.resources.milli_cpus else { return Ok(()) };
        if let Some(group) = self.group_for(Controller::Cpu) {
            self.settings.milli_cpus = Some(milli);
            self.held(LimitKind::Cpus, milli, group, Grip::Hard);
            return Ok(());
        }
        let whole = usize::try_from(milli.div_ceil(1000)).unwrap_or(usize::MAX).max(1);
        // Not always the first ones: otherwise many simultaneous runs would share them while other CPUs are
        // idle.
        let start = self.facts.spread % usable.len().max(1);
        let mut chosen: Vec<u32> =
            usable.iter().cycle().skip(start).take(whole.min(usable.len())).copied().collect();
        chosen.sort_unstable();
        let grip = if milli.is_multiple_of(1000) { Grip::Hard } else { Grip::Sampled };
        self.pin(LimitKind::Cpus, milli, chosen, grip);
        Ok(())
    }

    /// Without a control group: by a mask that the filter protects against changes.
    fn pin(&mut self, what: LimitKind, value: u64, cpus: Vec<u32>, grip: Grip) {
        let grip = if self.walls.filter { grip } else { Grip::Sampled };
        if self.held(what, value, Holder::Affinity, grip) {
            self.assigned.affinity = Some(cpus);
        }
    }

    fn cpu_time(&mut self) {
        let Some(most) = self.policy.resources.max_cpu else { return };
        let counter = match self.facts.cgroups {
            CgroupHome::V1 { .. } => Controller::CpuAccount,
            _ => Controller::Cpu,
        };
        // A group counts all CPU time, and the run cannot use more of it per second than there are CPUs. So the
        // supervisor can compute when it must poll again at the earliest.
        let held = match self.group_for(counter) {
            Some(group) => self.held(LimitKind::CpuTime, most, group, Grip::Hard),
            None => self.held(LimitKind::CpuTime, most, Holder::Watchdog, Grip::Sampled),
        };
        if held {
            self.assigned.watch.cpu_time_ms = Some(most);
            let value = most.div_ceil(1000).saturating_add(CPU_SECONDS_OF_GRACE);
            self.assigned.rlimits.push(Rlimit { resource: Resource::CpuSeconds, value });
        }
    }

    /// To the kernel a thread is a process, so the smaller limit applies to both.
    fn tasks(&mut self) {
        let asked = [
            (LimitKind::Processes, self.policy.process.max_processes),
            (LimitKind::Threads, self.policy.resources.max_threads),
        ];
        let Some(least) = asked.iter().filter_map(|(_, most)| *most).min() else { return };
        let walls = self.walls;
        let (holder, grip) = match self.group_for(Controller::Pids) {
            Some(group) => (group, Grip::Hard),
            None if walls.own_user_namespace => (Holder::Rlimit, Grip::Hard),
            // It counts all processes of the user, but none of root's.
            None if !self.by_root => (Holder::Rlimit, Grip::Hard),
            None => (Holder::Watchdog, Grip::Sampled),
        };
        let mut is_held = false;
        for (what, most) in asked {
            if let Some(most) = most {
                is_held |= self.held(what, most, holder, grip);
            }
        }
        if holder == Holder::Rlimit && !walls.own_user_namespace {
            for limit in &mut self.assigned.limits {
                if matches!(limit.what, LimitKind::Processes | LimitKind::Threads) {
                    limit.overshoot = "none; other processes of this user count too";
                }
            }
        }
        if !is_held {
            return;
        }
        let serving = if walls.serves_files { OWN_SERVING_FILES } else { 0 };
        match holder {
            Holder::CgroupV1 | Holder::CgroupV2 => {
                let own = OWN_IN_GROUP.saturating_add(serving);
                self.settings.tasks = Some(least.saturating_add(own));
            }
            Holder::Rlimit => {
                let own = if walls.own_user_namespace { OWN_IN_NAMESPACE } else { 0 };
                let value = least.saturating_add(own).saturating_add(serving);
                self.assigned.rlimits.push(Rlimit { resource: Resource::Processes, value });
            }
            _ => self.assigned.watch.tasks = Some(least),
        }
    }

    fn io(&mut self) {
        let resources = &self.policy.resources;
        for (what, most) in [
            (LimitKind::IoBandwidth, resources.max_io_bandwidth),
            (LimitKind::IoOperations, resources.max_iops),
        ] {
            let Some(most) = most else { continue };
            let Some(group) = self.group_for(Controller::Io) else {
                self.unheld(what, "only a control group can enforce it");
                continue;
            };
            // Version 1 does not charge buffered writes to any group.
            let grip = if group == Holder::CgroupV1 { Grip::Sampled } else { Grip::Hard };
            if self.held(what, most, group, grip) {
                match what {
                    LimitKind::IoBandwidth => self.settings.io_bandwidth = Some(most),
                    _ => self.settings.iops = Some(most),
                }
            }
        }
    }

    fn group_for(&self, controller: Controller) -> Option<Holder> {
        let holder = match self.facts.cgroups {
            CgroupHome::V2 { .. } => Holder::CgroupV2,
            CgroupHome::V1 { .. } => Holder::CgroupV1,
            CgroupHome::Nowhere { .. } => return None,
        };
        self.facts.cgroups.has(controller).then_some(holder)
    }

    /// Adds the limit. Returns false if it is waived or refused.
    fn held(&mut self, what: LimitKind, value: u64, holder: Holder, grip: Grip) -> bool {
        if grip == Grip::Sampled && !self.policy.resources.best_effort {
            if is_waived(self.policy, what) {
                self.assigned.waived.push(what);
                return false;
            }
            let overshoot = measured(what, holder, grip);
            let why = self.why_no_group();
            self.refused.push(PlanError::LimitSampled { what, holder, overshoot, why });
            return false;
        }
        self.assigned.limits.push(limit(what, value, holder, grip));
        true
    }

    fn unheld(&mut self, what: LimitKind, why: &str) {
        if is_waived(self.policy, what) {
            self.assigned.waived.push(what);
            return;
        }
        let why = format!("{why}; {}", self.why_no_group());
        self.refused.push(PlanError::LimitUnheld { what, why });
    }

    fn why_no_group(&self) -> String {
        match &self.facts.cgroups {
            CgroupHome::Nowhere { why } => format!("cannot create a control group: {why}"),
            CgroupHome::V1 { .. } => "this host has control groups of version 1".to_owned(),
            CgroupHome::V2 { .. } => {
                "the controller is not available in this control group".to_owned()
            }
        }
    }
}

impl Assigned {
    /// Adds the limits on the total that the run may write.
    pub(crate) fn add_room(&mut self, policy: &Policy, room: &Room) -> Result<()> {
        let filesystem = &policy.filesystem;
        for (what, most) in [
            (LimitKind::Disk, filesystem.max_total_size),
            (LimitKind::Inodes, filesystem.max_inodes),
        ] {
            let Some(most) = most else { continue };
            let (holder, grip) = if room.is_closed() {
                (Holder::Tmpfs, Grip::Hard)
            } else {
                (Holder::Watchdog, Grip::Sampled)
            };
            let refused = match room {
                Room::Everywhere => Some(PlanError::LimitUnheld {
                    what,
                    why: "at LEVEL_0 the command can write wherever its user can".to_owned(),
                }),
                _ if grip == Grip::Sampled && !policy.resources.best_effort => {
                    let why = format!("{} on the host is writable", room.told());
                    let overshoot = measured(what, holder, grip);
                    Some(PlanError::LimitSampled { what, holder, overshoot, why })
                }
                _ => None,
            };
            match refused {
                Some(_) if is_waived(policy, what) => self.waived.push(what),
                Some(refused) => return Err(refused),
                None => {
                    self.limits.push(limit(what, most, holder, grip));
                    match (what, holder) {
                        (_, Holder::Tmpfs) => {}
                        (LimitKind::Disk, _) => self.watch.disk = Some(most),
                        _ => self.watch.inodes = Some(most),
                    }
                }
            }
        }
        if self.watch.disk.is_some() || self.watch.inodes.is_some() {
            self.watch.trees = room.trees();
        }
        Ok(())
    }
}
