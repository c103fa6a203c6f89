use super::{Gate, Grounds};
use crate::{DIRECTORY, NO_MODE};
use palisade_policy::model::OnAsk;
use palisade_sys::Errno;
use rustix::fs::{CWD, openat};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

fn grounds(top: &std::path::Path) -> Grounds {
    let gate = Gate {
        grounds: vec![top.to_owned()],
        never: Vec::new(),
        secrets: Vec::new(),
        homes: Vec::new(),
        mounted: Vec::new(),
        executes: false,
        on_ask: OnAsk::Ask,
        ask_timeout_ms: 0,
    };
    let proc = openat(CWD, "/proc", DIRECTORY, NO_MODE).unwrap();
    Grounds::look_up(&gate, Box::leak(Box::new(proc)))
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
    let (is_over, times) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut other = None;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::create_dir(&directory).unwrap();
                fs::remove_dir(&directory).unwrap();
                times.fetch_add(1, Ordering::Relaxed);
            }
        });
        while times.load(Ordering::Relaxed) < 20_000 && other.is_none() {
            let told = grounds.missing(no_base, file.as_os_str().as_bytes(), true);
            other = Some(told).filter(|told| told.as_deref() != Some(file.as_os_str().as_bytes()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(other, None);
}
