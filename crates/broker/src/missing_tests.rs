use super::{Gate, ScaffoldMounts};
use crate::{DIRECTORY, NO_MODE};
use palisade_plan::model::Answers;
use palisade_policy::model::OnAsk;
use palisade_sys::Errno;
use rustix::fs::{CWD, openat};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

const ROUNDS: u32 = 10_000;

fn grounds(top: &std::path::Path) -> ScaffoldMounts {
    let gate = Gate {
        grounds: vec![top.to_owned()],
        never: Vec::new(),
        secrets: Vec::new(),
        homes: Vec::new(),
        mounted: Vec::new(),
        executes: false,
        answers: Answers::OnAsk(OnAsk::Ask),
        ask_timeout_ms: 0,
        most_questions: 0,
        above_project: Vec::new(),
        left_by_tools: Vec::new(),
        private_home: None,
        directories: Vec::new(),
        executes_written: true,
        known_callers: true,
        own: Vec::new(),
        trigger: palisade_plan::model::Trigger::Notify,
        trigger_reason: "",
    };
    let proc = openat(CWD, "/proc", DIRECTORY, NO_MODE).unwrap();
    ScaffoldMounts::look_up(&gate, Box::leak(Box::new(proc)))
}

/// The mount points of a grant for one call go while the next call looks for its own way.
///
/// Proves: GATE-1 blocks-and-asks
#[test]
fn directories_that_come_and_go_change_nothing_in_what_is_missing() {
    let top = tempfile::tempdir().unwrap();
    let top_path = top.path().canonicalize().unwrap();
    let grounds = grounds(&top_path);
    let (directory, file) = (top_path.join("sdk"), top_path.join("sdk/include/x.h"));
    let no_base = || -> Result<OwnedFd, Errno> { Err(Errno::NOENT) };
    // One removal a call, as a grant that ends makes it, at every moment of the walk.
    let (begun, removed) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut others = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(&begun, round);
                (0..round % 512).for_each(|_| std::hint::spin_loop());
                fs::remove_dir(&directory).unwrap();
                removed.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            fs::create_dir(&directory).unwrap();
            begun.store(round, Ordering::Release);
            let told = grounds.missing(no_base, file.as_os_str().as_bytes(), true);
            wait_for(&removed, round);
            let told = told.map(|missing| missing.path);
            others.extend(
                Some(told).filter(|told| told.as_deref() != Some(file.as_os_str().as_bytes())),
            );
        }
    });
    assert_eq!(others, []);
}

fn wait_for(counter: &AtomicU32, round: u32) {
    while counter.load(Ordering::Acquire) < round {
        thread::yield_now();
    }
}
