use rustix::io::Errno;

use super::*;
use crate::clone::{CloneFlags, Forked, fork};
use crate::proc::{Status, exit_now, wait_pid_rusage};
use crate::test_child::{become_namespace_root, in_child};

fn uptime() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_child_sees_the_shifted_clock() {
    in_child(|| {
        let before = uptime();
        become_namespace_root(CloneFlags::NEWTIME);
        write_timens_offsets(1_000_000, 2_000_000).unwrap();
        let Forked::Parent { pid, .. } = fork().unwrap() else {
            let shifted = uptime() - before;
            exit_now(i32::from(!(2_000_000.0..2_000_100.0).contains(&shifted)));
        };
        assert_eq!(wait_pid_rusage(pid).unwrap().status, Status::Exited(0));
        assert_eq!(write_timens_offsets(0, 0).unwrap_err().errno, Errno::ACCESS);
    });
}
