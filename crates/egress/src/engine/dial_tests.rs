use super::*;
use crate::test_support::{listen, run};
use std::net::Ipv4Addr;

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    run(async {
        let (closed, refusing) = listen().await;
        drop(closed);
        let (_listener, address) = listen().await;
        let stream = first_of(&[refusing, address]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn an_address_that_is_silent_is_overtaken() {
    run(async {
        // A listener whose queue is full answers no more connections.
        let silent = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        rustix::net::bind(&silent, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        rustix::net::listen(&silent, 0).unwrap();
        let full: SocketAddr = rustix::net::getsockname(&silent).unwrap().try_into().unwrap();
        let _waiting = TcpStream::connect(full).await.unwrap();
        let (_listener, address) = listen().await;
        let stream = first_of(&[full, address]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn no_address_is_an_error() {
    run(async {
        let error = first_of(&[]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    });
}
