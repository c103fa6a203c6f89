use super::*;
use crate::config::{Config, OnUnknown};
use crate::engine::dns::test_support::{Inside, question};
use crate::test_support::{attempts, config, engine, host, listen, pair, run};
use crate::wire::{EgressEvent, Holds};
use hickory_proto::rr::{DNSClass, RecordType};
use palisade_record::network::NetworkAction;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::spawn_local;

fn at(address: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(address.into(), port)
}

#[test]
fn our_own_address_is_the_proxy_and_the_resolver_and_nothing_else() {
    run(async {
        let (engine, _outbox) = engine(config(&[]));
        for inside in [IpAddr::from(INSIDE_V4), IpAddr::from(INSIDE_V6)] {
            assert_eq!(Meant::of(&engine, at(inside, 3128)), Meant::Proxy);
            assert_eq!(Meant::of(&engine, at(inside, 53)), Meant::Resolver);
            assert_eq!(Meant::of(&engine, at(inside, 443)), Meant::Nobody);
            assert_eq!(Meant::of(&engine, at(inside, 1)), Meant::Nobody);
        }
        let mapped = INSIDE_V4.to_ipv6_mapped();
        assert_eq!(Meant::of(&engine, at(mapped, 3128)), Meant::Proxy);
        assert_eq!(Meant::of(&engine, at(Ipv4Addr::new(203, 0, 113, 1), 53)), Meant::Resolver);
    });
}

/// Proves: NET-5 ignoring
#[test]
fn an_address_that_nobody_was_told_of_stands_for_nobody() {
    run(async {
        let (engine, _outbox) = engine(config(&["*"]));
        let unknown = Ipv4Addr::new(198, 19, 3, 7);
        assert_eq!(Meant::of(&engine, at(unknown, 443)), Meant::Nobody);
        let unknown = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 7, 7);
        assert_eq!(Meant::of(&engine, at(unknown, 443)), Meant::Nobody);
        let real = Ipv4Addr::new(203, 0, 113, 7);
        assert_eq!(
            Meant::of(&engine, at(real, 443)),
            Meant::Host(Host::from(IpAddr::from(real)), 443)
        );
    });
}

/// Starts a connection from inside to a host; gives the client's end.
async fn going(engine: &Rc<Engine>, name: &str, port: u16) -> TcpStream {
    let (client, near) = pair().await;
    spawn_local(go(Rc::clone(engine), near, host(name), port));
    client
}

/// Proves: NET-5 ignoring
#[test]
fn an_allowed_host_is_reached() {
    run(async {
        let (listener, address) = listen().await;
        let allowed = format!("a.example:{}", address.port());
        let config = config(&[&allowed]).knows("a.example", Ipv4Addr::LOCALHOST);
        let (engine, _outbox) = engine(config);
        let mut client = going(&engine, "a.example", address.port()).await;
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"\x00ping").await.unwrap();
        let mut heard = [0; 5];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"\x00ping");
    });
}

/// Proves: NET-5 ignoring
#[test]
fn a_denied_host_is_refused_at_once() {
    run(async {
        let (engine, mut outbox) = engine(config(&["b.example"]));
        let mut client = going(&engine, "a.example", 443).await;
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let event = attempts(&mut outbox);
        assert_eq!(event[0].allow.as_deref(), Some("--allow-host a.example"));
    });
}

/// Proves: NET-7 refusals
#[test]
fn a_denied_client_that_says_nothing_is_not_waited_for_long() {
    run(async {
        let (engine, _outbox) = engine(config(&["b.example"]));
        let start = std::time::Instant::now();
        let mut client = going(&engine, "a.example", 80).await;
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    });
}

#[test]
fn a_denied_request_is_told_why_in_http() {
    run(async {
        let (engine, _outbox) = engine(config(&["b.example"]));
        let mut client = going(&engine, "a.example", 80).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("--allow-host a.example"), "{answer}");
    });
}

fn asking() -> Config {
    Config { on_unknown: OnUnknown::Ask, ..config(&[]) }
}

/// Proves: NET-8 asked
#[test]
fn a_question_is_withdrawn_when_the_client_hangs_up() {
    run(async {
        let (engine, mut outbox) = engine(asking());
        let mut client = going(&engine, "a.example", 443).await;
        client.write_all(b"hello").await.unwrap();
        let asked = outbox.next().await;
        assert!(matches!(asked, EgressEvent::Asked { ask: 1, port: 443, .. }), "{asked:?}");
        drop(client);
        assert_eq!(outbox.next().await, EgressEvent::Withdrawn { ask: 1 });
        let EgressEvent::Attempt(event) = outbox.next().await else {
            panic!("the attempt is not told")
        };
        assert_eq!((event.action, event.host.as_str()), (NetworkAction::ProxyDenied, "a.example"));
        let reason = "the program went away before anybody answered";
        assert_eq!(event.reason.as_deref(), Some(reason));
    });
}

