use super::*;
use crate::alone::serve_client;
use crate::events::{Events, Outbox};
use crate::test_support::{attempts, config, listen, run};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::spawn_local;

/// A proxy that runs alone, with room for two and a host behind it; what its clients want is allowed.
async fn proxy() -> (SocketAddr, Rc<Engine>, Outbox, u16) {
    let (host, place) = listen().await;
    let allowed = format!("a.example:{}", place.port());
    let mut config = config(&[&allowed]).knows("a.example", std::net::Ipv4Addr::LOCALHOST);
    config.limits.connections = 2;
    let (events, outbox) = Events::new();
    let (listener, address) = listen().await;
    let engine = Engine::alone(config, events, address).unwrap();
    spawn_local(async move {
        // It says something: whoever is connected is served from then on.
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = host.accept().await {
            stream.write_all(b"!").await.unwrap();
            kept.push(stream);
        }
    });
    let serving = Rc::clone(&engine);
    spawn_local(async move {
        while let Ok((client, from)) = listener.accept().await {
            spawn_local(serve_client(Rc::clone(&serving), client, from));
        }
    });
    (address, engine, outbox, place.port())
}

async fn connected(address: SocketAddr, port: u16) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("CONNECT a.example:{port} HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"!") {
        assert!(client.read_buf(&mut heard).await.unwrap() > 0);
    }
    client
}

async fn answered(address: SocketAddr, said: &[u8]) -> Vec<u8> {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(said).await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = Vec::new();
    // A reset ends it as well.
    let _reset = client.read_to_end(&mut heard).await;
    heard
}

/// Proves: NET-7 limit, NET-7 logged, NET-10 alone
#[test]
fn whoever_finds_no_place_is_told_so_and_so_is_the_log() {
    run(async {
        let (address, _engine, mut outbox, port) = proxy().await;
        let _served = [connected(address, port).await, connected(address, port).await];
        attempts(&mut outbox);
        for (said, answer, host, via) in [
            (
                &b"CONNECT b.example:443 HTTP/1.1\r\n\r\n"[..],
                &b"HTTP/1.1 429 "[..],
                "b.example",
                Via::Connect,
            ),
            (
                b"GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n",
                b"HTTP/1.1 429 ",
                "c.example",
                Via::Http,
            ),
            (b"GET ", b"HTTP/1.1 429 ", UNNAMED, Via::Http),
            (b"\x05\x01\0", &NO_WAY_IN, UNNAMED, Via::Http),
        ] {
            let heard = answered(address, said).await;
            assert!(heard.starts_with(answer), "{}", heard.escape_ascii());
            let event = attempts(&mut outbox);
            let [event] = event.as_slice() else { panic!("{event:?}") };
            assert_eq!((event.host.as_str(), event.via), (host, via));
            let reason = event.reason.as_deref().unwrap();
            assert_eq!(reason, "2 connections are open, which is the limit; asked by 127.0.0.1");
        }
    });
}

/// Proves: NET-7 limit, NET-7 logged
#[test]
fn whoever_loses_a_place_is_logged() {
    run(async {
        let (address, _engine, mut outbox, port) = proxy().await;
        let _served = connected(address, port).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        // It has its place before the next one comes.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _served = connected(address, port).await;
        assert!(!matches!(silent.read(&mut [0; 8]).await, Ok(1..)));
        let event = attempts(&mut outbox);
        let reasons: Vec<_> = event.iter().filter_map(|event| event.reason.as_deref()).collect();
        assert!(reasons[0].contains("took its place; asked by 127.0.0.1"), "{reasons:?}");
    });
}

/// Proves: NET-7 limit, NET-10 reread
#[test]
fn other_rules_do_not_forget_what_is_open() {
    run(async {
        let (address, engine, _outbox, port) = proxy().await;
        let _served = [connected(address, port).await, connected(address, port).await];
        let mut config = engine.config.clone();
        config.limits.bytes = Some(1);
        let renewed = engine.renewed(config.clone()).unwrap();
        assert!(renewed.load.slot((UNNAMED.to_owned(), 0)).is_none(), "two are open");
        assert_eq!(renewed.load.left(), 0, "more than that was carried");
        config.limits.connections = 3;
        let renewed = renewed.renewed(config).unwrap();
        assert!(renewed.load.slot((UNNAMED.to_owned(), 0)).is_some());
    });
}
