//! What differs from host to host, and so which layers stand and which attacks can be tried; and how
//! the probe is called.

use std::fs;

use palisade_testkit::{World, am_root};

/// Whether a process may trace another that is not its child, as far as Yama is concerned.
pub(crate) fn allows_tracing() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.map_or(true, |scope| scope.trim() == "0")
}

/// Whether the kernel still lets a program type into its terminal (off by default since 6.2).
pub(crate) fn allows_tiocsti() -> bool {
    let setting = fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    setting.map_or(true, |setting| setting.trim() == "1")
}

/// Whether reading the kernel's log needs no capability.
pub(crate) fn may_read_kernel_log() -> bool {
    let restricted = fs::read_to_string("/proc/sys/kernel/dmesg_restrict");
    restricted.is_ok_and(|restricted| restricted.trim() == "0")
}

/// `unshare` into a pid namespace with its own `/proc`, as this caller has to ask for it.
pub(crate) fn in_own_pid_namespace() -> Vec<String> {
    let mut words = vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !am_root() {
        words.extend(["--user", "--map-current-user"]);
    }
    strings(&words)
}

pub(crate) fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `unshare` into mounts of one's own, as this caller has to ask for it.
pub(crate) fn in_own_mounts() -> Vec<String> {
    let mut words = vec!["unshare", "--mount"];
    if !am_root() {
        words.extend(["--user", "--map-current-user", "--keep-caps"]);
    }
    strings(&words)
}

/// The probe with these words.
pub(crate) fn probe(world: &World, words: &[&str]) -> Vec<String> {
    [vec![world.probe()], strings(words)].concat()
}

/// What a process id written to a file in the project is called.
pub(crate) const PID_FILE: &str = "supervisor.pid";

/// The probe, started by a process that is there to be attacked, for the bare run.
pub(crate) fn probe_at_stand_in(world: &World, words: &[&str]) -> Vec<String> {
    [probe(world, &["stand-in", PID_FILE, "--"]), probe(world, words)].concat()
}

/// The probe, once pid 1 is as weak as it gets.
pub(crate) fn probe_at_pid_1(world: &World, words: &[&str]) -> Vec<String> {
    [probe(world, &["once-pid-1-settled", "--"]), probe(world, words)].concat()
}

/// Tells its own process id and becomes the program: the id is then the supervisor's.
pub(crate) fn telling_its_pid(_: &World) -> Vec<String> {
    strings(&["sh", "-c", r#"echo $$ > "$0"; exec "$@""#, PID_FILE])
}
