use super::*;
use palisade_launch::CommandId;
use palisade_sys::fdpass::socketpair;
use palisade_wire::{Received, WireMessage as _};

fn stopped() -> Event {
    Event::CommandStopped { command: CommandId(1), signal: 19 }
}

#[test]
fn an_event_goes_to_both_clients_and_a_response_to_who_asked() {
    let (ours, theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours);
    let mut outbox = Outbox::new(Some(&mut connection));
    outbox.respond(Response::Done, None);
    outbox.emit(stopped());
    assert_eq!(outbox.next(), Some(FromSupervisor::Event(stopped())));
    assert_eq!(outbox.next(), None);
    for expected in [FromSupervisor::Response(Response::Done), FromSupervisor::Event(stopped())] {
        let mut buffer = [0; FromSupervisor::MAX_BYTES];
        let Received { message, .. } =
            palisade_wire::receive::<FromSupervisor>(&theirs, &mut buffer).unwrap();
        assert_eq!(message, expected);
    }
}

#[test]
fn what_a_command_causes_at_will_does_not_cost_the_client() {
    let (ours, theirs) = socketpair().unwrap();
    let mut connection = Connection::new(ours);
    let mut outbox = Outbox::new(Some(&mut connection));
    for _ in 0..10_000 {
        outbox.emit(stopped());
        outbox.next();
    }
    assert!(!outbox.has_lost_client());
    outbox.respond(Response::Done, None);
    assert!(!outbox.has_lost_client());
    drop(theirs);
    assert!(matches!(outbox.receive(), Incoming::Closed));
    assert!(outbox.has_lost_client() && !outbox.has_lost_client());
}
