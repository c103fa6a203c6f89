use super::*;
use crate::config::{Authority, Checks, Credential, Secret, Upstream};
use crate::engine::{Cause, Wanted};
use crate::events::Events;
use crate::http_server::test_web::{FINE, ask, local, proxy, web, web_that_knows};
use crate::test_support::{attempts, config, host, listen, run};
use palisade_hosts::HostEntry;
use palisade_record::network::{NetworkAction, Via};
use rustix::process::{Signal, getpid, kill_process};
use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::mpsc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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
    assert!(crate::engine::dial::is_of_this_host(at([127, 0, 0, 1])));
    // Nobody has it, but the whole range is local.
    assert!(crate::engine::dial::is_of_this_host(at([127, 5, 5, 5])));
    assert!(!crate::engine::dial::is_of_this_host(at([203, 0, 113, 9])));
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

/// A bad file, one that cannot be used, then a good one; its client asks before, between and after, and then ends it.
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
    fn hear(&mut self, event: EgressEvent) -> ControlFlow<()> {
        match event {
            EgressEvent::Ready => {
                let (address, read) = (self.address, self.read.take().unwrap());
                self.client = Some(std::thread::spawn(move || asked(address, &read)));
            }
            EgressEvent::Attempt(_) => self.heard += 1,
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

/// A client that was there before the rules changed.
struct Old(TcpStream);

impl Old {
    async fn new(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Says this, and hears until one of these words or until nothing more comes.
    async fn asks(&mut self, text: &str, until: &str) -> String {
        self.0.write_all(text.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).contains(until) {
            if !matches!(self.0.read_buf(&mut heard).await, Ok(1..)) {
                break;
            }
        }
        String::from_utf8_lossy(&heard).into_owned()
    }

    async fn gets(&mut self, name: &str, port: u16) -> String {
        self.asks(&get(name, port), "hello").await
    }
}

fn get(name: &str, port: u16) -> String {
    format!("GET http://{name}:{port}/ HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n")
}

fn connect(name: &str, port: u16) -> String {
    format!("CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n")
}

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";
const INNER: &str = "GET / HTTP/1.1\r\nHost: x.example\r\n\r\n";

/// Proves: NET-10 now
#[test]
fn whoever_was_there_before_gets_no_further_than_others() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, engine, mut outbox) = proxy(local(&["x.example", "y.example"], port)).await;
        let mut old = [Old::new(address).await, Old::new(address).await, Old::new(address).await];
        for client in &mut old {
            assert!(client.gets("x.example", port).await.starts_with("HTTP/1.1 200 "));
        }
        let mut socks = Old::new(address).await;
        assert_eq!(socks.asks("\x05\x01\0", "\x05\0").await, "\x05\0");
        attempts(&mut outbox);

        let _renewed = engine.renewed(local(&["z.example"], port)).unwrap();
        let [same, other, tunnel] = &mut old;
        let answers = [
            same.gets("x.example", port).await,
            other.gets("y.example", port).await,
            tunnel.asks(&connect("y.example", port), ESTABLISHED).await,
        ];
        assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 403 ")), "{answers:?}");
        let mut request = b"\x05\x01\0\x03\x09y.example".to_vec();
        request.extend_from_slice(&port.to_be_bytes());
        socks.0.write_all(&request).await.unwrap();
        let mut reply = [0; 2];
        socks.0.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply, [5, 2], "it is not allowed");
        let event: Vec<_> = attempts(&mut outbox).into_iter().map(|event| event.action).collect();
        assert_eq!(event, [NetworkAction::ProxyDenied; 4]);
        assert_eq!(web.requests().len(), 3, "nothing more arrived");
    });
}

