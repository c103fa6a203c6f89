use super::*;
use crate::test_support::{pair, run};
use std::cell::RefCell;
use tokio::task::{JoinHandle, spawn_local};

/// Counts, and allows so many bytes.
#[derive(Debug)]
struct Counter {
    sent: Cell<u64>,
    received: Cell<u64>,
    most: u64,
}

impl Counter {
    fn new(most: u64) -> Self {
        Self { sent: Cell::new(0), received: Cell::new(0), most }
    }
}

impl Meter for Counter {
    fn sent(&self, bytes: u64) -> io::Result<()> {
        self.sent.set(self.sent.get() + bytes);
        Ok(())
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        self.received.set(self.received.get() + bytes);
        Ok(())
    }

    fn left(&self) -> u64 {
        self.most - (self.sent.get() + self.received.get()).min(self.most)
    }
}

/// A tunnel, its two far ends, and how it ends.
async fn tunnel(
    first: &'static [u8],
    most: u64,
) -> (TcpStream, TcpStream, JoinHandle<(io::Result<()>, Counter)>) {
    let (client, near) = pair().await;
    let (far, server) = pair().await;
    let relaying = spawn_local(async move {
        let counter = Counter::new(most);
        let ended = relay(near, far, first, &counter).await;
        (ended, counter)
    });
    (client, server, relaying)
}

async fn read_all(mut from: TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).await.map(|_| bytes)
}

#[test]
fn bytes_pass_both_ways_and_each_end_is_passed_on() {
    run(async {
        let (mut client, mut server, relaying) = tunnel(b"first ", u64::MAX).await;
        client.write_all(b"then").await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = Vec::new();
        server.read_to_end(&mut asked).await.unwrap();
        assert_eq!(asked, b"first then");
        server.write_all(b"answer after the end of the question").await.unwrap();
        drop(server);
        assert_eq!(read_all(client).await.unwrap(), b"answer after the end of the question");
        let (ended, counter) = relaying.await.unwrap();
        ended.unwrap();
        assert_eq!((counter.sent.get(), counter.received.get()), (10, 36));
    });
}

#[test]
fn megabytes_arrive_as_they_were_sent() {
    run(async {
        let (mut client, mut server, relaying) = tunnel(b"", u64::MAX).await;
        let sent: Vec<u8> = (0..8_000_000_u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let sending = async {
            server.write_all(&sent).await.unwrap();
            server.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, read) = tokio::join!(sending, client.read_to_end(&mut received));
        read.unwrap();
        assert!(received == expected);
        drop((client, server));
        relaying.await.unwrap().0.unwrap();
    });
}

#[test]
fn a_cut_transfer_does_not_look_like_a_whole_one() {
    run(async {
        let (client, mut server, relaying) = tunnel(b"", u64::MAX).await;
        server.write_all(b"half of").await.unwrap();
        let mut half = [0; 7];
        let mut client = client;
        client.read_exact(&mut half).await.unwrap();
        reset(server);
        let error = read_all(client).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(relaying.await.unwrap().0.is_err());
    });
}

#[test]
fn a_client_that_breaks_off_after_its_end_ends_the_tunnel() {
    run(async {
        let (mut client, server, relaying) = tunnel(b"", u64::MAX).await;
        client.shutdown().await.unwrap();
        let mut server = server;
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        // The server goes on in silence, and nobody is there any more.
        reset(client);
        assert!(relaying.await.unwrap().0.is_err());
    });
}

/// Proves: NET-7 bytes
#[test]
fn a_tunnel_ends_at_the_limit_of_bytes_and_not_one_later() {
    run(async {
        let (client, mut server, relaying) = tunnel(b"", 100_000).await;
        let sending = spawn_local(async move {
            // It fails when the tunnel ends.
            let _cut = server.write_all(&vec![7; 4_000_000]).await;
        });
        let received = RefCell::new(0);
        let mut client = client;
        let mut buffer = vec![0; 65536];
        while let Ok(read @ 1..) = client.read(&mut buffer).await {
            *received.borrow_mut() += read;
        }
        let (ended, counter) = relaying.await.unwrap();
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!(counter.received.get(), 100_000);
        assert!(received.into_inner() <= 100_000);
        sending.await.unwrap();
    });
}

#[test]
fn the_other_side_is_heard_before_the_client_has_spoken() {
    run(async {
        let (mut client, near) = pair().await;
        let (far, mut server) = pair().await;
        let (allow, allowed) = tokio::sync::oneshot::channel::<&'static [u8]>();
        let relaying = spawn_local(async move {
            let opening = async |_: &TcpStream, _: &TcpStream| Ok(allowed.await.unwrap());
            relay_after(near, far, opening, &Counter::new(u64::MAX)).await
        });
        client.write_all(b" and more").await.unwrap();
        server.write_all(b"220 ready").await.unwrap();
        let mut greeting = [0; 9];
        client.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"220 ready");
        assert!(server.try_read(&mut [0; 8]).is_err(), "nothing before it is allowed");
        allow.send(b"hello").unwrap();
        let mut said = [0; 14];
        server.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello and more");
        drop((client, server));
        relaying.await.unwrap().unwrap();
    });
}

#[test]
fn streams_that_are_no_sockets_are_relayed_too() {
    run(async {
        let (mut client, near) = tokio::io::duplex(64);
        let (far, mut server) = tokio::io::duplex(64);
        let relaying = spawn_local(async move {
            relay_streams(near, far, b"first", &Counter::new(u64::MAX)).await
        });
        let mut said = [0; 5];
        server.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"first");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
        drop(client);
        relaying.await.unwrap().unwrap();
    });
}

#[test]
fn a_pipe_that_still_holds_bytes_is_not_lent_again() {
    run(async {
        let (mut client, near) = pair().await;
        client.write_all(b"left behind").await.unwrap();
        near.readable().await.unwrap();
        let mut pipe = Pipe::lend().unwrap();
        assert_eq!(pipe.fill(&near, CAPACITY).unwrap(), 11);
        pipe.give_back();
        assert_eq!(Pipe::lend().unwrap().holds(), 0);
    });
}
