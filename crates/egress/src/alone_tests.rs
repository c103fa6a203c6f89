use super::*;
use crate::config::{Authority, Checks, Secret};
use crate::engine::{Cause, Wanted};
use crate::events::Events;
use crate::test_support::{config, host, run};
use palisade_record::network::Via;
use rustix::process::{Signal, getpid, kill_process};
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::mpsc;

/// Proves: NET-10 own-address
#[test]
fn nobody_gets_to_the_proxy_through_itself() {
    run(async {
        let (events, _outbox) = Events::new();
        // Documentation addresses are of no machine; the proxy listens at one of them here.
        let own = SocketAddr::from(([203, 0, 113, 9], 3128));
        let mut config = config(&["own.example:3128,80", "203.0.113.9:3128", "other.example:3128"])
            .knows("own.example", Ipv4Addr::new(203, 0, 113, 9))
            .knows("other.example", Ipv4Addr::new(203, 0, 113, 10));
        config.checks = Checks::default();
        let engine = Engine::alone(config, events, own).unwrap();
        for (name, port, refused) in [
            ("own.example", 3128, true),
            ("203.0.113.9", 3128, true),
            ("own.example", 80, false),
            ("other.example", 3128, false),
        ] {
            let admitted = engine.admit(Wanted { via: Via::Connect, host: host(name), port }).await;
            assert_eq!(
                admitted.as_ref().err().map(|refused| refused.cause),
                refused.then_some(Cause::Address)
            );
        }
    });
}

/// Proves: NET-10 own-address
#[test]
fn an_address_of_this_host_is_known_without_a_packet() {
    let at = |address: [u8; 4]| SocketAddr::from((address, 3128));
    assert!(crate::dial::is_of_this_host(at([127, 0, 0, 1])));
    // Nobody has it, but the whole range is local.
    assert!(crate::dial::is_of_this_host(at([127, 5, 5, 5])));
    assert!(!crate::dial::is_of_this_host(at([203, 0, 113, 9])));
}

/// Proves: NET-10 alone, NET-10 reread
#[test]
fn rules_are_read_anew_while_it_serves_and_a_bad_file_changes_nothing() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (reading, read) = mpsc::channel();
    let mut unusable = config(&["y.example"]);
    let key = Secret::new("no key".to_owned());
    unusable.authority = Some(Authority { certificate: String::new(), key });
    let mut script = Script {
        readings: vec![None, Some(unusable), Some(config(&["y.example"]))],
        renewed: Vec::new(),
        reading,
        read: Some(read),
        address,
        client: None,
        heard: 0,
    };
    serve(listener, config(&["x.example"]), &mut script).unwrap();
    // Neither name stands for anything here: 502 is as far as an allowed host gets, and 403 a denied one.
    let statuses = script.client.unwrap().join().unwrap();
    let before = [("x", 502), ("y", 403)];
    assert_eq!(statuses, [before, before, before, [("x", 403), ("y", 502)]].concat());
    assert!(matches!(script.renewed.as_slice(), [Err(_), Ok(())]), "{:?}", script.renewed);
    assert_eq!(script.heard, statuses.len());
}

/// A bad file, one that can not be used, then a good one; its client asks before, between and after, and then ends it.
struct Script {
    address: SocketAddr,
    readings: Vec<Option<Config>>,
    renewed: Vec<Result<(), String>>,
    /// Tells the client that a file was read.
    reading: mpsc::Sender<()>,
    read: Option<mpsc::Receiver<()>>,
    client: Option<std::thread::JoinHandle<Vec<(&'static str, u16)>>>,
    heard: usize,
}

impl Operator for Script {
    fn hear(&mut self, told: Told) -> ControlFlow<()> {
        match told {
            Told::Ready => {
                let (address, read) = (self.address, self.read.take().unwrap());
                self.client = Some(std::thread::spawn(move || asked(address, &read)));
            }
            Told::Attempt(_) => self.heard += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn reread(&mut self) -> Option<Config> {
        let config = self.readings.remove(0);
        if config.is_none() {
            self.reading.send(()).unwrap();
        }
        config
    }

    fn renewed(&mut self, renewed: Result<(), EgressError>) {
        self.renewed.push(renewed.map_err(|error| error.to_string()));
        self.reading.send(()).unwrap();
    }
}

fn asked(address: SocketAddr, read: &mpsc::Receiver<()>) -> Vec<(&'static str, u16)> {
    let mut statuses = Vec::new();
    for signal in [Signal::HUP, Signal::HUP, Signal::HUP, Signal::TERM] {
        statuses.extend(["x", "y"].map(|name| (name, status(address, name))));
        kill_process(getpid(), signal).unwrap();
        if signal == Signal::HUP {
            read.recv().unwrap();
        }
    }
    statuses
}

fn status(address: SocketAddr, name: &str) -> u16 {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET http://{name}.example/ HTTP/1.1\r\nHost: {name}.example\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
