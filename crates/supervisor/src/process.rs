//! Who is waiting for an answer, as the host's `/proc` tells: for people to look at, never to decide by.
//!
//! A process can choose its name and command line, and end at any moment; what cannot be read is left empty.

use palisade_ask::{Ancestor, Process};
use palisade_sys::Pid;
use palisade_sys::other::pidfd_of;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

/// Ancestors shown; a deeper tree says no more.
const MAX_ANCESTORS: usize = 8;
/// Of a command line, and of what `/proc` says otherwise; the rest is cut.
const MAX_TEXT_BYTES: usize = 4096;

/// `thread` and `roots` (pid 1 of the sandbox, and the spawner) as the host numbers them. Who started these is no
/// concern of the sandbox.
pub(crate) fn describe(thread: u32, roots: &[u32], executable: &[u8], cwd: &[u8]) -> Process {
    let status = status(thread);
    let pid = number(&status, "Tgid:").unwrap_or(thread);
    let mut ancestors = Vec::new();
    // A thread's parent is its process's.
    let mut next = number(&status, "PPid:");
    while let Some(parent) = next.filter(|parent| *parent > 1 && !roots.contains(parent)) {
        if ancestors.len() == MAX_ANCESTORS {
            break;
        }
        let stat = read(parent, "stat");
        let fields = Stat::of(&stat);
        let name = fields.map(|fields| text(fields.name)).unwrap_or_default();
        ancestors.push(Ancestor { pid: parent, name });
        next = fields.and_then(|fields| fields.number(4)?.try_into().ok());
    }
    Process {
        pid,
        executable: text(executable),
        arguments: arguments(pid),
        cwd: text(cwd),
        ancestors,
    }
}

/// A process, told apart from a later one that got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) pid: u32,
    /// In ticks since the host booted; none of one that is gone.
    started: Option<u64>,
}

impl Known {
    pub(crate) fn of_process(pid: u32) -> Self {
        let stat = read(pid, "stat");
        Self { pid, started: Stat::of(&stat).and_then(|fields| fields.number(22)) }
    }

    /// Nobody is the same as one that is gone.
    fn is(&self, other: &Self) -> bool {
        self.started.is_some() && self == other
    }
}

/// Which file a process runs: device and inode. None where it is gone or may not be looked at.
pub(crate) fn program_of(pid: u32) -> Option<(u64, u64)> {
    let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((program.dev(), program.ino()))
}

/// The clock that starts of processes are told by, in its hundredths of a second (proc_pid_stat(5), field 22).
pub(crate) fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec * 100 + now.tv_nsec / 10_000_000).unwrap_or_default()
}

/// Whether a process was started at this time or later.
pub(crate) fn was_started_since(pid: u32, ticks: u64) -> bool {
    Known::of_process(pid).started.is_some_and(|started| started >= ticks)
}

/// A process by a descriptor. A start is told in hundredths of a second, in which a number can be given anew; while
/// this one lives its number is nobody else's.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) pid: u32,
    pidfd: OwnedFd,
}

impl Held {
    pub(crate) fn of(known: &Known) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(known.pid).ok()?)?;
        let pidfd = pidfd_of(pid).ok()?;
        // In this order: who is held by now is who was known.
        Known::of_process(known.pid).is(known).then_some(Self { pid: known.pid, pidfd })
    }

    pub(crate) fn lives(&self) -> bool {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut ended, Some(&Timespec::default())) == Ok(0)
    }
}

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: u32) -> u32 {
    number(&status(thread), "Tgid:").unwrap_or(thread)
}

/// Whether a process is `ancestor` or was started by it, directly or by others that still run. One whose parent ended belongs
/// to pid 1 from then on.
pub(crate) fn is_within(ancestor: u32, process: u32) -> bool {
    let mut next = Some(process);
    for _ in 0..=MAX_ANCESTORS {
        match next {
            Some(pid) if pid == ancestor => return true,
            Some(pid) if pid > 1 => next = number(&status(pid), "PPid:"),
            _ => return false,
        }
    }
    false
}

