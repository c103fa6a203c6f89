//! Finds the first child of a process, even where `/proc` hides its parent (`hidepid`, proc(5)): pid 1 of a
//! sandbox is undumpable and so hidden from the user who started it. The command is not.

use rustix::process::Pid;
use std::fs;

/// In `/proc/PID/stat`, counted from the field behind the name.
const PARENT: usize = 1;
const STARTED: usize = 19;

pub(crate) fn first_child(parent: u32) -> Option<Pid> {
    match fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        Ok(children) => children.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw),
        Err(_hidden) => search(parent),
    }
}

/// Looks at every visible process. The first child is the oldest: orphans that the parent adopts were started
/// later.
fn search(parent: u32) -> Option<Pid> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let children = pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (of, started) = parent_and_start(&stat)?;
        (of == parent).then_some((started, pid))
    });
    children.min().and_then(|(_, pid)| Pid::from_raw(pid))
}

/// A program's name may contain blanks and parentheses.
fn parent_and_start(stat: &str) -> Option<(u32, u64)> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    Some((fields.get(PARENT)?.parse().ok()?, fields.get(STARTED)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{first_child, parent_and_start, search};
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    #[test]
    fn a_search_finds_the_child_that_the_kernel_lists_first() {
        let script = "sleep 60 & echo $!; sleep 60 & wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).process_group(0);
        let mut parent = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let found = (search(parent.id()), first_child(parent.id()));
        kill_process_group(Pid::from_child(&parent), Signal::KILL).unwrap();
        parent.wait().unwrap();
        let expected = first.trim().parse().ok().and_then(Pid::from_raw);
        assert_eq!(found, (expected, expected));
    }

    #[test]
    fn a_name_is_no_field() {
        let rest = "S 7 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(parent_and_start(&format!("12 (a) b ) {rest}")), Some((7, 4711)));
        assert_eq!(parent_and_start("12 (a) S"), None);
    }
}
