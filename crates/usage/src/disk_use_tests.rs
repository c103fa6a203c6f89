#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::Tree;
use crate::stage::{Actor, MIB, as_ordinary_user};

/// Memory that is in a file without a name and mapped nowhere shows in no process's memory.
/// Proves: RES-1 memory
#[test]
fn a_memory_file_is_seen_once_however_many_hold_it() {
    let actor = Actor::ready(
        "
file = os.memfd_create('hidden')
for _ in range(40):
    os.write(file, b'x' * (1 << 20))
os.dup(file)
child()
await_children(1)
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let sample = tree.sample().unwrap();
    assert!(sample.memory_bytes < 40 * MIB, "{sample:?}");
    let held = tree.held_files().unwrap();
    assert_eq!(held.memfd_bytes, 40 * MIB);
    assert_eq!((held.unread_processes, held.was_cut), (0, false));
}

/// Proves: FS-6 space
#[test]
fn a_deleted_file_is_seen_until_it_is_closed() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("deleted");
    let mut actor = Actor::ready(&format!(
        "
file = os.open({path:?}, os.O_CREAT | os.O_WRONLY)
os.posix_fallocate(file, 0, 8 << 20)
ready()
os.unlink({path:?})
ready()
os.close(file)
ready()
"
    ));
    let mut tree = Tree::new(actor.pid()).unwrap();
    let mut deleted = || {
        tree.sample().unwrap();
        tree.held_files().unwrap().deleted.values().sum::<u64>() / MIB
    };
    assert_eq!(deleted(), 0);
    actor.go_on();
    actor.await_ready();
    assert_eq!(deleted(), 8);
    actor.go_on();
    actor.await_ready();
    assert_eq!(deleted(), 0);
}

/// A process can close its files in `/proc` to its own user. What it runs and holds in memory is told all
/// the same, and that the rest is not.
/// Proves: RES-3 live
#[test]
fn who_closes_itself_is_counted_as_far_as_can_be() {
    let directory = tempfile::tempdir().unwrap();
    as_ordinary_user(&directory, || {
        let actor = Actor::ready(
            "
close = lambda: ctypes.CDLL(None).prctl(4, 0)
memory = bytearray(b'1') * (32 << 20)
child(close)
await_children(1)
close()
ready()
",
        );
        let mut tree = Tree::new(actor.pid()).unwrap();
        let sample = tree.sample().unwrap();
        assert_eq!((sample.processes, sample.io), (2, None));
        assert!(sample.memory_bytes >= 32 * MIB, "{sample:?}");
        let held = tree.held_files().unwrap();
        assert_eq!(held.unread_processes, 1, "the first one is ours");
        assert!(tree.exact(&held).unwrap().memory_bytes >= 32 * MIB);
    });
}
