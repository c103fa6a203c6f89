//! A session that nobody uses gives back the memory of the program (LIFE-4).

use std::fs;

use palisade_testkit::World;

use crate::sessions_support::{Sessions, descendants, wait_until};

/// Pages of files that a process has in memory: of these, nearly all are the program's.
fn file_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// More than libraries and the few pages in which a process waits, and less than what a start takes.
const IDLE_KIB: u64 = 4096;

fn processes(supervisor: u32) -> Vec<u32> {
    let mut all = descendants(supervisor);
    all.push(supervisor);
    all
}

/// Proves: LIFE-4 idle
#[test]
fn an_idle_session_gives_back_the_memory_of_the_program() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let session = sessions.create(&[]);
    let supervisor = sessions.supervisor(&session);
    for _ in 0..2 {
        sessions.output_of(&session, &["true"]);
        assert!(file_kib(supervisor).is_some_and(|used| used > IDLE_KIB), "it has just worked");
        wait_until("the session gives its memory back", || {
            let all = processes(supervisor);
            all.len() > 2 && all.into_iter().filter_map(file_kib).all(|used| used < IDLE_KIB)
        });
    }
}
