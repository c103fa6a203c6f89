#![allow(clippy::unwrap_used, reason = "a test may fail")]

use super::*;

const STAT: &str =
    "42 (cc1 (x) Z 1) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 3 0 5555 1 2 3";

/// A process chooses its own name, and must not choose its numbers with it.
/// Proves: RES-3 live
#[test]
fn a_name_like_fields_changes_no_field() {
    let stat = parse_stat(STAT.as_bytes()).unwrap();
    let expected = Stat {
        is_zombie: false,
        parent: 7,
        user: 11,
        system: 22,
        children_user: 33,
        children_system: 44,
        threads: 3,
        start: 5555,
    };
    assert_eq!(stat, expected);
}

#[test]
fn a_cut_line_is_an_error() {
    let cut = STAT.split(" 20 0 3").next().unwrap();
    let error = stat(42, cut.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("/proc/42/stat cannot be understood"), "{error}");
    assert_eq!(parse_stat(b"42 (never ends"), None);
}

#[test]
fn io_tells_storage_and_calls() {
    let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                 cancelled_write_bytes: 7\n";
    let io = parse_io(text).unwrap();
    assert_eq!(io, Io { read_bytes: 5, written_bytes: 6, reads: 3, writes: 4 });
    assert_eq!(parse_io(b"rchar: 1\n"), None);
}

#[test]
fn memory_lines_are_in_kilobytes() {
    let text = b"Name:\tRssShmem:\nRssAnon:\t 9 kB\nRssShmem:\t 8 kB\nVmSwap:\t 2 kB\n";
    assert_eq!(parse_status(text), Resident { shmem: 8192, swap: 2048 });
    assert_eq!(parse_status(b"Name:\tzombie\n"), Resident::default());
    assert_eq!(parse_statm(b"900 50 20 1 0 9 0\n"), Some(Statm { resident: 50, shared: 20 }));
}

#[test]
fn this_process_is_read_as_it_is() {
    let mut proc = Proc::open().unwrap();
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let file = proc.file(pid, "stat").unwrap().unwrap();
    let text = proc.read(file.as_fd()).unwrap().unwrap();
    let stat = stat(pid, text).unwrap();
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
    assert_eq!(stat.parent, parent);
    assert!(proc.parents().unwrap().contains(&(pid, parent)));
    assert!(proc.file(i32::MAX, "stat").unwrap().is_none());
}
