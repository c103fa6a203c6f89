#![allow(clippy::unwrap_used, reason = "a test may fail")]

use super::*;
use crate::stage::{Actor, MIB};

/// Proves: RES-1 memory
#[test]
fn what_forked_workers_share_counts_once() {
    let mut actor = Actor::ready(
        "
memory = bytearray(b'1') * (64 << 20)
for _ in range(4):
    child()
await_children(4)
ready()
for _ in range(2):
    child(lambda: memory.__setitem__(slice(None), b'2' * (64 << 20)))
await_children(2)
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let mut count = || {
        let sample = tree.sample().unwrap();
        let held = tree.held_files().unwrap();
        (sample.memory_bytes / MIB, tree.exact(&held).unwrap().memory_bytes / MIB)
    };
    let (summed, exact) = count();
    assert!(summed >= 5 * 64, "{summed} MiB");
    assert!((64..90).contains(&exact), "{exact} MiB");
    actor.go_on();
    actor.await_ready();
    let (_, exact) = count();
    assert!((3 * 64..5 * 64 + 20).contains(&exact), "{exact} MiB");
}

/// Proves: RES-1 memory
#[test]
fn a_memory_file_that_is_mapped_and_held_counts_once() {
    let actor = Actor::ready(
        "
file = os.memfd_create('both')
os.truncate(file, 32 << 20)
held = mmap.mmap(file, 32 << 20)
other = os.memfd_create('mapped only')
os.truncate(other, 16 << 20)
mapped = mmap.mmap(other, 16 << 20)
os.close(other)
for page in range(0, 32 << 20, 4096): held[page] = 1
for page in range(0, 16 << 20, 4096): mapped[page] = 1
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let summed = tree.sample().unwrap().memory_bytes / MIB;
    let held = tree.held_files().unwrap();
    // Python's mmap keeps a descriptor of its own open: both are held.
    assert_eq!(held.memfd_bytes, 48 * MIB);
    let exact = tree.exact(&held).unwrap().memory_bytes / MIB;
    assert!((48..70).contains(&exact), "{exact} MiB");
    assert!((48..70).contains(&summed), "{summed} MiB");
    let without =
        tree.exact(&HeldFiles { memory_device: held.memory_device, ..HeldFiles::default() });
    let without = without.unwrap().memory_bytes / MIB;
    assert!((48..70).contains(&without), "{without} MiB");
}

#[test]
fn the_name_of_a_mapping_changes_nothing() {
    let device = rustix::fs::makedev(0, 1);
    let parse = |line: &str| parse_mapping(line.as_bytes(), Some(device));
    let file = FileId { device, inode: 77 };
    let line = "7f00-7f10 rw-s 00000000 00:01 77      /memfd:0 0 00:00 0 (deleted)\n";
    assert_eq!(parse(line), Some(Backing::Memory(file)));
    assert_eq!(parse("7f00-7f10 rw-p 00000000 00:00 0 \n"), Some(Backing::Anonymous));
    assert_eq!(parse("7f00-7f10 rw-p 00000000 00:00 0      [heap]\n"), Some(Backing::Anonymous));
    assert_eq!(parse("7f00-7f10 r-xp 00000000 fd:01 77      /usr/bin/x\n"), Some(Backing::File));
    assert_eq!(parse("nonsense"), None);
}

#[test]
fn the_short_sum_is_taken_only_without_shared_memory() {
    let text = |shared: u32| {
        format!(
            "1-2 ---p 0 00:00 0 [rollup]\nPss: 99 kB\nPss_Anon: 7 kB\nPss_File: 9 kB\n\
                 Pss_Shmem: {shared} kB\nSwapPss: 1 kB\n"
        )
    };
    assert_eq!(without_shared_memory(text(0).as_bytes()), Some(8 * 1024));
    assert_eq!(without_shared_memory(text(4).as_bytes()), None);
    assert_eq!(without_shared_memory(b"Pss: 99 kB\n"), None);
}
