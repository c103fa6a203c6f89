//! Explains why a crash left no core file where one was requested (core(5)).
//!
//! The kernel writes that file as the crashing process, without a system call that the broker could perform. In a
//! guarded tree Landlock refuses it.

use palisade_plan::model::{self, Plan};
use palisade_sys::proc::{Resource, get_rlimit};
use std::path::{Path, PathBuf};

/// Signals that dump core by default; see signal(7).
const DUMPING: [(i32, &str); 10] = [
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (11, "SIGSEGV"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

const PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// A note for a person who looks for the core file of a command that was killed by `signal`.
pub(crate) fn note(plan: &Plan, signal: i32) -> Option<String> {
    // The command inherits our limit, unless the plan sets it to 0: then none is expected.
    let is_limited =
        plan.sandbox.rlimits.iter().any(|limit| limit.resource == model::Resource::Core);
    if is_limited || get_rlimit(Resource::Core).soft == Some(0) {
        return None;
    }
    let pattern = std::fs::read(PATTERN).ok()?;
    let guarded = &plan.sandbox.landlock.as_ref()?.guarded;
    missing(&plan.command.cwd, guarded, signal, &pattern)
}

fn missing(cwd: &Path, guarded: &[PathBuf], signal: i32, pattern: &[u8]) -> Option<String> {
    let (_, name) = DUMPING.iter().find(|(number, _)| *number == signal)?;
    // A program of the host receives it, or it goes to one directory for all.
    if matches!(pattern.first(), Some(b'|' | b'/' | b'@')) {
        return None;
    }
    guarded.iter().find(|tree| cwd.starts_with(tree))?;
    Some(format!(
        "killed by {name}; no core file can be written in {}, where the sandbox performs every write itself: \
         run the command in a directory of its own (cd /dev/shm) and copy the file, or without the sandbox",
        cwd.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::{Path, PathBuf, missing};

    #[test]
    fn a_core_file_is_missed_only_where_it_would_have_been() {
        let guarded = [PathBuf::from("/work")];
        let told =
            |signal, pattern: &[u8]| missing(Path::new("/work/p"), &guarded, signal, pattern);
        let crash = told(11, b"core\n").unwrap();
        assert!(crash.contains("SIGSEGV") && crash.contains("/dev/shm"), "{crash}");
        assert_eq!(told(15, b"core\n"), None);
        assert_eq!(told(11, b"|/usr/bin/handler %p\n"), None);
        assert_eq!(told(11, b"/var/core/%p\n"), None);
        assert_eq!(missing(Path::new("/tmp"), &guarded, 11, b"core\n"), None);
    }
}
