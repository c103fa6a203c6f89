#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

use palisade_sys::creds::set_dumpable;
use palisade_sys::test_child::in_child;

use super::*;
use crate::stage::MIB;

/// Twenty short-lived processes, collected by one that stands for a sandbox's first, collected by its
/// parent, collected by us.
const SCRIPT: &str = r"
import os, sys
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
def write(number):
    file = os.open(f'{sys.argv[1]}/{number}', os.O_CREAT | os.O_WRONLY)
    assert os.write(file, b'x' * (1 << 20)) == 1 << 20
def first():
    for number in range(20):
        child(lambda: write(number))
child(first)
";

fn run(directory: &Path) {
    let status =
        Command::new("/usr/bin/python3").args(["-I", "-c", SCRIPT]).arg(directory).status();
    assert!(status.unwrap().success());
}

/// The supervisor is undumpable when its command has ended.
/// Proves: RES-3 final
#[test]
fn what_short_lived_descendants_wrote_is_known_in_the_end() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    in_child(|| {
        run(directory.path());
        let collected = Collected::open().unwrap();
        set_dumpable(false).unwrap();
        let before = collected.since().unwrap();
        assert_eq!((before.writes, before.written_bytes), (0, 0), "what was before does not count");
        std::fs::write(directory.path().join("own"), vec![1; 1 << 20]).unwrap();
        assert_eq!(collected.since().unwrap().written_bytes, 0, "nor what is our own");
        for number in 0..20 {
            std::fs::remove_file(directory.path().join(number.to_string())).unwrap();
        }
        run(directory.path());
        let io = collected.since().unwrap();
        assert!((20..60).contains(&io.writes), "{io:?}");
        assert!((20 * MIB..25 * MIB).contains(&io.written_bytes), "{io:?}");
    });
}
