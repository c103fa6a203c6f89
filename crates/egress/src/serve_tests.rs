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
    fn hears(&self) -> Option<EgressEvent> {
        let mut packet = vec![0; MAX_PACKET_BYTES];
        let received =
            rustix::net::recv(&self.line, packet.as_mut_slice(), rustix::net::RecvFlags::empty());
        let length = received.unwrap().0;
        (length > 0).then(|| EgressEvent::decode(&packet[..length]).unwrap())
    }

    fn orders(&self, request: &EgressRequest) {
        rustix::net::send(&self.line, &request.encode(), SendFlags::NOSIGNAL).unwrap();
    }
}

fn startup(config: Config) -> (EgressStartup, Supervisor, SocketAddr) {
    let (line, supervisor) = socketpair().unwrap();
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let startup = EgressStartup {
        supervisor,
        tcp: vec![listener.into()],
        udp: Vec::new(),
        counters: None,
        published: Vec::new(),
        maker: None,
        config,
    };
    (startup, Supervisor { line }, address)
}

fn confined() -> Result<(), EgressError> {
    Ok(())
}

/// Serves in a thread of a child, and lets `supervise` be the supervisor.
fn with_supervisor(config: Config, supervise: impl FnOnce(Supervisor, SocketAddr)) {
    in_child(|| {
        let (startup, supervisor, address) = startup(config);
        let serving = thread::spawn(|| run(startup, confined).unwrap());
        supervise(supervisor, address);
        serving.join().unwrap();
    });
}

/// Proves: NET-7 logged
#[test]
fn an_attempt_is_served_and_told_until_the_supervisor_ends_it() {
    with_supervisor(config(&[]), |supervisor, address| {
        assert_eq!(supervisor.hears(), Some(EgressEvent::Ready));
        let mut client = StdStream::connect(address).unwrap();
        assert!(client.read(&mut [0; 8]).is_err(), "loopback is never allowed");
        let event = supervisor.hears();
        let Some(EgressEvent::Attempt(attempt)) = event else { panic!("{event:?}") };
        assert_eq!((attempt.host.as_str(), attempt.port), ("127.0.0.1", address.port()));
        supervisor.orders(&EgressRequest::End);
        assert_eq!(supervisor.hears(), None);
    });
}

#[test]
fn an_answer_of_the_supervisor_reaches_who_waits() {
    let mut config = config(&[]);
    config.on_unknown = OnUnknown::Ask;
    with_supervisor(config, |supervisor, address| {
        assert_eq!(supervisor.hears(), Some(EgressEvent::Ready));
        let mut client = StdStream::connect(address).unwrap();
        client.write_all(b"x").unwrap();
        // Not asked about: nobody can allow it.
        let event = supervisor.hears();
        assert!(matches!(event, Some(EgressEvent::Attempt(_))), "{event:?}");
        let source = "terminal".to_owned();
        supervisor.orders(&EgressRequest::Answer {
            ask: 9,
            allowed: true,
            holds: Holds::Session,
            source,
        });
        supervisor.orders(&EgressRequest::End);
        while supervisor.hears().is_some() {}
    });
}

#[test]
fn it_ends_with_the_supervisor() {
    with_supervisor(config(&[]), |supervisor, _| {
        assert_eq!(supervisor.hears(), Some(EgressEvent::Ready));
        drop(supervisor);
    });
}

#[test]
fn it_does_not_serve_unconfined() {
    in_child(|| {
        let (startup, supervisor, address) = startup(config(&[]));
        let refused = run(startup, || Err("no filter")).unwrap_err();
        assert_eq!(refused, "no filter");
        assert_eq!(supervisor.hears(), None, "never ready");
        assert!(StdStream::connect(address).is_err(), "its listeners are gone");
    });
}
