//! Who is at the other end of a socket of ours.

use rustix::process::Pid;

/// Whether a process is outside every sandbox: one with namespaces has a user namespace of its own.
pub fn shares_user_namespace(pid: Pid) -> bool {
    let namespace = |of: String| std::fs::read_link(format!("/proc/{of}/ns/user")).ok();
    let own = namespace("self".to_owned());
    own.is_some() && own == namespace(pid.as_raw_pid().to_string())
}
