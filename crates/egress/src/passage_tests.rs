use super::*;
use crate::config::Config;
use crate::engine::Wanted;
use crate::events::Outbox;
use crate::sni::tests::greeting_of;
use crate::test_support::{attempts, config, engine, host, listen, pair, run};
use palisade_record::network::{NetworkAction, Via};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

/// A client, and the server it was carried to.
struct Carried {
    client: TcpStream,
    server: TcpStream,
    outbox: Outbox,
}

/// Carries a connection that was admitted for this host.
async fn carried(name: &str, change: impl FnOnce(&mut Config)) -> Carried {
    let (listener, address) = listen().await;
    carried_to(listener, address, address.port(), name, change).await
}

/// The same to a port that it only says it is.
async fn carried_to(
    listener: TcpListener,
    address: SocketAddr,
    port: u16,
    name: &str,
    change: impl FnOnce(&mut Config),
) -> Carried {
    let allowed =
        [format!("a.example:{port}"), format!("203.0.113.7:{port}"), format!("b.example:{port}")];
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let mut config = config(&allowed)
        .knows("a.example", Ipv4Addr::LOCALHOST)
        .knows("b.example", Ipv4Addr::new(203, 0, 113, 7));
    change(&mut config);
    let (engine, outbox) = engine(config);
    let wanted = Wanted { via: Via::Transparent, host: host(name), port };
    let mut admitted = engine.admit(wanted).await.unwrap();
    admitted.addresses = vec![address];
    let upstream = engine.dial(&admitted).await.unwrap();
    let (client, near) = pair().await;
    let server = listener.accept().await.unwrap().0;
    spawn_local(carry(engine, near, upstream, Vec::new(), admitted));
    Carried { client, server, outbox }
}

impl Carried {
    /// Says something as the client; gives what the server gets of it.
    async fn says(mut self, bytes: &[u8]) -> (Vec<u8>, Self) {
        // A client that is cut off early cannot say everything.
        let _cut = self.client.write_all(bytes).await;
        let mut heard = vec![0; bytes.len()];
        let mut length = 0;
        while length < bytes.len() {
            match self.server.read(&mut heard[length..]).await {
                Ok(read @ 1..) => length += read,
                Ok(_) | Err(_) => break,
            }
        }
        heard.truncate(length);
        (heard, self)
    }

    /// Why it was cut off, if it was.
    fn denied(&mut self) -> Option<String> {
        let mut event = attempts(&mut self.outbox);
        event.retain(|event| event.action == NetworkAction::ProxyDenied);
        event.pop().and_then(|event| event.reason)
    }
}

/// Proves: NET-4 sni
#[test]
fn tls_for_the_host_that_was_admitted_passes() {
    run(async {
        let greeting = greeting_of("a.example");
        let (heard, mut carried) = carried("a.example", |_| {}).await.says(&greeting).await;
        assert!(heard == greeting);
        assert_eq!(carried.denied(), None);
    });
}

