use super::*;
use palisade_sys::fdpass::socketpair;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Note {
    Empty,
    Text(String),
}

impl WireMessage for Note {
    const MAX_BYTES: usize = 64;
}

fn file_with(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn descriptors_arrive_with_their_message_and_in_order() {
    let (left, right) = socketpair().unwrap();
    let (first, second) = (file_with("first"), file_with("second"));
    let message = Note::Text("two files".into());
    send(&left, &message, &[first.as_fd(), second.as_fd()]).unwrap();
    send(&left, &Note::Empty, &[]).unwrap();

    let mut buffer = [0; Note::MAX_BYTES];
    let received = receive::<Note>(&right, &mut buffer).unwrap();
    assert_eq!(received.message, message);
    let contents = received.descriptors.into_iter().map(|descriptor| {
        let mut content = String::new();
        File::from(descriptor).read_to_string(&mut content).unwrap();
        content
    });
    assert_eq!(contents.collect::<Vec<_>>(), ["first", "second"]);
    let received = try_receive::<Note>(&right, &mut buffer).unwrap().unwrap();
    assert_eq!((received.message, received.descriptors.len()), (Note::Empty, 0));
    assert!(try_receive::<Note>(&right, &mut buffer).unwrap().is_none());
}

#[test]
fn closed_undecodable_and_too_long_are_different() {
    let (left, right) = socketpair().unwrap();
    let mut buffer = [0; 2 * Note::MAX_BYTES];
    try_send(&left, b"\xff\xff").unwrap();
    let error = receive::<Note>(&right, &mut buffer).unwrap_err();
    assert!(matches!(error, WireError::Undecodable(_)), "{error:?}");

    // The limit is the type's, however much room there is.
    try_send(&left, &[0; Note::MAX_BYTES + 1]).unwrap();
    let error = receive::<Note>(&right, &mut buffer).unwrap_err();
    assert_eq!(error, WireError::TooLong { limit: Note::MAX_BYTES });

    drop(left);
    assert_eq!(receive::<Note>(&right, &mut buffer).unwrap_err(), WireError::Closed);
    assert_eq!(try_receive::<Note>(&right, &mut buffer).unwrap_err(), WireError::Closed);
    assert_eq!(send(&right, &Note::Empty, &[]), Err(WireError::Closed));
}

#[test]
fn a_peer_that_ended_with_messages_unread_has_closed() {
    let (left, right) = socketpair().unwrap();
    send(&left, &Note::Empty, &[]).unwrap();
    drop(right);
    let mut buffer = [0; Note::MAX_BYTES];
    assert_eq!(receive::<Note>(&left, &mut buffer).unwrap_err(), WireError::Closed);
}

#[test]
fn a_sender_that_must_not_wait_learns_that_there_is_no_room() {
    let (left, right) = socketpair().unwrap();
    let packet = encode(&Note::Empty).unwrap();
    let full = std::iter::repeat_with(|| try_send(&left, &packet)).find_map(Result::err);
    assert_eq!(full, Some(WireError::NoRoom));
    receive::<Note>(&right, &mut [0; Note::MAX_BYTES]).unwrap();
}

#[test]
fn a_secret_leaves_nothing_in_the_buffer() {
    let (left, right) = socketpair().unwrap();
    let mut buffer = [0; Note::MAX_BYTES];
    let message = Note::Text("hunter2".into());
    send(&left, &message, &[]).unwrap();
    assert_eq!(receive_secret::<Note>(&right, &mut buffer).unwrap().message, message);
    assert_eq!(buffer, [0; Note::MAX_BYTES]);
    // Also what cannot be decoded, or was too long to be read as a whole.
    for packet in [&[0xff; 9][..], &[0xff; Note::MAX_BYTES + 1]] {
        try_send(&left, packet).unwrap();
        receive_secret::<Note>(&right, &mut buffer).unwrap_err();
        assert_eq!(buffer, [0; Note::MAX_BYTES]);
    }
}

/// Each message has the room that it needs, whatever came before it, and the end is still the end.
#[test]
fn a_buffer_becomes_as_long_as_the_message() {
    let (left, right) = socketpair().unwrap();
    let mut buffer = Vec::new();
    assert!(try_receive_growing::<Note>(&right, &mut buffer).unwrap().is_none());
    assert!(buffer.is_empty());
    let file = file_with("content");
    let (short, long) = (Note::Text("a".into()), Note::Text("b".repeat(50)));
    for message in [&short, &long, &short] {
        send(&left, message, &[file.as_fd()]).unwrap();
        let received = receive_growing::<Note>(&right, &mut buffer).unwrap();
        assert_eq!((&received.message, received.descriptors.len()), (message, 1));
    }
    send(&left, &long, &[]).unwrap();
    assert_eq!(try_receive_growing::<Note>(&right, &mut buffer).unwrap().unwrap().message, long);
    assert!(buffer.len() <= Note::MAX_BYTES);
    send_with_fds(&left, &[0; Note::MAX_BYTES + 1], &[]).unwrap();
    let cut = receive_growing::<Note>(&right, &mut buffer);
    assert!(matches!(cut, Err(WireError::TooLong { .. })), "{cut:?}");
    drop(left);
    let end = receive_growing::<Note>(&right, &mut buffer);
    assert!(matches!(end, Err(WireError::Closed)), "{end:?}");
}
