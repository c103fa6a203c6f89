//! The limits of a run while it runs (RES-1 to RES-4, FS-6): looks as often as they need, hears what the kernel
//! says of them, and adds up what was used.
//!
//! Says what was exceeded; ends nobody itself. What can no longer be counted counts as exceeded.

mod tally;

pub use tally::Tally;

use crate::control::interface::Event;
use crate::error::Result;
use crate::output::Capped;
use crate::poll_set::{PollSet, Ready};
use palisade_launch::{ExitCause, HelperKind, Hits, RunGroup, RunUsage, Running};
use palisade_plan::limit::{Holder, Limit, LimitKind};
use palisade_plan::model::{Confinement, Plan};
use palisade_sys::Pid;
use palisade_usage::{
    Bounds, Collected, DiskUse, DiskWatch, Effort, Exceeded, Observation, Unseen, UsageError,
    UsageVerdict, Watchdog, decide,
};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Where no limit needs it sooner, usage is looked at so soon after the start, then ever less often.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_millis(10);
const LAZIEST: Duration = Duration::from_secs(1);
/// So often while nobody is inside. A look would keep an idle sandbox from giving back memory.
const EMPTY_CHECK: Duration = Duration::from_secs(60);
/// Nobody counts forks that a limit of the process refuses; that as many as it allows are there has to be seen. So often
/// it is looked at while half of them are: hundreds of runs that need few must not keep each other from running.
const TASKS_CHECK: Duration = Duration::from_millis(20);
/// So long a turn may count files; questions and keys wait meanwhile.
const COUNTING_A_TURN: Duration = Duration::from_millis(2);
/// The kernel says that memory is short a moment before it ends somebody for it.
const OOM_FOLLOWS: Duration = Duration::from_millis(5);
/// A write that does not fit leaves less room than this.
const LEFT_WHEN_FULL: u64 = 64 * 1024;

const HIDDEN: &str = "processes of the run cannot be seen (is /proc mounted with hidepid?), so their resource use is unknown";

/// A limit that was exceeded, and what was used then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) what: LimitKind,
    pub(crate) usage: Option<u64>,
}

#[derive(Debug)]
pub struct Limits<'p> {
    plan: &'p Plan,
    /// Files and space, where they are limited.
    places: Option<DiskWatch>,
    held: DiskUse,
    collected: Option<Collected>,
    /// None before the first look, and where nobody is left to look at.
    watchdog: Option<Watchdog>,
    is_watching: bool,
    /// That the run may use; known from the first look on.
    cpus: u32,
    /// What was found before there was anybody to tell.
    pending: Option<Over>,
    next: Option<Instant>,
    lazily: Duration,
    tally: Tally,
}

impl<'p> Limits<'p> {
    /// Counts what is there before the command can add to it.
    pub fn prepare(plan: &'p Plan) -> Result<Self> {
        let limits_files = plan.supervision.limits.iter().any(|limit| {
            matches!(limit.what, LimitKind::Disk | LimitKind::Inodes)
                || (limit.what == LimitKind::Memory && limit.holder == Holder::Watchdog)
        });
        let mut places =
            limits_files.then(|| DiskWatch::baseline(&plan.supervision.watch.trees)).transpose()?;
        if let Some(places) = &mut places {
            places.watch(plan.supervision.watch.disk, plan.supervision.watch.inodes);
        }
        Ok(Self {
            plan,
            // Before the launch closes us to inspection, our own included.
            collected: Collected::open(),
            places,
            held: DiskUse::default(),
            watchdog: None,
            is_watching: false,
            cpus: 1,
            pending: None,
            next: None,
            lazily: FIRST_LOOK,
            tally: Tally::default(),
        })
    }

    /// The command runs.
    pub(crate) fn started(&mut self, running: &Running) {
        if let Err(error) = self.add_own_files(running) {
            self.pending = self.uncounted(&error);
        }
        let watch = &self.plan.supervision.watch;
        let is_urgent = watch.memory.is_some() || watch.cpu_time_ms.is_some();
        // Nobody tells of processes that could not be started but who counts those that were.
        if self.limit_on_tasks().is_some() {
            self.lazily = SOON;
        }
        self.next = Some(Instant::now() + if is_urgent { Duration::ZERO } else { self.lazily });
    }

