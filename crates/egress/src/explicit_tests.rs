use super::*;
use crate::config::{Credential, Secret};
use crate::engine::dns::test_support::Inside;
use crate::http_server::test_web::{
    FINE, Web, ask, heedless, local, proxy, proxy_of, web, web_that_knows,
};
use crate::test_support::{attempts, run};
use hickory_proto::rr::RecordType;
use palisade_hosts::HostEntry;
use palisade_record::network::NetworkAction;
use std::net::SocketAddr;
use tokio::io::AsyncReadExt as _;

const NAMES: [&str; 2] = ["x.example", "y.example"];

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(end) {
        assert!(
            stream.read_buf(&mut read).await.unwrap() > 0,
            "{}",
            String::from_utf8_lossy(&read)
        );
    }
    String::from_utf8(read).unwrap()
}

fn actions(outbox: &mut crate::events::Outbox) -> Vec<NetworkAction> {
    attempts(outbox).into_iter().map(|attempt| attempt.action).collect()
}

/// Proves: NET-5 variables
#[test]
fn a_request_with_a_whole_url_reaches_its_host_in_normal_form() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, mut outbox) = proxy(local(&NAMES, port)).await;
        let request = format!(
            "GET http://X.Example:{port}/a?b HTTP/1.1\r\nHost: x.example:{port}\r\nProxy-Connection: keep-alive\r\n\
             Proxy-Authorization: Basic x\r\nConnection: X-Hop\r\nX-Hop: y\r\nTE: gzip\r\nUpgrade: h2c\r\nAccept: */*\r\n\r\n"
        );
        let answer = ask(address, &request).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 fine\r\n") && answer.ends_with("hello"),
            "{answer}"
        );
        let expected =
            format!("GET /a?b HTTP/1.1\r\nhost: x.example:{port}\r\naccept: */*\r\n\r\n");
        assert_eq!(web.requests(), [expected]);
        assert_eq!(actions(&mut outbox), [NetworkAction::ProxyAllowed]);
    });
}

/// Proves: NET-5 variables
#[test]
fn a_connection_is_kept_for_its_host() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, mut outbox) = proxy(local(&NAMES, port)).await;
        let get = |name: &str| {
            format!("GET http://{name}:{port}/ HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n")
        };
        let text = [get("x.example"), get("x.example"), get("y.example")].concat();
        let answer = ask(address, &text).await;
        assert_eq!(answer.matches("200 fine").count(), 3);
        assert_eq!(*web.connections.borrow(), 2);
        assert_eq!(actions(&mut outbox).len(), 2);
    });
}

/// Proves: NET-7 refusals
#[test]
fn a_denied_host_gets_an_answer_that_says_so() {
    run(async {
        let (address, _engine, mut outbox) = proxy(local(&NAMES, 80)).await;
        let answer =
            ask(address, "GET http://z.example/ HTTP/1.1\r\nHost: z.example\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("\r\nx-sandbox-denied: "));
        assert!(answer.contains("--allow-host z.example"), "{answer}");
        let answer =
            ask(address, "HEAD http://z.example/ HTTP/1.1\r\nHost: z.example\r\n\r\n").await;
        assert!(answer.ends_with("\r\n\r\n"));
        let answer =
            ask(address, "CONNECT x.example:22 HTTP/1.1\r\nHost: x.example:22\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "));
        assert_eq!(
            actions(&mut outbox),
            [
                NetworkAction::ProxyDenied,
                NetworkAction::ProxyDenied,
                NetworkAction::ProxyDeniedPort
            ]
        );
    });
}

/// Proves: NET-4 one-reading
#[test]
fn nothing_of_an_ambiguous_request_goes_out() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let url = format!("http://x.example:{port}/");
        let host = format!("Host: x.example:{port}\r\n");
        for (request, status) in [
            (
                format!(
                    "POST {url} HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                ),
                400,
            ),
            (format!("GET {url} HTTP/1.1\r\nHost: y.example:{port}\r\n\r\n"), 400),
            (format!("GET {url} HTTP/1.1\n{host}\n"), 400),
            (format!("GET https://x.example:{port}/ HTTP/1.1\r\n{host}\r\n"), 400),
            (format!("GET / HTTP/1.1\r\n{host}\r\n"), 400),
            (
                format!("CONNECT x.example:{port} HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc"),
                400,
            ),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
        ] {
            let answer = ask(address, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer:?}");
        }
        assert_eq!(web.requests(), Vec::<String>::new());
    });
}