/// Proves: NET-10 now
#[test]
fn what_new_rules_allow_as_well_goes_on() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, engine, mut outbox) = proxy(local(&["x.example"], port)).await;
        let (mut whole, mut tunnel) = (Old::new(address).await, Old::new(address).await);
        assert!(whole.gets("x.example", port).await.ends_with("hello"));
        tunnel.asks(&connect("x.example", port), ESTABLISHED).await;
        assert!(tunnel.asks(INNER, "hello").await.ends_with("hello"));

        let renewed = engine.renewed(local(&["x.example", "y.example"], port)).unwrap();
        assert!(whole.gets("x.example", port).await.ends_with("hello"));
        assert!(tunnel.asks(INNER, "hello").await.ends_with("hello"));
        assert_eq!(*web.connections.borrow(), 2, "those that were open");
        assert!(whole.gets("y.example", port).await.ends_with("hello"));

        // Names are allowed as before, but not what they stand for.
        let mut other = local(&["x.example", "y.example"], port);
        other.checks = Checks::default();
        attempts(&mut outbox);
        let _renewed = renewed.renewed(other).unwrap();
        for answer in [whole.gets("y.example", port).await, tunnel.asks(INNER, "hello").await] {
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        }
        let event: Vec<_> = attempts(&mut outbox).into_iter().map(|event| event.action).collect();
        assert_eq!(event, [NetworkAction::DnsRebindBlocked; 2]);
    });
}

