use super::*;
use crate::control::interface::{Event, Response};
use palisade_sys::fdpass::socketpair;
use std::thread;

fn message() -> FromSupervisor {
    FromSupervisor::Response(Response::Done)
}

#[test]
fn a_client_that_does_not_read_is_waited_for_up_to_a_limit() {
    let (ours, _theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours);
    let sent =
        std::iter::repeat_with(|| connection.send(&message(), None)).take_while(Result::is_ok);
    let count = sent.count();
    assert!(count > MAX_UNREAD, "{count}");
    assert_eq!(connection.interest(), PollFlags::IN | PollFlags::OUT);
}

#[test]
fn a_slow_client_gets_everything_before_the_last_message() {
    let (ours, theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours);
    let mut count = 0;
    while connection.is_keeping_up() {
        connection.send(&message(), None).unwrap();
        count += 1;
    }
    let reader = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        let mut read = Vec::new();
        let mut buffer = [0; FromSupervisor::MAX_BYTES];
        while let Ok(Received { message, .. }) = palisade_wire::receive(&theirs, &mut buffer) {
            read.push(message);
        }
        read
    });
    let last = FromSupervisor::Event(Event::Ended { exit_code: 0, error: None });
    connection.finish(&last).unwrap();
    drop(connection);
    let read = reader.join().unwrap();
    assert_eq!(read.len(), count + 1);
    assert_eq!(read.last(), Some(&last));
}

#[test]
fn what_is_no_request_is_told_from_the_end() {
    let (ours, theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours);
    assert!(matches!(connection.receive(), Incoming::Nothing));
    rustix::io::write(&theirs, &[0xff; 9]).unwrap();
    assert!(matches!(connection.receive(), Incoming::Malformed(_)));
    palisade_wire::send(&theirs, &Request::Status, &[]).unwrap();
    assert!(matches!(connection.receive(), Incoming::Request(Request::Status, _)));
    drop(theirs);
    assert!(matches!(connection.receive(), Incoming::Closed));
}
