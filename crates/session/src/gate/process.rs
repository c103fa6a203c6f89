//! Who is waiting for an answer, as the host's `/proc` tells: for people to look at, never to decide by.
//!
//! A process can choose its name and command line, and end at any moment; what can not be read is left empty.

use palisade_ask::{Ancestor, Process};
use std::fs;

/// Ancestors shown; a deeper tree says no more.
const MOST_ANCESTORS: usize = 8;
/// Of a command line; the rest is cut.
const LONGEST_COMMAND: usize = 4096;

/// `thread` and `top` (pid 1 of the sandbox) as the host numbers them.
pub(super) fn describe(thread: u32, top: u32, executable: &[u8], cwd: &[u8]) -> Process {
    let status = status(thread);
    let pid = number(&status, "Tgid:").unwrap_or(thread);
    let mut ancestors = Vec::new();
    // A thread's parent is its process's.
    let mut next = number(&status, "PPid:");
    while let Some(parent) = next.filter(|parent| *parent > 1 && *parent != top) {
        if ancestors.len() == MOST_ANCESTORS {
            break;
        }
        ancestors.push(Ancestor { pid: parent, name: name(parent) });
        next = number(&self::status(parent), "PPid:");
    }
    Process {
        pid,
        executable: text(executable),
        arguments: arguments(pid),
        cwd: text(cwd),
        ancestors,
    }
}

/// The process that a thread belongs to.
pub(super) fn process_of(thread: u32) -> u32 {
    number(&status(thread), "Tgid:").unwrap_or(thread)
}

fn arguments(pid: u32) -> Vec<String> {
    let mut line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.truncate(LONGEST_COMMAND);
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    if line.is_empty() {
        return Vec::new();
    }
    line.split(|byte| *byte == 0).map(text).collect()
}

fn name(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    text(name.trim_ascii_end())
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn number(status: &str, field: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn a_process_has_a_command_line_and_a_parent() {
        let told = describe(std::process::id(), 0, b"/bin/x", b"/");
        assert_eq!(told.pid, std::process::id());
        assert_eq!(told.arguments.first(), std::env::args().next().as_ref());
        assert_eq!(told.ancestors[0].pid, std::os::unix::process::parent_id());
    }

    #[test]
    fn one_that_is_gone_is_told_without_details() {
        let told = describe(u32::MAX, 0, b"/bin/\xff", b"");
        assert_eq!((told.pid, told.executable.as_str()), (u32::MAX, "/bin/\u{fffd}"));
        assert!(told.arguments.is_empty() && told.ancestors.is_empty());
    }
}
