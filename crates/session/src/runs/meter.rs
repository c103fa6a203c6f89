//! Measures the current usage of a run (RES-3) from outside its supervisor.
//!
//! Reads processes from `/proc`; where the run has control groups, memory and CPU time come from them, which is more
//! accurate. Must never affect the run.

use super::Announced;
use palisade_sys::Pid;
use palisade_usage::{Io, Sample, Tree, UsageError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The usage up to a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub at: Instant,
    pub cpu: Duration,
    pub memory_bytes: u64,
    /// The kernel's own where a group counts it, else the highest value that this meter saw.
    pub peak_memory_bytes: u64,
    pub processes: u64,
    pub threads: u64,
    /// `None` where the kernel does not report it.
    pub io: Option<Io>,
}

/// Measures one run repeatedly.
#[derive(Debug)]
pub struct Meter {
    tree: Tree,
    /// The commands of a session, below the process that starts them. Orphans are in the other tree.
    commands: Option<Tree>,
    groups: Vec<PathBuf>,
}

impl Meter {
    /// `None` if the run has ended.
    pub fn of(run: &Announced) -> Result<Option<Self>, UsageError> {
        let pid = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
        let Some(init) = pid(run.init) else {
            return Ok(None);
        };
        // Without it, what it started is not seen; the rest is.
        let commands = run.spawner.and_then(pid).and_then(|spawner| Tree::new(spawner).ok());
        match Tree::new(init) {
            Ok(tree) => Ok(Some(Self { tree, commands, groups: run.cgroups.clone() })),
            Err(UsageError::Gone(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None` if the run has ended.
    pub fn read(&mut self) -> Result<Option<Reading>, UsageError> {
        let mut sample = match self.tree.sample() {
            Ok(sample) => sample,
            Err(UsageError::Gone(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut seen = self.tree.peaks().memory_bytes;
        if let Some(commands) = &mut self.commands
            && let Ok(more) = commands.sample()
        {
            seen = seen.saturating_add(commands.peaks().memory_bytes);
            sample = together(sample, more);
        }
        let group = GroupNumbers::of(&self.groups);
        let memory_bytes = group.memory.unwrap_or(sample.memory_bytes);
        let seen = seen.max(memory_bytes);
        Ok(Some(Reading {
            at: Instant::now(),
            cpu: group.cpu.unwrap_or(sample.cpu_user + sample.cpu_system),
            memory_bytes,
            peak_memory_bytes: group.memory_peak.or(group.memory).unwrap_or(seen),
            processes: sample.processes,
            threads: sample.threads,
            io: sample.io,
        }))
    }
}

/// Both trees. The process that starts commands is none of the sandbox's.
fn together(sandbox: Sample, commands: Sample) -> Sample {
    let io = match (sandbox.io, commands.io) {
        (Some(one), Some(other)) => Some(Io {
            read_bytes: one.read_bytes.saturating_add(other.read_bytes),
            written_bytes: one.written_bytes.saturating_add(other.written_bytes),
            reads: one.reads.saturating_add(other.reads),
            writes: one.writes.saturating_add(other.writes),
        }),
        (one, other) => one.or(other),
    };
    Sample {
        cpu_user: sandbox.cpu_user + commands.cpu_user,
        cpu_system: sandbox.cpu_system + commands.cpu_system,
        memory_bytes: sandbox.memory_bytes.saturating_add(commands.memory_bytes),
        processes: (sandbox.processes + commands.processes).saturating_sub(1),
        threads: (sandbox.threads + commands.threads).saturating_sub(1),
        io,
        ..sandbox
    }
}

/// The values in the files of control groups, of either version.
#[derive(Debug, Default, PartialEq, Eq)]
struct GroupNumbers {
    cpu: Option<Duration>,
    memory: Option<u64>,
    memory_peak: Option<u64>,
}

impl GroupNumbers {
    fn of(groups: &[PathBuf]) -> Self {
        let first = |names: [&str; 2]| {
            groups.iter().find_map(|group| names.iter().find_map(|name| number(group, name)))
        };
        let cpu_v2 = groups.iter().find_map(|group| {
            let stat = std::fs::read_to_string(group.join("cpu.stat")).ok()?;
            let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
            micros.trim().parse().ok().map(Duration::from_micros)
        });
        let cpu_v1 = || {
            groups.iter().find_map(|group| number(group, "cpuacct.usage")).map(Duration::from_nanos)
        };
        Self {
            cpu: cpu_v2.or_else(cpu_v1),
            memory: first(["memory.current", "memory.usage_in_bytes"]),
            memory_peak: first(["memory.peak", "memory.max_usage_in_bytes"]),
        }
    }
}

fn number(group: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{GroupNumbers, Meter};
    use crate::runs::Announced;
    use jiff::Timestamp;
    use std::fs;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn run(init: u32) -> Announced {
        Announced {
            session: "s".to_owned(),
            init,
            spawner: None,
            command: String::new(),
            started_at: Timestamp::UNIX_EPOCH,
            cgroups: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Proves: RES-3 live, RES-5 monitoring
    #[test]
    fn a_tree_is_read_while_it_lives_and_its_end_is_seen() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & read line; kill $!"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut meter = Meter::of(&run(child.id())).unwrap().unwrap();
        let reading = loop {
            let reading = meter.read().unwrap().unwrap();
            if reading.processes == 2 {
                break reading;
            }
        };
        assert!(reading.memory_bytes > 0 && reading.peak_memory_bytes >= reading.memory_bytes);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(meter.read().unwrap(), None);
        assert!(Meter::of(&run(child.id())).unwrap().is_none());
    }

    #[test]
    fn groups_of_both_versions_are_understood() {
        let directory = tempfile::tempdir().unwrap();
        let (v2, memory, cpu) = ("v2", "v1-memory", "v1-cpu");
        let group = |name: &str| {
            let group = directory.path().join(name);
            fs::create_dir_all(&group).unwrap();
            group
        };
        fs::write(group(v2).join("cpu.stat"), "usage_usec 1500\nuser_usec 1000\n").unwrap();
        fs::write(group(v2).join("memory.current"), "4096\n").unwrap();
        assert_eq!(
            GroupNumbers::of(&[group(v2)]),
            GroupNumbers {
                cpu: Some(Duration::from_micros(1500)),
                memory: Some(4096),
                memory_peak: None
            }
        );
        // The CPU controller of v1 has a cpu.stat as well, which tells other things.
        fs::write(group(cpu).join("cpu.stat"), "nr_periods 0\nnr_throttled 0\n").unwrap();
        fs::write(group(cpu).join("cpuacct.usage"), "2000\n").unwrap();
        fs::write(group(memory).join("memory.usage_in_bytes"), "8192\n").unwrap();
        fs::write(group(memory).join("memory.max_usage_in_bytes"), "16384\n").unwrap();
        assert_eq!(
            GroupNumbers::of(&[group(memory), group(cpu)]),
            GroupNumbers {
                cpu: Some(Duration::from_micros(2)),
                memory: Some(8192),
                memory_peak: Some(16384)
            }
        );
        assert_eq!(GroupNumbers::of(&[]), GroupNumbers::default());
    }
}