    /// At the first look: most runs are over before that.
    fn begin_watching(&mut self, running: &Running) -> Result<UsageVerdict> {
        self.cpus = cpus_of(self.plan);
        let counts_in_group = running.group().is_some();
        let watch = &self.plan.supervision.watch;
        let bounds = Bounds {
            memory: watch.memory,
            cpu_time: watch.cpu_time_ms.filter(|_| !counts_in_group).map(Duration::from_millis),
            cpus: self.cpus,
        };
        let Some(pid) = i32::try_from(running.pid()).ok().and_then(Pid::from_raw) else {
            return Ok(UsageVerdict::Within(None));
        };
        match Watchdog::new(pid, bounds) {
            Ok(watchdog) => self.watchdog = Some(watchdog),
            Err(UsageError::Gone(_)) if running.has_ended()? => {}
            Err(UsageError::Gone(_)) => return Ok(self.unseen(HIDDEN)),
            Err(error) => return Ok(self.unseen(&error.to_string())),
        }
        Ok(UsageVerdict::Within(None))
    }

    /// File systems of the run's own count too, as memory and as space.
    fn add_own_files(&mut self, running: &Running) -> Result<(), UsageError> {
        let (Some(places), Confinement::Namespaces(inside)) =
            (&mut self.places, &self.plan.sandbox.confinement)
        else {
            return Ok(());
        };
        // By the command's process: pid 1 is closed to us.
        let Some(command) = running.command() else { return Ok(()) };
        let home_path = inside.private_home.as_deref();
        for op in &inside.mounts {
            if op.holds_own_files(self.plan.sandbox.scratch.as_ref()) {
                // The gate's file system only shows it, and does so no longer when the run has ended.
                let home = running.private_home().filter(|_| Some(op.target()) == home_path);
                let handed = running.own_files().iter().find(|(path, _)| path == op.target());
                let handed = home.map(|home| &home.directory).or(handed.map(|(_, root)| root));
                let added = match handed.and_then(|root| root.try_clone().ok()) {
                    Some(root) => places.add_file_system(root, op.target()),
                    None => places.add_tmpfs(command, op.target()),
                };
                match added {
                    Err(UsageError::Sys(error)) if has_ended(error.errno) => return Ok(()),
                    added => added?,
                }
            }
        }
        Ok(())
    }

