//! The limits of a run while it runs (RES-1 to RES-4, FS-6): looks as often as they need, hears what the kernel
//! says of them, and adds up what was used.
//!
//! Says what was exceeded; ends nobody itself. What can no longer be counted counts as exceeded.

mod tally;

pub(crate) use tally::Tally;

use crate::error::SessionError;
use crate::output::Capped;
use palisade_launch::{Group, Hits, Running, Usage};
use palisade_plan::limit::{Holder, Limit, Limited};
use palisade_plan::model::{Confinement, MountOp, Plan};
use palisade_sys::Pid;
use palisade_usage::{Bounds, Exceeded, Held, Places, Seen, UsageError, Verdict, Watchdog, decide};
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// Where no limit needs it sooner, usage is looked at so soon after the start, then ever less often.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_millis(10);
const LAZIEST: Duration = Duration::from_secs(1);
/// So long a turn may count files; questions and keys wait meanwhile.
const COUNTING_A_TURN: Duration = Duration::from_millis(2);
/// The kernel says that memory is short a moment before it ends somebody for it.
const OOM_FOLLOWS: Duration = Duration::from_millis(5);
/// A write that does not fit leaves less room than this.
const LEFT_WHEN_FULL: u64 = 64 * 1024;

/// A limit that was exceeded, and what was used then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) what: Limited,
    pub(crate) usage: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Limits<'p> {
    plan: &'p Plan,
    /// Files and space, where they are limited.
    places: Option<Places>,
    held: Held,
    /// None before the command runs, and once nobody is left.
    watchdog: Option<Watchdog>,
    next: Option<Instant>,
    lazily: Duration,
    tally: Tally,
}

impl<'p> Limits<'p> {
    /// Counts what is there before the command can add to it.
    pub(crate) fn prepare(plan: &'p Plan) -> Result<Self, SessionError> {
        let limits_files = plan.limits.iter().any(|limit| {
            matches!(limit.what, Limited::Disk | Limited::Inodes)
                || (limit.what == Limited::Memory && limit.holder == Holder::Watchdog)
        });
        let places = limits_files.then(|| Places::baseline(&plan.watch.trees)).transpose()?;
        Ok(Self {
            plan,
            places,
            held: Held::default(),
            watchdog: None,
            next: None,
            lazily: FIRST_LOOK,
            tally: Tally::default(),
        })
    }

    /// The command runs.
    pub(crate) fn started(&mut self, running: &Running) -> Result<(), SessionError> {
        self.add_own_files(running)?;
        let counts_in_group = running.group().is_some();
        let watch = &self.plan.watch;
        let bounds = Bounds {
            memory: watch.memory,
            cpu_time: watch.cpu_time_ms.filter(|_| !counts_in_group).map(Duration::from_millis),
            cpus: self.cpus(),
        };
        let pid = i32::try_from(running.pid()).ok().and_then(Pid::from_raw);
        self.watchdog = match pid.map(|pid| Watchdog::new(pid, bounds)) {
            Some(Ok(watchdog)) => Some(watchdog),
            // It was quick. One that lives and can not be seen (hidepid) can not be watched either.
            Some(Err(UsageError::Gone(_))) | None if running.has_ended()? => None,
            Some(Err(UsageError::Gone(_))) | None if !self.plan.watch.needs_processes() => None,
            Some(Err(error)) => return Err(error.into()),
            None => None,
        };
        let is_urgent = bounds.memory.is_some() || watch.cpu_time_ms.is_some();
        // Nobody tells of processes that could not be started but who counts those that were.
        if self.limit_on_tasks().is_some() {
            self.lazily = SOON;
        }
        self.next = Some(Instant::now() + if is_urgent { Duration::ZERO } else { self.lazily });
        Ok(())
    }

