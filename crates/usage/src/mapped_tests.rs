#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::process::{Command, Stdio};

use palisade_sys::Pid;

use super::*;
use crate::stage::{Actor, MIB};

/// Proves: FS-6 space
#[test]
fn mappings_of_deleted_files_are_told_from_others() {
    let file = FileId { device: rustix::fs::makedev(0xfe, 1), inode: 77 };
    let parsed = parse(b"00400000-00a00000 rw-s 00001000 fe:01 77   /a b (deleted)\n").unwrap();
    assert_eq!(parsed, Mapped { range: "400000-a00000".into(), file });
    for line in [
        b"00400000-00a00000 rw-s 00000000 fe:01 77         /there\n".as_slice(),
        b"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n",
        b"00400000-00a00000 rw-s 00000000 fe:01 77         /cut (del",
        b" (deleted)\n",
        b"",
    ] {
        assert_eq!(parse(line), None);
    }
}

/// Proves: FS-6 space
#[test]
fn a_deleted_file_that_is_only_mapped_is_seen() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("mapped");
    let mut actor = Actor::ready(&format!(
        "
file = os.open({path:?}, os.O_CREAT | os.O_RDWR)
os.posix_fallocate(file, 0, 8 << 20)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 3, 1, file, ctypes.c_long(0))
os.close(file)
os.unlink({path:?})
ready()
libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(4096))
ready()
"
    ));
    let mut tree = Tree::new(actor.pid()).unwrap();
    tree.sample().unwrap();
    assert_eq!(tree.held_files().unwrap().deleted.len(), 0);
    let held = tree.nameless_files().unwrap();
    let seen = (held.deleted.values().sum::<u64>() / MIB, held.files_without_size);
    let expected = if rustix::process::geteuid().is_root() { (8, 0) } else { (0, 1) };
    assert_eq!(seen, expected);
    actor.go_on();
    actor.await_ready();
    let held = tree.nameless_files().unwrap();
    assert_eq!((held.deleted.len(), held.files_without_size), (0, 0));
}

/// Proves: FS-6 space
#[test]
fn a_deleted_program_that_runs_is_seen() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("program");
    std::fs::copy("/usr/bin/cat", &path).unwrap();
    let mut command = Command::new(&path);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut tree = Tree::new(Pid::from_raw(child.id().try_into().unwrap()).unwrap()).unwrap();
    tree.sample().unwrap();
    let held = tree.nameless_files();
    drop(child.stdin.take());
    child.wait().unwrap();
    let held = held.unwrap();
    assert_eq!((held.deleted.len(), held.files_without_size), (1, 0));
}

/// Proves: FS-6 space
#[test]
fn reading_of_mappings_has_an_end() {
    let maps = || OwnedFd::from(std::fs::File::open("/proc/self/maps").unwrap());
    let mut left = 10;
    assert_eq!(deleted_in(maps(), &mut left).unwrap(), []);
    assert_eq!(left, 0);
    left = MAX_TEXT;
    deleted_in(maps(), &mut left).unwrap();
    assert!(left > 0 && left < MAX_TEXT, "{left}");
}
