use super::*;
use crate::control::connection::Connection;
use crate::control::interface::{ClaimSandbox, Request};
use palisade_sys::fdpass::socketpair;
use palisade_wire::{Received, WireMessage as _};

fn stopped() -> Event {
    Event::CommandStopped { command: CommandId(1), signal: 19 }
}

fn received(socket: &OwnedFd) -> FromSupervisor {
    let mut buffer = [0; FromSupervisor::MAX_BYTES];
    let Received { message, .. } = palisade_wire::receive(socket, &mut buffer).unwrap();
    message
}

#[test]
fn an_event_goes_to_both_clients_and_a_response_to_who_asked() {
    let (ours, theirs) = socketpair().unwrap();
    let mut endpoint = Endpoint::of_owner(Connection::new(ours));
    let owner = endpoint.owner().unwrap();
    let mut outbox = Outbox::new(Some(&mut endpoint));
    outbox.respond(owner, Response::Done, None);
    outbox.emit(stopped());
    assert_eq!(outbox.next(), Some(FromSupervisor::Event(stopped())));
    assert_eq!(outbox.next(), None);
    assert_eq!(received(&theirs), FromSupervisor::Response(Response::Done));
    assert_eq!(received(&theirs), FromSupervisor::Event(stopped()));
}

#[test]
fn what_a_command_causes_at_will_does_not_cost_the_client() {
    let (ours, theirs) = socketpair().unwrap();
    let mut endpoint = Endpoint::of_owner(Connection::new(ours));
    let owner = endpoint.owner().unwrap();
    let mut outbox = Outbox::new(Some(&mut endpoint));
    for _ in 0..10_000 {
        outbox.emit(stopped());
        outbox.next();
    }
    assert!(outbox.take_gone().is_empty());
    outbox.respond(owner, Response::Done, None);
    assert!(outbox.take_gone().is_empty());
    drop(theirs);
    assert!(matches!(outbox.receive(owner), Incoming::Closed));
    assert_eq!(outbox.take_gone(), [owner]);
    assert!(outbox.take_gone().is_empty());
}

/// Two clients of a session, connected to a socket that listens.
fn two_clients(directory: &std::path::Path) -> (Endpoint, [OwnedFd; 2]) {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let address = SocketAddrUnix::new(directory.join("control")).unwrap();
    let socket = |flags| {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    };
    let listener = socket(SocketFlags::NONBLOCK);
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    let clients = [(); 2].map(|()| {
        let client = socket(SocketFlags::empty());
        rustix::net::connect(&client, &address).unwrap();
        client
    });
    let mut endpoint = Endpoint::listening(listener);
    endpoint.accept();
    assert_eq!(endpoint.count(), 2);
    (endpoint, clients)
}

#[test]
fn a_command_concerns_who_started_it_and_an_end_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let (mut endpoint, [one, other]) = two_clients(directory.path());
    let ids = endpoint.ids();
    ids.iter().for_each(|id| endpoint.greeted(*id));
    let mut outbox = Outbox::new(Some(&mut endpoint));
    outbox.started_by(CommandId(1), ids[0]);
    outbox.emit(stopped());
    outbox.respond(ids[1], Response::Done, None);
    assert_eq!(received(&one), FromSupervisor::Event(stopped()));
    assert_eq!(received(&other), FromSupervisor::Response(Response::Done));
    assert_eq!(outbox.forget_starter(ids[1]), []);
    assert_eq!(outbox.forget_starter(ids[0]), [CommandId(1)]);
    let ended = FromSupervisor::Event(Event::Ended { exit_code: 0, error: None });
    endpoint.finish(&ended);
    assert_eq!([received(&one), received(&other)], [ended.clone(), ended]);
}

#[test]
fn a_client_that_sends_what_is_no_request_is_dropped_and_the_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let (mut endpoint, [one, _other]) = two_clients(directory.path());
    let ids = endpoint.ids();
    for _ in 0..17 {
        rustix::io::write(&one, &[0xff; 9]).unwrap();
    }
    while !matches!(endpoint.receive(ids[0]), Incoming::Closed) {}
    assert_eq!((endpoint.take_gone(), endpoint.ids()), (vec![ids[0]], vec![ids[1]]));
}

#[test]
fn a_client_that_closed_its_end_has_hung_up_though_its_request_can_be_read() {
    let (ours, theirs) = socketpair().unwrap();
    let (listener, _) = socketpair().unwrap();
    let mut endpoint = Endpoint::prepared(listener, Connection::new(ours));
    let owner = endpoint.owner().unwrap();
    let mut outbox = Outbox::new(Some(&mut endpoint));
    palisade_wire::send(&theirs, &Request::Claim(ClaimSandbox::default()), &[]).unwrap();
    assert!(!outbox.is_hung_up(owner));
    drop(theirs);
    assert!(outbox.is_hung_up(owner));
    assert!(matches!(outbox.receive(owner), Incoming::Request(Request::Claim(_), _)));
}

#[test]
fn a_sandbox_that_is_prepared_takes_no_other_client_until_it_is_claimed() {
    for ends_with_owner in [false, true] {
        let (ours, _theirs) = socketpair().unwrap();
        let (listener, _) = socketpair().unwrap();
        let mut endpoint = Endpoint::prepared(listener, Connection::new(ours));
        let owner = endpoint.owner().unwrap();
        let mut outbox = Outbox::new(Some(&mut endpoint));
        assert!(outbox.is_prepared() && outbox.is_owner(owner) && outbox.listener().is_none());
        assert!(!outbox.has_greeted(owner), "it says hello as any other client does");
        outbox.claimed(ends_with_owner);
        assert!(!outbox.is_prepared() && outbox.listener().is_some());
        assert_eq!(outbox.is_owner(owner), ends_with_owner);
        assert!(outbox.is_connected(owner));
    }
}
