use super::*;
use crate::sessions::{Sessions, socket_path};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// Bound, listened on, and closed: what a killed session leaves.
fn dead(directory: &Path, session: &str) -> PathBuf {
    let path = socket_path(directory, session);
    drop(UnixListener::bind(&path).unwrap());
    path
}

/// Proves: GATE-6 leftovers
#[test]
fn what_nobody_listens_on_is_removed_and_what_somebody_does_stays() {
    let directory = tempfile::tempdir().unwrap();
    let gone = dead(directory.path(), "gone");
    let there = socket_path(directory.path(), "there");
    let listener = UnixListener::bind(&there).unwrap();
    let file = directory.path().join("file.sock");
    fs::write(&file, "").unwrap();
    // About to listen.
    let bound = socket_path(directory.path(), "bound");
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(&bound).unwrap()).unwrap();
    sweep(directory.path(), 100);
    assert!(!gone.exists());
    assert!(there.exists() && file.exists() && bound.exists());
    // Nobody who listens was woken for it.
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    sweep(Path::new("/nowhere"), 100);
}

/// Proves: GATE-6 leftovers
#[test]
fn a_sweep_looks_at_no_more_than_it_may() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..10 {
        dead(directory.path(), &number.to_string());
    }
    sweep(directory.path(), 4);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
}

/// The 1,025th was not seen, and nothing was ever removed.
///
/// Proves: GATE-6 leftovers
#[test]
fn live_sessions_are_found_among_thousands_of_dead_ones() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..3000 {
        dead(directory.path(), &format!("dead-{number}"));
    }
    let live: Vec<UnixListener> = (0..20)
        .map(|number| {
            let path = socket_path(directory.path(), &format!("live-{number}"));
            UnixListener::bind(path).unwrap()
        })
        .collect();
    let mut sessions = Sessions::new(directory.path(), "tester");
    sessions.refresh().unwrap();
    for listener in &live {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_ok(), "it was not found");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), live.len());
}