/// Every process that was started below `roots` and is still there, in the order of their numbers.
pub(crate) fn descendants(roots: &[u32]) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in numbers {
        let stat = read(pid, "stat");
        let parent = Stat::of(&stat).and_then(|fields| fields.number(4)?.try_into().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<u32> = Vec::new();
    let mut above: Vec<u32> = roots.to_vec();
    while let Some(parent) = above.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        found.extend(&below);
        above.extend(below);
    }
    found.sort_unstable();
    found
}

/// What a process calls itself; empty of one that is gone.
pub(crate) fn name_of(pid: u32) -> String {
    let stat = read(pid, "stat");
    Stat::of(&stat).map(|fields| text(fields.name)).unwrap_or_default()
}

/// proc_pid_stat(5), read from its end: the name may hold anything, also a closing parenthesis.
#[derive(Clone, Copy, Debug)]
struct Stat<'s> {
    name: &'s [u8],
    /// From the third on.
    fields: &'s str,
}

impl<'s> Stat<'s> {
    fn of(stat: &'s [u8]) -> Option<Self> {
        let start = stat.iter().position(|byte| *byte == b'(')? + 1;
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(stat.get(end + 2..)?).ok()?;
        Some(Self { name: stat.get(start..end)?, fields })
    }

    /// As the manual counts them.
    fn number(&self, field: usize) -> Option<u64> {
        self.fields.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
    }
}

fn arguments(pid: u32) -> Vec<String> {
    let line = read(pid, "cmdline");
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    if line.is_empty() {
        return Vec::new();
    }
    line.split(|byte| *byte == 0).map(text).collect()
}

fn status(pid: u32) -> String {
    text(&read(pid, "status"))
}

/// With one call: somebody waits, and reading to the end takes ten.
fn read(pid: u32, name: &str) -> Vec<u8> {
    let mut beginning = vec![0; MAX_TEXT_BYTES];
    let file = File::open(format!("/proc/{pid}/{name}"));
    let length = file.and_then(|mut file| file.read(&mut beginning)).unwrap_or_default();
    beginning.truncate(length);
    beginning
}

fn number(status: &str, field: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Held, Known, Stat, describe};
    use std::process::Stdio;

    #[test]
    fn a_process_has_a_command_line_and_a_parent() {
        let told = describe(std::process::id(), &[], b"/bin/x", b"/");
        assert_eq!(told.pid, std::process::id());
        assert_eq!(told.arguments.first(), std::env::args().next().as_ref());
        let parent = std::os::unix::process::parent_id();
        assert_eq!(told.ancestors[0].pid, parent);
        assert!(describe(std::process::id(), &[7, parent], b"", b"").ancestors.is_empty());
    }

    /// Proves: GATE-5 same-process
    #[test]
    fn a_number_alone_makes_nobody_the_same() {
        let mut child = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let known = Known::of_process(child.id());
        let other = Known { started: known.started.map(|started| started + 1), ..known };
        assert!(Held::of(&other).is_none());
        let held = Held::of(&known).unwrap();
        assert!(held.lives());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!held.lives());
        assert!(Held::of(&known).is_none());
        assert!(Held::of(&Known::of_process(u32::MAX)).is_none());
    }

    #[test]
    fn a_name_that_looks_like_fields_is_a_name() {
        let fields = (3..=52).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let text = format!("7 (a) 1 (2) {fields}\n");
        let stat = Stat::of(text.as_bytes()).unwrap();
        assert_eq!(stat.name, b"a) 1 (2");
        assert_eq!((stat.number(4), stat.number(22)), (Some(4), Some(22)));
        assert_eq!(stat.number(53), None);
        for broken in [&b""[..], b"7 (a)", b"7 )a(", b"7"] {
            assert!(Stat::of(broken).and_then(|stat| stat.number(22)).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn one_that_is_gone_is_told_without_details() {
        let told = describe(u32::MAX, &[], b"/bin/\xff", b"");
        assert_eq!((told.pid, told.executable.as_str()), (u32::MAX, "/bin/\u{fffd}"));
        assert!(told.arguments.is_empty() && told.ancestors.is_empty());
    }
}
