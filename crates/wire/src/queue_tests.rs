use super::*;
use crate::{Received, receive};
use palisade_sys::fdpass::socketpair;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Number(u32);

impl WireMessage for Number {
    const MAX_BYTES: usize = 16;
}

#[test]
fn messages_wait_for_room_in_order_and_up_to_a_limit() {
    const LIMIT: usize = 100;
    let (ours, theirs) = socketpair().unwrap();
    let mut queue = SendQueue::new(LIMIT);
    let mut sent = 0;
    while queue.send(&ours, &Number(sent), Vec::new()).is_ok() {
        sent += 1;
    }
    assert!(queue.len() == LIMIT && queue.wants_room() && queue.next_retry().is_none());
    for expected in 0..sent {
        let mut buffer = [0; Number::MAX_BYTES];
        let Received { message, .. } = receive::<Number>(&theirs, &mut buffer).unwrap();
        assert_eq!(message, Number(expected));
        queue.flush(&ours).unwrap();
    }
    assert!(queue.is_empty() && !queue.wants_room());
    drop(theirs);
    assert_eq!(queue.send(&ours, &Number(0), Vec::new()), Err(WireError::Closed));
}

/// Any process of the same user can cause it, so it must cost no message and no connection.
#[test]
fn too_many_descriptors_in_flight_are_waited_out() {
    let (ours, theirs) = socketpair().unwrap();
    let mut queue = SendQueue::new(1);
    let packet = encode(&Number(7)).unwrap();
    queue.waiting.push_back(Outgoing { packet, descriptors: vec![theirs.try_clone().unwrap()] });
    let too_many = SysError::new("sendmsg", "", Errno::TOOMANYREFS);
    queue.flush_by(|_, _| Err(too_many.clone())).unwrap();
    assert!(queue.len() == 1 && !queue.wants_room(), "room at the socket is not what is missing");
    let retry_at = queue.next_retry().unwrap();
    queue.flush_by(|_, _| panic!("too early")).unwrap();
    std::thread::sleep(retry_at.saturating_duration_since(Instant::now()));
    queue.flush(&ours).unwrap();
    assert!(queue.is_empty() && queue.next_retry().is_none());
    let mut buffer = [0; Number::MAX_BYTES];
    let Received { message, descriptors } = receive::<Number>(&theirs, &mut buffer).unwrap();
    assert_eq!((message, descriptors.len()), (Number(7), 1));
}
