//! Why a crash left no core file where one was asked for (core(5)).
//!
//! The kernel writes that file as the crashing process, and makes no system call that the broker could perform for it; in
//! a guarded tree Landlock refuses it. Pure but for what is read of this process and the host.

use palisade_plan::model::{self, Plan};
use palisade_sys::proc::{Resource, get_rlimit};
use std::path::{Path, PathBuf};

/// Those that leave one by default, see signal(7).
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

/// What a person should know who looks for the core file of a command that ended by `signal`.
pub(crate) fn note(plan: &Plan, signal: i32) -> Option<String> {
    // The command has the same limit, unless the plan gives it another: none then.
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
    // A program of the host's gets it, or it goes to one place for all.
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