    /// What the kernel wakes us for.
    pub(crate) fn register<'fd>(running: &'fd Running, set: &mut PollSet<'fd>) {
        let events = running.group().map(RunGroup::events).unwrap_or_default();
        for (key, event) in events.into_iter().enumerate() {
            set.add(key, event.fd, event.interest);
        }
    }

    /// When something has to be looked at next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        let files = self.places.as_ref().filter(|_| self.next.is_some());
        let files = files.map(|places| now + places.due_in(now));
        [self.next, files].into_iter().flatten().min()
    }

    /// Looks at what is due, and hears what the kernel says. `has_commands`: whether commands run or are about to.
    pub(crate) fn look(
        &mut self,
        running: &Running,
        ready: &Ready,
        has_commands: bool,
    ) -> Result<Option<Over>> {
        if !ready.is_empty()
            && let Some(over) = self.hear(running)?
        {
            return Ok(Some(over));
        }
        if let Some(over) = self.pending.take() {
            return Ok(Some(over));
        }
        if self.next.is_none() {
            return Ok(None);
        }
        if let Some(over) = self.count_files() {
            return Ok(Some(over));
        }
        if self.next.is_some_and(|next| next > Instant::now()) {
            return Ok(None);
        }
        if !std::mem::replace(&mut self.is_watching, true)
            && let UsageVerdict::Over(exceeded) = self.begin_watching(running)?
        {
            return Ok(Some(self.over(exceeded)));
        }
        let mut pause = self.lazily;
        let laziest = if self.is_near_limit_on_tasks() { TASKS_CHECK } else { LAZIEST };
        self.lazily = (self.lazily * 2).min(laziest);
        for found in [self.look_at_group(running)?, self.look_at_processes()?] {
            match found {
                UsageVerdict::Over(exceeded) => return Ok(Some(self.over(exceeded))),
                UsageVerdict::Within(wanted) => {
                    pause = wanted.map_or(pause, |wanted| pause.min(wanted));
                }
            }
        }
        if pause >= LAZIEST && !has_commands && running.is_empty() {
            pause = EMPTY_CHECK;
        }
        // Before the kernel is heard, which may ask for a look sooner.
        self.next = self.next.map(|_| Instant::now() + pause);
        if let Some(over) = self.hear(running)? {
            return Ok(Some(over));
        }
        Ok(self.too_many_tasks(running))
    }

    /// Another command starts, perhaps in a sandbox where nobody was.
    pub(crate) fn command_starts(&mut self) {
        if self.is_watching {
            let soon = Instant::now() + FIRST_LOOK;
            self.next = self.next.map(|next| next.min(soon));
        }
    }

    /// Remembers for what the run is ended.
    pub(crate) fn exceeded(&mut self, over: Over) {
        self.tally.reached(over.what, over.usage, None);
    }

    /// Remembers that the command was asked to end at its time limit.
    pub(crate) fn time_is_over(&mut self) {
        self.tally.reached(LimitKind::WallTime, self.plan.supervision.timeout_ms, None);
    }

    /// The limits that were reached since the last time.
    pub(crate) fn take_untold(&mut self) -> Vec<Event> {
        self.tally.take_untold()
    }

    /// Nobody is left to look at.
    pub(crate) fn forget(&mut self) {
        self.next = None;
    }

    /// What the kernel says.
    pub(crate) fn hear(&mut self, running: &Running) -> Result<Option<Over>> {
        let Some(group) = running.group() else { return Ok(None) };
        let hits = group.hits()?;
        self.tally.forks_refused(self.plan, None, &hits);
        let Hits { oom_kills, oom_expected, .. } = hits;
        if oom_kills > 0 {
            // Whoever was killed has given back what it held.
            let usage = group.usage()?;
            let usage = usage.memory_peak.or(usage.memory);
            return Ok(Some(Over { what: LimitKind::Memory, usage }));
        }
        if oom_expected {
            let soon = Instant::now() + OOM_FOLLOWS;
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
        Ok(None)
    }

    /// CPU time, where the group counts it.
    fn look_at_group(&self, running: &Running) -> Result<UsageVerdict> {
        let (Some(group), Some(limit)) = (running.group(), self.plan.supervision.watch.cpu_time_ms)
        else {
            return Ok(UsageVerdict::Within(None));
        };
        let effort = Effort::begin();
        let usage = group.usage()?;
        let counted = usage.cpu_user.zip(usage.cpu_system);
        let Some((user, system)) = counted else {
            return Ok(UsageVerdict::Over(Exceeded::Uncountable));
        };
        let seen = Observation { cpu_time: user + system, ..Observation::default() };
        let cpu_time = Some(Duration::from_millis(limit));
        let bounds = Bounds { memory: None, cpu_time, cpus: self.cpus };
        Ok(decide(&bounds, &seen, effort.spent()))
    }

    fn look_at_processes(&mut self) -> Result<UsageVerdict> {
        let Some(watchdog) = &mut self.watchdog else { return Ok(UsageVerdict::Within(None)) };
        let own_files = match self.places.as_ref().map(DiskWatch::own_bytes) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => return Ok(self.unseen(&error.to_string())),
            None => 0,
        };
        match watchdog.look(own_files) {
            Ok(looked) => {
                self.tally.saw(&looked, watchdog.peaks());
                Ok(looked.verdict)
            }
            Err(UsageError::Gone(_)) => {
                self.next = None;
                Ok(UsageVerdict::Within(None))
            }
            Err(error) => Ok(self.unseen(&error.to_string())),
        }
    }

    /// A limit that cannot be looked after counts as exceeded; where there is none, usage is told less well.
    fn unseen(&mut self, why: &str) -> UsageVerdict {
        self.watchdog = None;
        self.tally.note(why.to_owned());
        if self.plan.supervision.watch.needs_processes() {
            return UsageVerdict::Over(Exceeded::Uncountable);
        }
        UsageVerdict::Within(None)
    }

    fn over(&self, exceeded: Exceeded) -> Over {
        match exceeded {
            Exceeded::Memory { used, .. } => Over { what: LimitKind::Memory, usage: Some(used) },
            Exceeded::CpuTime { used, .. } => {
                let used = u64::try_from(used.as_millis()).unwrap_or(u64::MAX);
                Over { what: LimitKind::CpuTime, usage: Some(used) }
            }
            Exceeded::Uncountable => {
                let what = match self.plan.supervision.watch.memory {
                    Some(_) => LimitKind::Memory,
                    None => LimitKind::CpuTime,
                };
                Over { what, usage: None }
            }
        }
    }

    /// The kernel refuses the next one, where it holds the limit: then it is only remembered.
    fn too_many_tasks(&mut self, running: &Running) -> Option<Over> {
        let limit = self.limit_on_tasks()?;
        let tasks = self.tally.tasks()?;
        if limit.holder == Holder::Watchdog {
            return (tasks > limit.value).then_some(Over { what: limit.what, usage: Some(tasks) });
        }
        // Once something is asked, the keeper is one of those that the kernel counts.
        let own = u64::from(running.helpers().is_serving(HelperKind::Keeper));
        if tasks.saturating_add(own) >= limit.value {
            self.tally.reached(limit.what, Some(tasks), None);
        }
        None
    }

    fn is_near_limit_on_tasks(&self) -> bool {
        let limit = self.limit_on_tasks().map(|limit| limit.value);
        limit.zip(self.tally.tasks()).is_some_and(|(limit, tasks)| tasks >= limit / 2)
    }

    /// Where no group counts them; of two the smaller.
    fn limit_on_tasks(&self) -> Option<&'p Limit> {
        let on_tasks = self.plan.supervision.limits.iter().filter(|limit| {
            matches!(limit.what, LimitKind::Processes | LimitKind::Threads)
                && matches!(limit.holder, Holder::Rlimit | Holder::Watchdog)
        });
        on_tasks.min_by_key(|limit| limit.value)
    }

    fn count_files(&mut self) -> Option<Over> {
        let places = self.places.as_mut()?;
        let tree = self.watchdog.as_mut().map(Watchdog::tree);
        match places.step(COUNTING_A_TURN, tree) {
            Ok(Some(held)) => self.held = held,
            Ok(None) | Err(UsageError::Gone(_)) => return None,
            Err(error) => return self.uncounted(&error),
        }
        self.judge_files()
    }

    /// The same for files. What the kernel holds by itself needs no counting.
    fn uncounted(&mut self, error: &UsageError) -> Option<Over> {
        self.places = None;
        self.tally.note(error.to_string());
        let watch = &self.plan.supervision.watch;
        let what = match (watch.disk, watch.inodes, watch.memory) {
            (Some(_), ..) => LimitKind::Disk,
            (None, Some(_), _) => LimitKind::Inodes,
            (None, None, Some(_)) => LimitKind::Memory,
            (None, None, None) => return None,
        };
        Some(Over { what, usage: None })
    }

    fn judge_files(&mut self) -> Option<Over> {
        let DiskUse { bytes, inodes } = self.held;
        let inodes =
            inodes.saturating_sub(self.plan.sandbox.scratch.map_or(0, |own| own.own_inodes));
        for limit in &self.plan.supervision.limits {
            let (used, is_full) = match limit.what {
                LimitKind::Disk => (bytes, bytes.saturating_add(LEFT_WHEN_FULL) >= limit.value),
                LimitKind::Inodes => (inodes, inodes >= limit.value),
                _ => continue,
            };
            if limit.holder == Holder::Watchdog && used > limit.value {
                return Some(Over { what: limit.what, usage: Some(used) });
            }
            if is_full {
                self.tally.reached(limit.what, Some(used), None);
            }
        }
        None
    }

    /// What is known while somebody may be left. Counts that cannot be read are missing.
    pub(crate) fn so_far(&self, group: Option<&RunGroup>) -> Tally {
        let mut tally = self.tally.clone();
        let counted = group.and_then(|group| group.usage().ok().zip(group.hits().ok()));
        if let Some((usage, hits)) = counted {
            tally.group(self.plan, usage, hits);
        }
        tally
    }

    /// Adds up what is known when nobody is left. The group goes.
    pub(crate) fn end(
        mut self,
        group: Option<RunGroup>,
        ending: Option<ExitCause>,
        usage: &RunUsage,
        capped: &[Capped],
    ) -> Result<Tally> {
        if ending == Some(ExitCause::Signal(Signal::XFSZ.as_raw())) {
            let asked =
                self.plan.supervision.limits.iter().find(|limit| limit.what == LimitKind::FileSize);
            self.tally.reached(LimitKind::FileSize, asked.map(|limit| limit.value), None);
        }
        // What was filled last: nobody can add to it any more.
        if let Some(places) = &mut self.places
            && let Ok(held) = places.finish()
        {
            self.held = held;
            let Unseen { processes, files } = places.unseen();
            if processes > 0 || files > 0 {
                self.tally.note(format!(
                    "{processes} processes were closed to inspection, and {files} deleted files had no size that \
                     could be seen: what they held may be missing from the count"
                ));
            }
            if let Some(over) = self.judge_files() {
                self.tally.reached(over.what, over.usage, None);
            }
        }
        self.tally.processes(usage);
        if let Some(io) = self.collected.as_ref().and_then(Collected::since) {
            self.tally.collected(io);
        }
        if let Some(group) = group {
            self.tally.group(self.plan, group.usage()?, group.hits()?);
            group.remove()?;
        }
        for output in capped {
            self.tally.reached(LimitKind::Output, Some(output.seen_bytes), None);
        }
        Ok(self.tally)
    }
}

fn cpus_of(plan: &Plan) -> u32 {
    let usable = palisade_sys::proc::usable_cpus().map_or(1, |cpus| cpus.len());
    let given = plan.sandbox.affinity.as_ref().map_or(usable, Vec::len);
    u32::try_from(given).unwrap_or(u32::MAX)
}

/// Of a process, by what its place in /proc answers.
fn has_ended(errno: palisade_sys::Errno) -> bool {
    matches!(errno, palisade_sys::Errno::NOENT | palisade_sys::Errno::SRCH)
}