/// A request in a tunnel is one that the proxy reads; what it does not read goes on to its end.
///
/// Proves: NET-10 now
#[test]
fn what_is_carried_goes_on_and_a_new_request_does_not() {
    run(async {
        let web = web(|request| match request.contains("upgrade") {
            true => {
                "HTTP/1.1 101 go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".to_owned()
            }
            false => FINE.to_owned(),
        })
        .await;
        let port = web.port;
        let (echo, there) = listen().await;
        let echoing = tokio::task::spawn_local(async move {
            let (mut stream, _) = echo.accept().await.unwrap();
            let (mut reader, mut writer) = stream.split();
            tokio::io::copy(&mut reader, &mut writer).await
        });
        let allowed = [format!("x.example:{port}"), format!("x.example:{}", there.port())];
        let mut config = local(&["x.example"], port);
        config.rules = crate::test_support::config(&[&allowed[0], &allowed[1]]).rules;
        let (address, engine, mut outbox) = proxy(config).await;
        let mut opaque = Old::new(address).await;
        opaque.asks(&connect("x.example", there.port()), ESTABLISHED).await;
        assert_eq!(opaque.asks("SSH-2.0-a\r\n", "\n").await, "SSH-2.0-a\r\n");
        let mut upgraded = Old::new(address).await;
        let upgrade = get("x.example", port)
            .replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert!(upgraded.asks(&upgrade, "\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
        let mut requests = Old::new(address).await;
        requests.asks(&connect("x.example", port), ESTABLISHED).await;
        assert!(requests.asks(INNER, "hello").await.ends_with("hello"));
        attempts(&mut outbox);

        let _renewed = engine.renewed(local(&["z.example"], port)).unwrap();
        assert_eq!(opaque.asks("more\n", "\n").await, "more\n");
        assert_eq!(upgraded.asks("frame\n", "\n").await, "frame\n");
        let answer = requests.asks(INNER, "hello").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let [event] = attempts(&mut outbox).try_into().unwrap();
        assert_eq!((event.action, event.via), (NetworkAction::ProxyDenied, Via::Connect));
        drop(opaque);
        echoing.await.unwrap().unwrap();
    });
}

/// A server may keep its answer as long as it likes.
///
/// Proves: NET-10 now, NET-4 followed
#[test]
fn a_redirect_that_comes_after_new_rules_is_judged_by_them() {
    run(async {
        let serving: Rc<RefCell<Option<Rc<Engine>>>> = Rc::default();
        let renewing = Rc::clone(&serving);
        let web = web_that_knows(|port| {
            move |_: &str| {
                let renewed = renewing.take().unwrap().renewed(local(&["x.example"], port));
                renewing.replace(Some(renewed.unwrap()));
                let to = format!("http://y.example:{port}/");
                format!("HTTP/1.1 302 there\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
            }
        })
        .await;
        let mut config = local(&["x.example", "y.example"], web.port);
        config.follow_redirects = true;
        let (address, engine, mut outbox) = proxy(config).await;
        serving.replace(Some(engine));
        let answer = ask(address, &get("x.example", web.port)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let event: Vec<_> = attempts(&mut outbox).into_iter().map(|event| event.action).collect();
        assert_eq!(event, [NetworkAction::ProxyAllowed, NetworkAction::RedirectDenied]);
        assert_eq!(web.requests().len(), 1);
    });
}

/// Proves: NET-10 now, NET-5 credentials
#[test]
fn a_request_gets_the_credential_of_now() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let with = |secret: &str| {
            let mut config = local(&["x.example"], port);
            config.credentials = vec![Credential {
                name: "TOKEN".to_owned(),
                hosts: vec![HostEntry::parse("x.example").unwrap()],
                header: "authorization".to_owned(),
                value: Secret::new(secret.to_owned()),
            }];
            config
        };
        let (address, first, _outbox) = proxy(with("first")).await;
        let (mut whole, mut tunnel) = (Old::new(address).await, Old::new(address).await);
        tunnel.asks(&connect("x.example", port), ESTABLISHED).await;
        let mut asked = async || {
            assert!(whole.gets("x.example", port).await.ends_with("hello"));
            assert!(tunnel.asks(INNER, "hello").await.ends_with("hello"));
            let secret =
                |request: String| Some(request.split_once("authorization: ")?.1.to_owned());
            web.seen.take().into_iter().map(secret).collect::<Vec<_>>()
        };
        let sent = |secret: &str| vec![Some(format!("{secret}\r\n\r\n")); 2];
        assert_eq!(asked().await, sent("first"));
        let second = first.renewed(with("second")).unwrap();
        assert_eq!(asked().await, sent("second"));
        let _third = second.renewed(local(&["x.example"], port)).unwrap();
        assert_eq!(asked().await, vec![None; 2]);
    });
}

/// Proves: NET-10 now, NET-5 upstream
#[test]
fn a_request_goes_through_the_upstream_proxy_of_now() {
    run(async {
        let forwarding = |request: &str| match request.starts_with("CONNECT ") {
            true => "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n".to_owned(),
            false => FINE.to_owned(),
        };
        let (before, after) = (web(forwarding).await, web(forwarding).await);
        let through = |port: u16, login: &str| {
            let authorization = Some(Secret::new(login.to_owned()));
            let mut config = config(&["x.example:80"]);
            config.upstream = Some(Upstream { host: "127.0.0.1".to_owned(), port, authorization });
            config
        };
        let (address, engine, mut outbox) = proxy(through(before.port, "first")).await;
        let (mut whole, mut tunnel) = (Old::new(address).await, Old::new(address).await);
        assert!(whole.gets("x.example", 80).await.ends_with("hello"));
        tunnel.asks(&connect("x.example", 80), ESTABLISHED).await;
        assert!(tunnel.asks(INNER, "hello").await.ends_with("hello"));
        let seen = before.seen.take();
        assert!(seen.iter().all(|request| request.contains("authorization: Basic first")));
        attempts(&mut outbox);

        let _renewed = engine.renewed(through(after.port, "second")).unwrap();
        assert!(whole.gets("x.example", 80).await.ends_with("hello"));
        // It was made through the other one, which must not get this login.
        let answer = tunnel.asks(INNER, "hello").await;
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("connect anew"), "{answer}");
        assert_eq!(before.requests(), Vec::<String>::new());
        let seen = after.requests();
        assert!(seen.iter().all(|request| request.contains("authorization: Basic second")));
        assert_eq!(seen.len(), 2, "{seen:?}");
        let event: Vec<_> = attempts(&mut outbox).into_iter().map(|event| event.action).collect();
        assert_eq!(event, [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied]);
    });
}