    /// File systems of the run's own count too, as memory and as space.
    fn add_own_files(&mut self, running: &Running) -> Result<(), SessionError> {
        let (Some(places), Confinement::Namespaces(inside)) =
            (&mut self.places, &self.plan.confinement)
        else {
            return Ok(());
        };
        // By the command's process: pid 1 is closed to us.
        let Some(command) = running.command() else { return Ok(()) };
        for op in &inside.mounts {
            let is_own = match op {
                MountOp::Tmpfs { mode, .. } => mode & 0o200 != 0,
                // With common room it is counted with the others.
                MountOp::Overlay { .. } => self.plan.scratch.is_none(),
                _ => false,
            };
            if is_own {
                match places.add_tmpfs(command, op.target()) {
                    Err(UsageError::Sys(error)) if is_gone(error.errno) => return Ok(()),
                    added => added?,
                }
            }
        }
        Ok(())
    }

    fn cpus(&self) -> u32 {
        let usable = palisade_sys::proc::usable_cpus().map_or(1, |cpus| cpus.len());
        let given = self.plan.affinity.as_ref().map_or(usable, Vec::len);
        u32::try_from(given).unwrap_or(u32::MAX)
    }

    /// What the kernel wakes us for.
    pub(crate) fn interests<'fd>(running: &'fd Running, set: &mut Vec<PollFd<'fd>>) {
        let events = running.group().map(Group::events).unwrap_or_default();
        set.extend(
            events.into_iter().map(|event| PollFd::from_borrowed_fd(event.fd, event.interest)),
        );
    }

    /// How long nothing has to be looked at.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let now = Instant::now();
        let next = self.next.map(|next| next.saturating_duration_since(now));
        let files = self.places.as_ref().filter(|_| self.next.is_some());
        [next, files.map(|places| places.due_in(now))].into_iter().flatten().min()
    }

    /// Looks at what is due, and hears what the kernel says.
    pub(crate) fn look(
        &mut self,
        running: &Running,
        events: &[PollFlags],
    ) -> Result<Option<Over>, SessionError> {
        if events.iter().any(|event| !event.is_empty())
            && let Some(over) = self.hear(running)?
        {
            return Ok(Some(over));
        }
        if self.next.is_none() {
            return Ok(None);
        }
        if let Some(over) = self.count_files()? {
            return Ok(Some(over));
        }
        if self.next.is_some_and(|next| next > Instant::now()) {
            return Ok(None);
        }
        let mut pause = self.lazily;
        self.lazily = (self.lazily * 2).min(LAZIEST);
        for found in [self.look_at_group(running)?, self.look_at_processes()?] {
            match found {
                Verdict::Over(exceeded) => return Ok(Some(self.over(exceeded))),
                Verdict::Within(wanted) => pause = wanted.map_or(pause, |wanted| pause.min(wanted)),
            }
        }
        if let Some(over) = self.hear(running)? {
            return Ok(Some(over));
        }
        self.next = self.next.map(|_| Instant::now() + pause);
        Ok(self.too_many_tasks())
    }

    /// Remembers for what the run is ended.
    pub(crate) fn exceeded(&mut self, over: Over) {
        self.tally.reached(over.what, over.usage, None);
    }

    /// Nobody is left to look at.
    pub(crate) fn forget(&mut self) {
        self.next = None;
    }

    fn hear(&mut self, running: &Running) -> Result<Option<Over>, SessionError> {
        let Some(group) = running.group() else { return Ok(None) };
        let Hits { oom_kills, oom_expected, .. } = group.hits()?;
        if oom_kills > 0 {
            return Ok(Some(Over { what: Limited::Memory, usage: group.usage()?.memory }));
        }
        if oom_expected {
            let soon = Instant::now() + OOM_FOLLOWS;
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
        Ok(None)
    }

    /// CPU time, where the group counts it.
    fn look_at_group(&self, running: &Running) -> Result<Verdict, SessionError> {
        let (Some(group), Some(limit)) = (running.group(), self.plan.watch.cpu_time_ms) else {
            return Ok(Verdict::Within(None));
        };
        let began = Instant::now();
        let usage = group.usage()?;
        let counted = usage.cpu_user.zip(usage.cpu_system);
        let Some((user, system)) = counted else {
            return Ok(Verdict::Over(Exceeded::Uncountable));
        };
        let seen = Seen { cpu_time: user + system, ..Seen::default() };
        let cpu_time = Some(Duration::from_millis(limit));
        let bounds = Bounds { memory: None, cpu_time, cpus: self.cpus() };
        Ok(decide(&bounds, &seen, began.elapsed()))
    }

    fn look_at_processes(&mut self) -> Result<Verdict, SessionError> {
        let Some(watchdog) = &mut self.watchdog else { return Ok(Verdict::Within(None)) };
        let own_files = match &self.places {
            Some(places) => places.own_bytes()?,
            None => 0,
        };
        match watchdog.look(own_files) {
            Ok(looked) => {
                self.tally.saw(&looked, watchdog.peaks());
                Ok(looked.verdict)
            }
            Err(UsageError::Gone(_)) => {
                self.next = None;
                Ok(Verdict::Within(None))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn over(&self, exceeded: Exceeded) -> Over {
        match exceeded {
            Exceeded::Memory { used, .. } => Over { what: Limited::Memory, usage: Some(used) },
            Exceeded::CpuTime { used, .. } => {
                let used = u64::try_from(used.as_millis()).unwrap_or(u64::MAX);
                Over { what: Limited::CpuTime, usage: Some(used) }
            }
            Exceeded::Uncountable => {
                let what = match self.plan.watch.memory {
                    Some(_) => Limited::Memory,
                    None => Limited::CpuTime,
                };
                Over { what, usage: None }
            }
        }
    }

    /// The kernel refuses the next one, where it holds the limit: then it is only remembered.
    fn too_many_tasks(&mut self) -> Option<Over> {
        let limit = self.limit_on_tasks()?;
        let tasks = self.tally.tasks()?;
        if limit.holder == Holder::Watchdog {
            return (tasks > limit.value).then_some(Over { what: limit.what, usage: Some(tasks) });
        }
        if tasks >= limit.value {
            self.tally.reached(limit.what, Some(tasks), None);
        }
        None
    }

    /// Where no group counts them; of two the smaller.
    fn limit_on_tasks(&self) -> Option<&'p Limit> {
        let on_tasks = self.plan.limits.iter().filter(|limit| {
            matches!(limit.what, Limited::Processes | Limited::Threads)
                && matches!(limit.holder, Holder::Rlimit | Holder::Watchdog)
        });
        on_tasks.min_by_key(|limit| limit.value)
    }

    fn count_files(&mut self) -> Result<Option<Over>, SessionError> {
        let Some(places) = &mut self.places else { return Ok(None) };
        let tree = self.watchdog.as_mut().map(Watchdog::tree);
        match places.step(COUNTING_A_TURN, tree) {
            Ok(Some(held)) => self.held = held,
            Ok(None) | Err(UsageError::Gone(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        Ok(self.judge_files())
    }

    fn judge_files(&mut self) -> Option<Over> {
        let Held { bytes, inodes } = self.held;
        let inodes = inodes.saturating_sub(self.plan.scratch.map_or(0, |own| own.own_inodes));
        for limit in &self.plan.limits {
            let (used, is_full) = match limit.what {
                Limited::Disk => (bytes, bytes.saturating_add(LEFT_WHEN_FULL) >= limit.value),
                Limited::Inodes => (inodes, inodes >= limit.value),
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

    /// Adds up what is known when nobody is left. The group goes.
    pub(crate) fn end(
        mut self,
        group: Option<Group>,
        usage: &Usage,
        capped: &[Capped],
    ) -> Result<Tally, SessionError> {
        // What was filled last: nobody can add to it any more.
        if let Some(places) = &mut self.places
            && let Ok(held) = places.finish()
        {
            self.held = held;
            if let Some(over) = self.judge_files() {
                self.tally.reached(over.what, over.usage, None);
            }
        }
        self.tally.processes(usage);
        if let Some(group) = group {
            self.tally.group(self.plan, group.usage()?, group.hits()?);
            group.remove()?;
        }
        for output in capped {
            self.tally.reached(Limited::Output, Some(output.seen_bytes), None);
        }
        Ok(self.tally)
    }
}

fn is_gone(errno: palisade_sys::Errno) -> bool {
    use palisade_sys::Errno;
    // EACCES: it ended, and its place in /proc is nobody's.
    matches!(errno, Errno::NOENT | Errno::SRCH | Errno::ACCESS)
}
