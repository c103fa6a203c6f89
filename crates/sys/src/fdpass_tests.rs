use std::fs::File;
use std::io::{Read, Seek, Write};

use super::*;

#[test]
fn bytes_and_open_files_arrive_together() {
    let (left, right) = socketpair().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"inside").unwrap();
    send_with_fds(&left, b"hello", &[file.as_fd(), left.as_fd()]).unwrap();
    send_with_fds(&left, b"more", &[]).unwrap();

    let mut buffer = [0; 16];
    let (length, mut fds) = recv_with_fds(&right, &mut buffer).unwrap();
    assert_eq!((&buffer[..length], fds.len()), (&b"hello"[..], 2));
    for fd in &fds {
        let flags = rustix::io::fcntl_getfd(fd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    let mut passed = File::from(fds.remove(0));
    passed.rewind().unwrap();
    let mut content = String::new();
    passed.read_to_string(&mut content).unwrap();
    assert_eq!(content, "inside");
    let (length, fds) = recv_with_fds(&right, &mut buffer).unwrap();
    assert_eq!((&buffer[..length], fds.len()), (&b"more"[..], 0));
}

#[test]
fn the_end_is_zero_bytes_and_an_empty_message_is_refused() {
    let (left, right) = socketpair().unwrap();
    assert_eq!(send_with_fds(&left, b"", &[]).unwrap_err().errno, Errno::INVAL);
    drop(left);
    let (length, fds) = recv_with_fds(&right, &mut [0; 4]).unwrap();
    assert_eq!((length, fds.len()), (0, 0));
    assert_eq!(send_with_fds(&right, b"x", &[]).unwrap_err().errno, Errno::PIPE);
}

#[test]
fn a_message_that_does_not_fit_is_an_error() {
    let (left, right) = socketpair().unwrap();
    send_with_fds(&left, b"too long", &[]).unwrap();
    let error = recv_with_fds(&right, &mut [0; 4]).unwrap_err();
    assert_eq!(error.errno, Errno::MSGSIZE);

    let most = vec![left.as_fd(); MAX_FDS];
    send_with_fds(&left, b"x", &most).unwrap();
    assert_eq!(recv_with_fds(&right, &mut [0; 4]).unwrap().1.len(), MAX_FDS);
    let too_many = vec![left.as_fd(); MAX_FDS + 1];
    assert_eq!(send_with_fds(&left, b"x", &too_many).unwrap_err().errno, Errno::TOOBIG);
}

#[test]
fn the_sender_of_a_message_is_known_and_a_cut_one_is_an_error_too() {
    let (left, right) = socketpair().unwrap();
    reveal_senders(&right).unwrap();
    rustix::io::write(&left, b"four").unwrap();
    let (length, sender) = recv_from_process(&right, &mut [0; 4]).unwrap();
    assert_eq!((length, sender), (4, Some(rustix::process::getpid())));
    rustix::io::write(&left, b"too long").unwrap();
    let error = recv_from_process(&right, &mut [0; 4]).unwrap_err();
    assert_eq!(error.errno, Errno::MSGSIZE);
    send_with_fds(&left, b"four", &[left.as_fd(), left.as_fd()]).unwrap();
    let error = recv_from_process(&right, &mut [0; 4]).unwrap_err();
    assert_eq!(error.errno, Errno::MFILE, "descriptors that nobody expects");
}

#[test]
fn who_must_not_wait_is_told_that_there_is_nothing_or_no_room() {
    let (left, right) = socketpair().unwrap();
    assert_eq!(try_recv_with_fds(&right, &mut [0; 4]).unwrap_err().errno, Errno::AGAIN);
    let full = std::iter::repeat_with(|| try_send(&left, b"x")).find_map(Result::err).unwrap();
    assert_eq!(full.errno, Errno::AGAIN);
    assert_eq!(try_recv_with_fds(&right, &mut [0; 4]).unwrap().0, 1);
}

#[test]
fn a_peer_that_leaves_messages_unread_is_still_heard() {
    let (ours, theirs) = socketpair().unwrap();
    send_with_fds(&theirs, b"last words", &[]).unwrap();
    send_with_fds(&ours, b"never read", &[]).unwrap();
    drop(theirs);
    let mut buffer = [0; 16];
    assert_eq!(recv_with_fds(&ours, &mut buffer).unwrap().0, 10);
    assert_eq!(recv_with_fds(&ours, &mut buffer).unwrap().0, 0);
}
