use super::*;
use crate::config::OnUnknown;
use crate::test_support::config;
use crate::wire::Holds;
use palisade_sys::fdpass::socketpair;
use palisade_sys::test_child::in_child;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::thread;

/// The supervisor's side.
struct Supervisor {
    line: OwnedFd,
}

impl Supervisor {
    /// `None`: the process has ended.
    fn hears(&self) -> Option<Told> {
        let mut packet = vec![0; LONGEST_PACKET];
        let received =
            rustix::net::recv(&self.line, packet.as_mut_slice(), rustix::net::RecvFlags::empty());
        let length = received.unwrap().0;
        (length > 0).then(|| Told::decode(&packet[..length]).unwrap())
    }

    fn orders(&self, order: &Order) {
        rustix::net::send(&self.line, &order.encode(), SendFlags::NOSIGNAL).unwrap();
    }
}

fn station(config: Config) -> (Station, Supervisor, SocketAddr) {
    let (line, supervisor) = socketpair().unwrap();
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let station = Station {
        supervisor,
        tcp: vec![listener.into()],
        udp: Vec::new(),
        counters: None,
        published: Vec::new(),
        maker: None,
        config,
    };
    (station, Supervisor { line }, address)
}

fn confined() -> Result<(), EgressError> {
    Ok(())
}

/// Serves in a thread of a child, and lets `supervise` be the supervisor.
fn with_supervisor(config: Config, supervise: impl FnOnce(Supervisor, SocketAddr)) {
    in_child(|| {
        let (station, supervisor, address) = station(config);
        let serving = thread::spawn(|| run(station, confined).unwrap());
        supervise(supervisor, address);
        serving.join().unwrap();
    });
}

/// Proves: NET-7 logged
#[test]
fn an_attempt_is_served_and_told_until_the_supervisor_ends_it() {
    with_supervisor(config(&[]), |supervisor, address| {
        assert_eq!(supervisor.hears(), Some(Told::Ready));
        let mut client = StdStream::connect(address).unwrap();
        assert!(client.read(&mut [0; 8]).is_err(), "loopback is never allowed");
        let told = supervisor.hears();
        let Some(Told::Attempt(attempt)) = told else { panic!("{told:?}") };
        assert_eq!((attempt.host.as_str(), attempt.port), ("127.0.0.1", address.port()));
        supervisor.orders(&Order::End);
        assert_eq!(supervisor.hears(), None);
    });
}

#[test]
fn an_answer_of_the_supervisor_reaches_who_waits() {
    let mut config = config(&[]);
    config.on_unknown = OnUnknown::Ask;
    with_supervisor(config, |supervisor, address| {
        assert_eq!(supervisor.hears(), Some(Told::Ready));
        let mut client = StdStream::connect(address).unwrap();
        client.write_all(b"x").unwrap();
        // Not asked about: nobody can allow it.
        let told = supervisor.hears();
        assert!(matches!(told, Some(Told::Attempt(_))), "{told:?}");
        let source = "terminal".to_owned();
        supervisor.orders(&Order::Answer { ask: 9, allowed: true, holds: Holds::Session, source });
        supervisor.orders(&Order::End);
        while supervisor.hears().is_some() {}
    });
}

#[test]
fn it_ends_with_the_supervisor() {
    with_supervisor(config(&[]), |supervisor, _| {
        assert_eq!(supervisor.hears(), Some(Told::Ready));
        drop(supervisor);
    });
}

#[test]
fn it_does_not_serve_unconfined() {
    in_child(|| {
        let (station, supervisor, address) = station(config(&[]));
        let refused = run(station, || Err("no filter")).unwrap_err();
        assert_eq!(refused, "no filter");
        assert_eq!(supervisor.hears(), None, "never ready");
        assert!(StdStream::connect(address).is_err(), "its listeners are gone");
    });
}