/// Proves: NET-4 one-reading
#[test]
fn a_chunked_body_is_framed_anew_or_ends_the_connection() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let head = format!(
            "POST http://x.example:{port}/ HTTP/1.1\r\nHost: x.example:{port}\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
        );
        let answer = ask(address, &format!("{head}0005\r\nhello\r\n0\r\nX: y\r\n\r\n")).await;
        assert!(answer.contains("200 fine"), "{answer}");
        assert!(web.requests()[0].ends_with(
            "transfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ));
        let answer = ask(address, &format!("{head}5;x\r\nhello\r\n0\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert_eq!(web.requests().len(), 1);
    });
}

/// What arrives at a server that reads no body, and what the client is answered.
async fn with_a_body(head: &str, strict: bool) -> (Vec<String>, String) {
    let web = heedless().await;
    let port = web.port;
    let mut config = local(&NAMES, port);
    config.checks.strict_http = strict;
    let (address, _engine, _outbox) = proxy(config).await;
    let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: x.example:{port}\r\n");
    let first = request(&format!("POST http://x.example:{port}/first")) + head;
    let second = request(&format!("GET http://x.example:{port}/second"));
    let answer = ask(address, &format!("{first}{second}\r\n")).await;
    (web.requests(), answer)
}

/// Proves: NET-4 bodies-end-it
#[test]
fn a_request_with_a_body_is_the_last_on_its_connection() {
    run(async {
        let hidden = "GET /hidden HTTP/1.1\r\nHost: y.example\r\n\r\n";
        for head in [
            format!("Content-Length: {}\r\n\r\n{hidden}", hidden.len()),
            format!("Expect: 100-continue\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
            format!(
                "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{hidden}\r\n0\r\n\r\n",
                hidden.len()
            ),
        ] {
            let (seen, answer) = with_a_body(&head, true).await;
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert!(seen[0].contains("\r\nconnection: close\r\n"), "{seen:?}");
            assert_eq!(answer.matches("200 fine").count(), 1, "{answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
            let (seen, _) = with_a_body(&head, false).await;
            assert!(seen.iter().any(|request| request.contains("/hidden")), "{seen:?}");
        }
        let (seen, answer) = with_a_body("Content-Length: 0\r\n\r\n", true).await;
        assert_eq!((seen.len(), answer.matches("200 fine").count()), (2, 2), "{answer}");
    });
}

/// Proves: NET-4 one-reading
#[test]
fn an_answer_that_changes_to_no_websocket_is_none() {
    run(async {
        let web = web(|_| "HTTP/1.1 101 go\r\nConnection: Upgrade\r\n\r\n".to_owned()).await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let request = format!(
            "GET http://x.example:{port}/ HTTP/1.1\r\nHost: x.example:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        let answer = ask(address, &request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    });
}

/// Proves: NET-4 sni
#[test]
fn a_tunnel_to_one_host_carries_no_request_for_another() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, mut outbox) = proxy(local(&NAMES, port)).await;
        let connect =
            format!("CONNECT x.example:{port} HTTP/1.1\r\nHost: x.example:{port}\r\n\r\n");
        let right =
            ask(address, &format!("{connect}GET / HTTP/1.1\r\nHost: x.example\r\n\r\n")).await;
        assert!(
            right.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 fine\r\n"),
            "{right}"
        );
        let wrong =
            ask(address, &format!("{connect}GET / HTTP/1.1\r\nHost: y.example\r\n\r\n")).await;
        assert!(wrong.contains("\r\n\r\nHTTP/1.1 403 "), "{wrong}");
        let later = format!(
            "{connect}GET / HTTP/1.1\r\nHost: x.example\r\n\r\nGET / HTTP/1.1\r\nHost: y.example\r\n\r\n"
        );
        let later = ask(address, &later).await;
        assert!(later.contains("200 fine") && later.contains("HTTP/1.1 403 "), "{later}");
        assert_eq!(web.requests().len(), 2);
        assert_eq!(
            actions(&mut outbox)
                .iter()
                .filter(|action| **action == NetworkAction::ProxyDenied)
                .count(),
            2
        );
    });
}

fn redirecting(port: u16) -> impl Fn(&str) -> String {
    move |request| {
        let to = |place: &str| {
            format!("HTTP/1.1 302 there\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n")
        };
        let path = request.split(' ').nth(1).unwrap();
        match path {
            "/allowed" => to(&format!("http://y.example:{port}/end")),
            "/denied" => to(&format!("http://z.example:{port}/")),
            "/blocked" => to("http://169.254.169.254/"),
            "/loop" => to("/loop"),
            _ => FINE.to_owned(),
        }
    }
}

async fn redirects(follow: bool) -> (Web, SocketAddr, crate::events::Outbox) {
    let web = web_that_knows(redirecting).await;
    let mut config = local(&NAMES, web.port);
    config.follow_redirects = follow;
    let (address, _engine, outbox) = proxy(config).await;
    (web, address, outbox)
}

fn get(port: u16, path: &str) -> String {
    format!(
        "GET http://x.example:{port}{path} HTTP/1.1\r\nHost: x.example:{port}\r\nAuthorization: own\r\nCookie: c\r\n\r\n"
    )
}

/// Proves: NET-4 redirects
#[test]
fn a_redirect_is_the_clients_own_unless_the_policy_says_otherwise() {
    run(async {
        let (web, address, _outbox) = redirects(false).await;
        let answer = ask(address, &get(web.port, "/allowed")).await;
        assert!(
            answer.starts_with("HTTP/1.1 302 ") && answer.contains("location: http://y.example"),
            "{answer}"
        );
        assert_eq!(web.requests().len(), 1);
    });
}

/// Proves: NET-4 followed, NET-4 redirects
#[test]
fn every_hop_that_is_followed_is_judged_anew() {
    run(async {
        let (web, address, mut outbox) = redirects(true).await;
        let answer = ask(address, &get(web.port, "/allowed")).await;
        assert!(answer.starts_with("HTTP/1.1 200 fine\r\n"), "{answer}");
        let second = web.requests()[1].clone();
        assert!(
            second.starts_with(&format!("GET /end HTTP/1.1\r\nhost: y.example:{}\r\n", web.port))
        );
        assert!(!second.contains("authorization") && !second.contains("cookie"), "{second}");
        assert_eq!(
            actions(&mut outbox),
            [NetworkAction::ProxyAllowed, NetworkAction::ProxyAllowed]
        );

        let answer = ask(address, &get(web.port, "/denied")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(
            actions(&mut outbox),
            [NetworkAction::ProxyAllowed, NetworkAction::RedirectDenied]
        );

        let answer = ask(address, &get(web.port, "/blocked")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(
            actions(&mut outbox),
            [NetworkAction::ProxyAllowed, NetworkAction::RedirectBlocked]
        );

        let answer = ask(address, &get(web.port, "/loop")).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    });
}

/// Proves: NET-4 followed
#[test]
fn a_redirect_to_a_host_that_does_not_speak_tls_is_not_waited_for() {
    run(async {
        let (_silent, there) = crate::test_support::listen().await;
        let to = format!("https://y.example:{}/", there.port());
        let answer = format!("HTTP/1.1 302 there\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let web = web(move |_| answer.clone()).await;
        let mut config = local(&["x.example"], web.port);
        let allowed = [format!("x.example:{}", web.port), format!("y.example:{}", there.port())];
        config.rules = crate::test_support::config(&[&allowed[0], &allowed[1]]).rules;
        let mut config = config.knows("y.example", std::net::Ipv4Addr::LOCALHOST);
        config.follow_redirects = true;
        config.limits.head = std::time::Duration::from_millis(50);
        let (address, _engine, _outbox) = proxy(config).await;
        let answer = ask(address, &get(web.port, "/")).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    });
}

/// Another port of the same host may be another service.
///
/// Proves: NET-4 followed
#[test]
fn what_is_meant_for_one_port_does_not_follow_to_another() {
    run(async {
        let other = web(|_| FINE.to_owned()).await;
        let to = format!("http://x.example:{}/", other.port);
        let answer = format!("HTTP/1.1 302 there\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let web = web(move |_| answer.clone()).await;
        let mut config = local(&["x.example"], web.port);
        let allowed = [web.port, other.port].map(|port| format!("x.example:{port}"));
        config.rules = crate::test_support::config(&[&allowed[0], &allowed[1]]).rules;
        config.follow_redirects = true;
        let (address, _engine, _outbox) = proxy(config).await;
        let answer = ask(address, &get(web.port, "/")).await;
        assert!(answer.starts_with("HTTP/1.1 200 fine\r\n"), "{answer}");
        assert!(web.requests()[0].contains("authorization: own"), "{:?}", web.requests());
        let request = &other.requests()[0];
        assert!(!request.contains("authorization") && !request.contains("cookie"), "{request}");
    });
}

/// Proves: NET-5 credentials
#[test]
fn a_credential_is_added_outside_for_its_hosts_only() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let mut config = local(&NAMES, port);
        config.credentials = vec![Credential {
            name: "TOKEN".to_owned(),
            hosts: vec![HostEntry::parse("x.example").unwrap()],
            header: "authorization".to_owned(),
            value: Secret::new("Bearer secret".to_owned()),
        }];
        let (address, _engine, _outbox) = proxy(config).await;
        for name in NAMES {
            let request = format!(
                "GET http://{name}:{port}/placeholder HTTP/1.1\r\nHost: {name}:{port}\r\nAuthorization: Bearer placeholder\r\n\
                 Authorization: again\r\nX: placeholder\r\n\r\n"
            );
            ask(address, &request).await;
        }
        let [own, other] = web.requests().try_into().unwrap();
        assert_eq!(own.matches("authorization").count(), 1);
        assert!(
            own.contains("authorization: Bearer secret\r\n") && own.contains("x: placeholder\r\n")
        );
        assert!(own.starts_with("GET /placeholder "));
        assert!(
            other.contains("authorization: Bearer placeholder\r\n") && !other.contains("secret")
        );
    });
}

/// Proves: NET-8 asked
#[test]
fn a_question_is_withdrawn_when_its_client_leaves() {
    run(async {
        let mut config = local(&NAMES, 80);
        config.on_unknown = crate::config::OnUnknown::Ask;
        let (address, _engine, mut outbox) = proxy(config).await;
        for request in [
            "CONNECT z.example:443 HTTP/1.1\r\nHost: z.example:443\r\n\r\n",
            "GET http://z.example/ HTTP/1.1\r\nHost: z.example\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let crate::wire::EgressEvent::Asked { ask, .. } = outbox.next().await else {
                panic!("no question")
            };
            drop(stream);
            assert_eq!(outbox.next().await, crate::wire::EgressEvent::Withdrawn { ask });
            let crate::wire::EgressEvent::Attempt(event) = outbox.next().await else {
                panic!("the attempt is not told")
            };
            assert_eq!(
                (event.action, event.host.as_str()),
                (NetworkAction::ProxyDenied, "z.example")
            );
        }
    });
}

/// Proves: NET-5 variables
#[test]
fn bodies_of_every_kind_arrive_whole() {
    run(async {
        let body = "0123456789abcdef".repeat(200_000);
        let long = body.clone();
        let web = web(move |request| match request.split(' ').nth(1) {
            Some("/length") => {
                format!("HTTP/1.1 200 x\r\nContent-Length: {}\r\n\r\n{long}", long.len())
            }
            Some("/chunks") => {
                let (first, rest) = long.split_at(1_000_000);
                let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
                format!(
                    "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
                    chunk(first),
                    chunk(rest)
                )
            }
            _ => format!("HTTP/1.1 200 x\r\nConnection: close\r\n\r\n{long}"),
        })
        .await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        for path in ["/length", "/chunks", "/close"] {
            // An old client takes no chunks, so that what arrives is the body itself.
            let answer =
                ask(address, &format!("GET http://x.example:{port}{path} HTTP/1.0\r\n\r\n")).await;
            let (_, arrived) = answer.split_once("\r\n\r\n").unwrap();
            assert!(arrived == body, "{path}: {} of {}", arrived.len(), body.len());
        }
        let upload = format!(
            "POST http://x.example:{port}/length HTTP/1.1\r\nHost: x.example:{port}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = ask(address, &upload).await;
        assert!(answer.ends_with(&body) && web.requests()[3].ends_with(&body));
    });
}

#[test]
fn a_websocket_is_a_tunnel_from_its_answer_on() {
    run(async {
        let web = web(|_| {
            "HTTP/1.1 101 go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".to_owned()
        })
        .await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET http://x.example:{port}/ HTTP/1.1\r\nHost: x.example:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 101 go\r\n") && head.contains("upgrade: websocket"));
        stream.write_all(b"\x81\x05frame").await.unwrap();
        let mut back = [0; 7];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"\x81\x05frame");
    });
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    run(async {
        let web = web(|_| format!("HTTP/1.1 100 go on\r\n\r\n{FINE}")).await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let request = format!(
            "POST http://x.example:{port}/ HTTP/1.1\r\nHost: x.example:{port}\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = ask(address, &request).await;
        assert!(answer.starts_with("HTTP/1.1 100 go on\r\n\r\nHTTP/1.1 200 fine\r\n"), "{answer}");
        assert!(web.requests()[0].contains("expect: 100-continue"));
    });
}

/// A cut answer must not look like a whole one.
#[test]
fn half_an_answer_is_seen_to_be_half() {
    run(async {
        let web = web(|_| {
            "HTTP/1.1 200 fine\r\nContent-Length: 50\r\nConnection: close\r\n\r\nhello".to_owned()
        })
        .await;
        let port = web.port;
        let (address, _engine, _outbox) = proxy(local(&NAMES, port)).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET http://x.example:{port}/ HTTP/1.1\r\nHost: x.example:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).await;
        assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    });
}

/// Proves: NET-7 refusals
#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    run(async {
        let mut config = local(&NAMES, 80);
        config.limits.head = std::time::Duration::from_millis(50);
        let (address, _engine, _outbox) = proxy(config).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET http://x.example/ HT").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    });
}

async fn socks(address: SocketAddr, name: &str, port: u16) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = u8::try_from(name.len()).unwrap();
    let mut request = b"\x05\x01\x00\x05\x01\x00\x03".to_vec();
    request.push(length);
    request.extend_from_slice(name.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await.unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply[..3], [5, 0, 5]);
    (stream, reply[3])
}

/// Proves: NET-5 variables
#[test]
fn an_address_that_stands_for_a_name_is_that_name() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let inside = Inside::start(local(&NAMES, port)).await;
        let stands = inside.address("x.example", RecordType::A).await;
        let address = proxy_of(Rc::clone(&inside.engine)).await;
        let request = format!("CONNECT {stands}:{port} HTTP/1.1\r\nHost: {stands}:{port}\r\n\r\n");
        let answer =
            ask(address, &format!("{request}GET / HTTP/1.1\r\nHost: x.example\r\n\r\n")).await;
        assert!(answer.contains("200 fine"), "{answer}");
        assert!(web.requests()[0].contains("host: x.example\r\n"));
    });
}

/// Proves: NET-5 variables
#[test]
fn socks_leads_where_the_rules_allow() {
    run(async {
        let web = web(|_| FINE.to_owned()).await;
        let port = web.port;
        let (address, _engine, mut outbox) = proxy(local(&NAMES, port)).await;
        let (mut stream, reply) = socks(address, "x.example", port).await;
        assert_eq!(reply, Reply::Succeeded as u8);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x.example\r\n\r\n").await.unwrap();
        read_until(&mut stream, "hello").await;
        assert_eq!(socks(address, "z.example", port).await.1, Reply::NotAllowed as u8);
        assert_eq!(socks(address, "127.0.0.1", port).await.1, Reply::NotAllowed as u8);
        assert_eq!(
            actions(&mut outbox),
            [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied, NetworkAction::ProxyDenied]
        );
        let mut old = TcpStream::connect(address).await.unwrap();
        old.write_all(b"\x04\x01\x00\x50\xcb\x00\x71\x05\x00").await.unwrap();
        let mut refusal = [0; 8];
        old.read_exact(&mut refusal).await.unwrap();
        assert_eq!(refusal, socks::OLD_REFUSAL);
    });
}
