#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::process::Command;

use palisade_sys::creds::set_dumpable;
use palisade_sys::test_child::in_child;

use super::*;

/// The supervisor is undumpable when its command has ended.
/// Proves: RES-3 final
#[test]
fn what_a_child_wrote_is_known_once_it_was_waited_for() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = directory.path().join("written");
    in_child(move || {
        let mut collected = Collected::open().unwrap();
        set_dumpable(false).unwrap();
        let before = collected.io().unwrap().unwrap();
        let script = format!("exec dd if=/dev/zero of={} bs=64k count=32", file.display());
        assert!(Command::new("sh").args(["-c", &script]).output().unwrap().status.success());
        let after = collected.io().unwrap().unwrap();
        assert!((32..64).contains(&(after.writes - before.writes)), "{after:?}");
        assert!(after.written_bytes - before.written_bytes >= 32 * 65536, "{after:?}");
    });
}
