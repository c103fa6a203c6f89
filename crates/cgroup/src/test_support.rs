//! What several tests need.

use crate::{CgroupError, GroupEntry, RunGroup};
use palisade_plan::limit::{CgroupHome, Group, GroupSettings};
use palisade_sys::clone::{CloneFlags, Forked};
use palisade_sys::proc::{Status, exit_now, wait_pid_rusage};
use palisade_sys::{Pid, proc};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A session id that no other test, nor another run of the tests, uses at the same time.
pub(crate) fn session() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}-7e57-7000-8000-{number:012x}", std::process::id())
}

/// Makes a group for the settings wherever this host lets us, if it has all they need.
pub(crate) fn create(settings: GroupSettings) -> Option<RunGroup> {
    match try_create(settings) {
        None | Some(Err(CgroupError::NoSuchLimit { .. })) => None,
        Some(held) => Some(held.unwrap()),
    }
}

/// The same, with what went wrong; none where there is no place for it.
pub(crate) fn try_create(settings: GroupSettings) -> Option<Result<RunGroup, CgroupError>> {
    let home = crate::find();
    if let CgroupHome::Nowhere { why } = &home {
        println!("not tried here: {why}");
        return None;
    }
    Some(RunGroup::create(&Group { home, settings }, &session()))
}

/// Starts `body` in the group; it ends with what `body` returns.
pub(crate) fn start(entry: GroupEntry<'_>, body: impl FnOnce() -> i32) -> Pid {
    let birth = entry.clone3(CloneFlags::NONE).unwrap();
    match birth.forked {
        Forked::Child => {
            let joined = birth.to_join.join();
            exit_now(if joined.is_ok() { body() } else { 99 })
        }
        Forked::Parent { pid, .. } => pid,
    }
}

pub(crate) fn end_of(pid: Pid) -> Status {
    wait_pid_rusage(pid).unwrap().status
}

/// Touches so many bytes and gives them back.
pub(crate) fn use_memory(bytes: usize) -> i32 {
    let mut memory = vec![0_u8; bytes];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
    0
}

pub(crate) fn use_cpu(time: Duration) -> i32 {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
    0
}

/// Waits for what `is_so` looks at, which the kernel does in its own time.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came");
        proc::poll(&mut [], Some(Duration::from_millis(1))).unwrap();
    }
}
