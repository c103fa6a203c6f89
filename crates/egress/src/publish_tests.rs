use super::*;
use crate::config::Limits;
use crate::events::Outbox;
use crate::test_support::{config, listen, run};
use palisade_sys::fdpass::{send_with_fds, socketpair};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use std::os::fd::AsFd as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::spawn_local;

/// With one that makes sockets, as the one inside does, but of this namespace.
fn inbound(connections: usize) -> (Rc<Inbound>, Outbox) {
    inbound_within(Limits { connections, ..Limits::default() })
}

fn inbound_within(limits: Limits) -> (Rc<Inbound>, Outbox) {
    let (ours, theirs) = socketpair().unwrap();
    std::thread::spawn(move || answer(&theirs, usize::MAX));
    let config = Config { limits, ..config(&[]) };
    let (events, outbox) = Events::new();
    (Rc::new(Inbound::new(events, Load::new(&config), ours, &config).unwrap()), outbox)
}

/// Answers so many times, or until nobody asks.
fn answer(line: &OwnedFd, times: usize) {
    let mut asked = [0; 1];
    for _ in 0..times {
        let Ok((1, _)) = recv_with_fds(line, &mut asked) else { return };
        let family = if &asked == b"4" { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket(family, SocketType::STREAM, None).unwrap();
        send_with_fds(line, &asked, &[socket.as_fd()]).unwrap();
    }
}

/// Proves: NET-9 published
#[test]
fn a_published_port_leads_to_the_one_inside_and_is_told() {
    run(async {
        let (inbound, mut outbox) = inbound(512);
        let (inside, inner) = listen().await;
        let (outside, published) = listen().await;
        spawn_local(accept(inbound, outside, inner.port()));
        let mut client = TcpStream::connect(published).await.unwrap();
        let (mut served, _) = inside.accept().await.unwrap();
        client.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        served.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        served.write_all(b"hi").await.unwrap();
        drop(served);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        drop(client);
        let event = outbox.next().await;
        assert!(
            matches!(&event, EgressEvent::Attempt(one) if one.via == Via::Published),
            "{event:?}"
        );
        let EgressEvent::Closed(closed) = outbox.next().await else { panic!("not told") };
        assert_eq!((closed.received, closed.sent), (5, 2));
    });
}

#[test]
fn where_nobody_listens_the_client_is_refused() {
    run(async {
        let (inbound, mut outbox) = inbound(512);
        let (closed, inner) = listen().await;
        drop(closed);
        let (outside, published) = listen().await;
        spawn_local(accept(inbound, outside, inner.port()));
        let mut client = TcpStream::connect(published).await.unwrap();
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let EgressEvent::Attempt(event) = outbox.next().await else { panic!("not told") };
        assert_eq!(event.action, NetworkAction::ProxyDenied);
    });
}

/// An answer that comes late is for who asked first, and of the wrong family for the next.
#[test]
fn an_answer_that_nobody_waits_for_any_more_is_not_taken_for_the_next() {
    run(async {
        let (ours, theirs) = socketpair().unwrap();
        let maker = Maker::new(ours).unwrap();
        let impatient = timeout(Duration::from_millis(10), maker.socket(b"6")).await;
        assert!(impatient.is_err());
        let answering = std::thread::spawn(move || answer(&theirs, 2));
        let socket = maker.socket(b"4").await.unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        answering.join().unwrap();
        assert_eq!(maker.socket(b"4").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    });
}

/// As when no descriptor is free: the answer comes without its socket.
#[test]
fn after_an_answer_that_failed_the_next_one_counts() {
    run(async {
        let (ours, theirs) = socketpair().unwrap();
        let maker = Maker::new(ours).unwrap();
        let answering = std::thread::spawn(move || {
            let (_, _) = recv_with_fds(&theirs, &mut [0]).unwrap();
            // More than fit in are cut off.
            send_with_fds(&theirs, b"too long", &[theirs.as_fd()]).unwrap();
            answer(&theirs, 2);
        });
        let error = maker.socket(b"4").await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::MSGSIZE.raw_os_error()));
        for _ in 0..2 {
            timeout(CONNECT_LIMIT / 2, maker.socket(b"4")).await.unwrap().unwrap();
        }
        answering.join().unwrap();
        let error = maker.socket(b"4").await.unwrap_err().to_string();
        assert!(error.contains("has ended"), "{error}");
    });
}

#[test]
fn the_end_of_who_makes_sockets_is_told_at_once() {
    run(async {
        let (ours, theirs) = socketpair().unwrap();
        let (events, mut outbox) = Events::new();
        let watched = ours.try_clone().unwrap();
        let inbound =
            Rc::new(Inbound::new(events, Load::new(&config(&[])), ours, &config(&[])).unwrap());
        spawn_local(Rc::clone(&inbound).watch(watched));
        let answering = std::thread::spawn(move || answer(&theirs, 1));
        inbound.maker.socket(b"4").await.unwrap();
        answering.join().unwrap();
        let EgressEvent::Attempt(event) = outbox.next().await else { panic!("not told") };
        assert_eq!(event.via, Via::Published);
        assert!(event.reason.unwrap().contains("has ended"));
    });
}

/// Proves: NET-7 limit, NET-9 published
#[test]
fn published_ports_have_a_share_of_all_connections() {
    run(async {
        let (inbound, mut outbox) = inbound(4);
        let (inside, inner) = listen().await;
        let (outside, published) = listen().await;
        spawn_local(accept(inbound, outside, inner.port()));
        let mut open = Vec::new();
        for _ in 0..2 {
            open.push((
                TcpStream::connect(published).await.unwrap(),
                inside.accept().await.unwrap(),
            ));
        }
        let mut third = TcpStream::connect(published).await.unwrap();
        let error = third.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        open.clear();
        let mut reasons = Vec::new();
        while reasons.len() < 3 {
            if let EgressEvent::Attempt(attempt) = outbox.next().await {
                reasons.push(attempt.reason);
            }
        }
        assert!(reasons[2].as_ref().unwrap().contains("limit"), "{reasons:?}");
        // Whoever left makes room.
        while !matches!(outbox.next().await, EgressEvent::Closed(_)) {}
        let _fourth = TcpStream::connect(published).await.unwrap();
        inside.accept().await.unwrap();
    });
}

/// Proves: NET-7 bytes
#[test]
fn the_limit_of_bytes_holds_for_published_ports_too() {
    run(async {
        let (inbound, mut outbox) = inbound_within(Limits { bytes: Some(6), ..Limits::default() });
        let (inside, inner) = listen().await;
        let (outside, published) = listen().await;
        spawn_local(accept(inbound, outside, inner.port()));
        let mut client = TcpStream::connect(published).await.unwrap();
        let (mut served, _) = inside.accept().await.unwrap();
        client.write_all(b"hello").await.unwrap();
        served.read_exact(&mut [0; 5]).await.unwrap();
        served.write_all(b"hi").await.unwrap();
        let mut answer = Vec::new();
        // What is within the limit may come before the reset.
        let _ = client.read_to_end(&mut answer).await;
        assert!(answer.len() < 2, "{answer:?}");
        let mut reasons = Vec::new();
        while reasons.len() < 2 {
            if let EgressEvent::Attempt(attempt) = outbox.next().await {
                reasons.push(attempt.reason);
            }
        }
        assert!(reasons[1].as_ref().unwrap().contains("limit of bytes"), "{reasons:?}");
        let mut second = TcpStream::connect(published).await.unwrap();
        assert!(second.read(&mut [0; 8]).await.is_err());
    });
}