/// Proves: NET-7 logged, NET-8 asked
#[test]
fn no_attempt_vanishes_however_soon_the_client_hangs_up() {
    run(async {
        let (engine, mut outbox) = engine(asking());
        for number in 0..20 {
            let (client, near) = pair().await;
            drop(client);
            near.readable().await.unwrap();
            go(Rc::clone(&engine), near, host(&format!("{number}.example")), 443).await;
        }
        let event = outbox.rest();
        let count =
            |kind: fn(&EgressEvent) -> bool| event.iter().filter(|event| kind(event)).count();
        assert_eq!(count(|event| matches!(event, EgressEvent::Asked { .. })), 20);
        assert_eq!(count(|event| matches!(event, EgressEvent::Withdrawn { .. })), 20);
        assert_eq!(count(|event| matches!(event, EgressEvent::Attempt(_))), 20);
    });
}

#[test]
fn what_was_said_while_waiting_for_an_answer_is_not_lost() {
    run(async {
        let (listener, address) = listen().await;
        let (engine, mut outbox) = engine(asking().knows("a.example", Ipv4Addr::LOCALHOST));
        let mut client = going(&engine, "a.example", address.port()).await;
        client.write_all(b"\x01early").await.unwrap();
        let EgressEvent::Asked { ask, .. } = outbox.next().await else { panic!("no question") };
        tokio::task::yield_now().await;
        let source = "terminal".to_owned();
        engine.answered(ask, asks::Answer { allowed: true, source }, Holds::Once);
        let (mut server, _) = listener.accept().await.unwrap();
        let mut heard = [0; 6];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"\x01early");
    });
}

/// Proves: NET-7 limit, NET-7 logged
#[test]
fn thousands_of_silent_connections_do_not_keep_others_from_being_served() {
    run(async {
        let mut config = config(&[]);
        config.limits.connections = 8;
        let (engine, mut outbox) = engine(config);
        let (listener, address) = listen().await;
        spawn_local(accept(Rc::clone(&engine), listener));
        // They were meant for the listener's own address, which no rule allows: each waits for its request.
        let mut silent = Vec::new();
        for _ in 0..500 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let event = attempts(&mut outbox);
        let counted: u64 = event.iter().map(|event| event.count).sum();
        assert!(counted >= 501, "every one is told: {counted}");
    });
}

/// Proves: NET-7 limit, NET-7 logged
#[test]
fn what_finds_no_place_is_told_by_its_name() {
    run(async {
        let mut config = config(&["a.example"]);
        config.limits.connections = 0;
        let mut inside = Inside::start(config.knows("a.example", Ipv4Addr::LOCALHOST)).await;
        let stands = inside.address("a.example", RecordType::A).await;
        let engine = &inside.engine;
        let (_client, near) = pair().await;
        serve_meant(Rc::clone(engine), near, at(stands, 443)).await;
        let (mut client, near) = pair().await;
        spawn_local(serve_meant(Rc::clone(engine), near, at(INSIDE_V4, 3128)));
        let request = format!("CONNECT {stands}:443 HTTP/1.1\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        let hosts: Vec<_> =
            attempts(&mut inside.outbox).into_iter().map(|event| event.host).collect();
        assert_eq!(hosts, ["a.example", "a.example"]);
    });
}

#[test]
fn an_idle_tunnel_takes_little_memory() {
    run(async {
        let (engine, _outbox) = engine(config(&[]));
        let (_client, near) = pair().await;
        let task = serve(engine, near);
        // Two thousand of them in 64 MiB, with room for everything else.
        assert!(size_of_val(&task) <= 16 * 1024, "{}", size_of_val(&task));
    });
}

#[test]
fn a_look_up_over_tcp_is_answered() {
    run(async {
        let (engine, _outbox) = engine(config(&[]));
        let (mut client, near) = pair().await;
        spawn_local(serve_meant(engine, near, at(INSIDE_V4, 53)));
        let query = question("a.example", RecordType::A, DNSClass::IN).to_vec().unwrap();
        client.write_u16(u16::try_from(query.len()).unwrap()).await.unwrap();
        client.write_all(&query).await.unwrap();
        assert!(client.read_u16().await.unwrap() > 0);
    });
}
