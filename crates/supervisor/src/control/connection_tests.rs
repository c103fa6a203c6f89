use super::*;
use crate::control::interface::Response;
use palisade_sys::fdpass::socketpair;

fn message() -> FromSupervisor {
    FromSupervisor::Response(Response::Done)
}

#[test]
fn a_client_that_does_not_read_is_waited_for_up_to_a_limit() {
    let (ours, _theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours).unwrap();
    let sent =
        std::iter::repeat_with(|| connection.send(message(), None)).take_while(Result::is_ok);
    let count = sent.count();
    assert!(count > MAX_UNREAD, "{count}");
    assert_eq!(connection.interest(), PollFlags::IN | PollFlags::OUT);
}

#[test]
fn what_is_no_request_is_told_from_the_end() {
    let (ours, theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours).unwrap();
    assert!(matches!(connection.receive(), Incoming::Nothing));
    rustix::io::write(&theirs, &[0xff; 9]).unwrap();
    assert!(matches!(connection.receive(), Incoming::Malformed(_)));
    palisade_wire::send(&theirs, &Request::Status, &[]).unwrap();
    assert!(matches!(connection.receive(), Incoming::Request(Request::Status, _)));
    drop(theirs);
    assert!(matches!(connection.receive(), Incoming::Closed));
}