/// Proves: NET-4 sni
#[test]
fn tls_for_another_host_is_cut_off_before_a_byte_is_out() {
    run(async {
        for other in ["b.example", "evil.example", "sub.a.example", "203.0.113.7"] {
            let greeting = greeting_of(other);
            let (heard, mut carried) = carried("a.example", |_| {}).await.says(&greeting).await;
            assert_eq!(heard, b"", "{other}");
            let error = carried.client.read(&mut [0; 8]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            assert!(carried.denied().is_some_and(|reason| reason.contains("TLS")), "{other}");
        }
    });
}

/// Proves: NET-4 sni
#[test]
fn tls_that_is_opened_must_name_the_host_as_well() {
    run(async {
        let opened = |config: &mut Config| {
            let hosts = vec![palisade_hosts::HostPattern::parse("a.example").unwrap()];
            config.authority = Some(crate::engine::certificates::authority(&hosts).unwrap());
            config.credentials = vec![crate::config::Credential {
                name: "TOKEN".to_owned(),
                hosts: vec![palisade_hosts::HostEntry::parse("a.example").unwrap()],
                header: "authorization".to_owned(),
                value: crate::config::Secret::new("secret".to_owned()),
            }];
        };
        let (heard, mut carried) =
            carried("a.example", opened).await.says(&greeting_of("evil.example")).await;
        assert_eq!(heard, b"");
        let error = carried.client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(carried.denied().is_some_and(|reason| reason.contains("evil.example")));
    });
}

#[test]
fn tls_for_another_host_passes_without_the_check() {
    run(async {
        let greeting = greeting_of("evil.example");
        let unchecked = |config: &mut Config| config.checks.agreement = false;
        let (heard, _) = carried("a.example", unchecked).await.says(&greeting).await;
        assert!(heard == greeting);
    });
}

/// Proves: NET-4 sni
#[test]
fn tls_to_an_address_may_name_nobody_or_an_allowed_host_that_is_there() {
    run(async {
        for (server, passes) in [("203.0.113.7", true), ("b.example", true), ("a.example", false)] {
            let greeting = greeting_of(server);
            let (heard, mut carried) = carried("203.0.113.7", |_| {}).await.says(&greeting).await;
            assert_eq!(heard == greeting, passes, "{server}");
            assert_eq!(carried.denied().is_none(), passes, "{server}");
        }
    });
}

#[test]
fn what_is_neither_tls_nor_http_passes_by_its_name() {
    run(async {
        let (heard, _) = carried("a.example", |_| {}).await.says(b"SSH-2.0-me\r\n").await;
        assert_eq!(heard, b"SSH-2.0-me\r\n");
    });
}

/// What a server of the web could take for a request, each for one that does.
const TAKEN_FOR_REQUESTS: [&[u8]; 5] = [
    b"GE\rT /x HT\rTP/1.0\nX(y: 1\r\nHost: evil.example\r\n\r\n",
    b"\x1cGET /\r\nHost: evil.example\r\n\r\n",
    b"FOO\nBAR / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"G(ET / \rH\xa0TTP/1.0\r\nHost: evil.example\r\n\r\n",
    b"SSH-2.0-x / HTTP/1.0\r\nHost: evil.example\r\n\r\n",
];

async fn on_port(port: u16, change: impl FnOnce(&mut Config)) -> Carried {
    let (listener, address) = listen().await;
    carried_to(listener, address, port, "a.example", change).await
}

/// Proves: NET-4 one-reading
#[test]
fn on_ports_of_the_web_nothing_passes_that_does_not_name_its_host() {
    run(async {
        for port in [80, 443, 3000, 8080, 8443] {
            let others: [&[u8]; 3] =
                [b"*1\r\n$4\r\nPING\r\n", b"\0\0\0\x08\x04\xd2\x16\x2f", b"hi"];
            for said in TAKEN_FOR_REQUESTS.into_iter().chain(others) {
                let mut carried = on_port(port, |_| {}).await;
                carried.client.write_all(said).await.unwrap();
                carried.client.shutdown().await.unwrap();
                let mut heard = Vec::new();
                let _reset = carried.server.read_to_end(&mut heard).await;
                assert_eq!(heard, b"", "{port}: {}", said.escape_ascii());
            }
        }
    });
}

/// As somebody types it: the pauses make nothing else of it.
#[test]
fn a_request_that_comes_word_by_word_is_one_on_ports_of_the_web() {
    run(async {
        let mut carried = on_port(80, |_| {}).await;
        for piece in ["GE", "T", " / HTTP/1.1\r\nhost: a.example\r\n\r\n"] {
            carried.client.write_all(piece.as_bytes()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        }
        let mut heard = [0; 16];
        carried.server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"GET / HTTP/1.1\r\n");
    });
}

/// Proves: NET-4 one-reading
#[test]
fn without_the_check_anything_passes_on_ports_of_the_web() {
    run(async {
        let unchecked = |config: &mut Config| config.checks.strict_http = false;
        let said = b"*1\r\n$4\r\nPING\r\n";
        let (heard, _) = on_port(80, unchecked).await.says(said).await;
        assert_eq!(heard, said);
    });
}

/// Proves: NET-4 one-reading
#[test]
fn a_server_that_speaks_first_opens_no_port_of_the_web() {
    run(async {
        let mut carried = on_port(8080, |_| {}).await;
        carried.server.write_all(b"!").await.unwrap();
        carried.client.read_exact(&mut [0]).await.unwrap();
        let (heard, mut carried) = carried.says(b"*1\r\n$4\r\nPING\r\n").await;
        assert_eq!(heard, b"");
        let reason = carried.denied();
        assert!(reason.as_ref().is_some_and(|reason| reason.contains("port 8080")), "{reason:?}");
    });
}

#[test]
fn ssh_passes_on_ports_of_the_web() {
    run(async {
        for banner in ["SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", "SSH-2.0-Go\r\n"] {
            let (heard, _) = on_port(443, |_| {}).await.says(banner.as_bytes()).await;
            assert_eq!(heard, banner.as_bytes());
        }
    });
}

#[test]
fn a_server_may_speak_first() {
    run(async {
        let mut carried = carried("a.example", |_| {}).await;
        carried.server.write_all(b"SSH-2.0-you\r\n").await.unwrap();
        let mut greeting = [0; 13];
        carried.client.read_exact(&mut greeting).await.unwrap();
        let (heard, _) = carried.says(b"SSH-2.0-me\r\n").await;
        assert_eq!(heard, b"SSH-2.0-me\r\n");
    });
}

/// Proves: NET-4 sni
#[test]
fn a_server_that_speaks_first_opens_no_way_around_the_names() {
    run(async {
        let hidden = b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_vec();
        for said in [hidden, greeting_of("evil.example")] {
            let mut carried = carried("a.example", |_| {}).await;
            carried.server.write_all(b"!").await.unwrap();
            carried.client.read_exact(&mut [0]).await.unwrap();
            let (heard, mut carried) = carried.says(&said).await;
            assert_eq!(heard, b"");
            assert!(carried.denied().is_some());
        }
    });
}

/// Proves: NET-4 sni
#[test]
fn a_request_for_another_host_does_not_get_out() {
    run(async {
        for request in [
            "GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        ] {
            let (heard, _) = carried("a.example", |_| {}).await.says(request.as_bytes()).await;
            assert!(heard.is_empty(), "{}", String::from_utf8_lossy(&heard));
        }
    });
}

#[test]
fn a_word_is_passed_on_when_the_client_waits_for_an_answer() {
    run(async {
        let (heard, mut carried) = carried("a.example", |_| {}).await.says(b"hi").await;
        assert_eq!(heard, b"hi");
        carried.server.write_all(b"you").await.unwrap();
        carried.client.read_exact(&mut [0; 3]).await.unwrap();
        let (heard, _) = carried.says(b"\0there").await;
        assert_eq!(heard, b"\0there");
    });
}

/// Proves: NET-4 sni
#[test]
fn a_request_that_comes_word_by_word_does_not_get_around_the_names() {
    run(async {
        let (heard, carried) = carried("a.example", |_| {}).await.says(b"GE").await;
        assert_eq!(heard, b"GE");
        let rest = b"T / HTTP/1.1\r\nhost: evil.example\r\n\r\n";
        let (heard, mut carried) = carried.says(rest).await;
        assert_eq!(heard, b"");
        assert!(carried.denied().is_some());
    });
}

#[test]
fn a_client_that_ends_without_a_word_still_hears_the_server() {
    run(async {
        let mut carried = carried("a.example", |_| {}).await;
        carried.client.shutdown().await.unwrap();
        assert_eq!(carried.server.read(&mut [0; 8]).await.unwrap(), 0);
        carried.server.write_all(b"bye").await.unwrap();
        drop(carried.server);
        let mut heard = Vec::new();
        carried.client.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"bye");
    });
}
