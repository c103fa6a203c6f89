use super::*;
use crate::config::Secret;
use crate::engine::{Cause, Wanted};
use crate::http_server::test_web::{FINE, ask, web};
use crate::test_support::{attempts, config, engine, host, listen, run};
use palisade_record::network::Via;
use tokio::task::spawn_local;

/// A proxy that answers one CONNECT with this, and tells what it was asked.
async fn proxy(answer: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
    let (listener, address) = listen().await;
    let asked = spawn_local(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(END) {
            assert!(client.read_buf(&mut head).await.unwrap() > 0);
        }
        client.write_all(answer).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    (address.port(), asked)
}

fn through(port: u16) -> crate::config::Config {
    let upstream = Upstream {
        host: "127.0.0.1".to_owned(),
        port,
        authorization: Some(Secret::new("dTpw".to_owned())),
    };
    let mut config = config(&["x.example:443", "2001:db8::1"]);
    config.upstream = Some(upstream);
    config
}

async fn dial(
    config: crate::config::Config,
    to: &str,
) -> Result<TcpStream, crate::engine::Refused> {
    let (engine, _outbox) = engine(config);
    let admitted =
        engine.admit(Wanted { via: Via::Connect, host: host(to), port: 443 }).await.unwrap();
    engine.dial(&admitted).await
}

/// Proves: NET-5 upstream
#[test]
fn a_name_is_left_to_the_proxy_and_its_first_bytes_are_kept() {
    run(async {
        let (port, asked) = proxy(b"HTTP/1.1 200 fine\r\nX: y\r\n\r\nSSH-2.0-greeting").await;
        // No look-up knows the name: only the proxy does.
        let mut stream = dial(through(port), "x.example").await.unwrap();
        let mut greeting = String::new();
        stream.read_to_string(&mut greeting).await.unwrap();
        assert_eq!(greeting, "SSH-2.0-greeting");
        let asked = asked.await.unwrap();
        assert!(
            asked.starts_with("CONNECT x.example:443 HTTP/1.1\r\nhost: x.example:443\r\n"),
            "{asked}"
        );
        assert!(asked.contains("\r\nproxy-authorization: Basic dTpw\r\n"));
    });
}

/// Proves: NET-5 upstream
#[test]
fn an_address_is_asked_for_in_brackets() {
    run(async {
        let (port, asked) = proxy(b"HTTP/1.0 200 fine\r\n\r\n").await;
        dial(through(port), "2001:db8::1").await.unwrap();
        assert!(asked.await.unwrap().starts_with("CONNECT [2001:db8::1]:443 "));
    });
}

/// Proves: NET-5 upstream
#[test]
fn a_no_of_the_proxy_is_told_as_such() {
    run(async {
        for (answer, reason) in [
            (b"HTTP/1.1 403 no\r\n\r\n".as_slice(), "answered 403"),
            (b"HTTP/1.1 407 who?\r\n\r\n", "requires a user"),
            (b"SSH-2.0\r\n\r\n", "does not answer in HTTP"),
            (b"", "closed the connection"),
        ] {
            let (port, _asked) = proxy(answer).await;
            let refused = dial(through(port), "x.example").await.unwrap_err();
            assert_eq!(refused.cause, Cause::Unreachable);
            assert!(refused.reason.contains(reason), "{}", refused.reason);
        }
    });
}

/// Proves: NET-5 upstream
#[test]
fn a_proxy_that_makes_no_tunnel_is_given_whole_requests_and_nothing_else() {
    run(async {
        // Whatever it is asked: `CONNECT` is refused, a URL is answered.
        let web = web(|request| match request.starts_with("CONNECT ") {
            true => "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n".to_owned(),
            false => FINE.to_owned(),
        })
        .await;
        let mut config = through(web.port);
        config.rules = crate::test_support::config(&["x.example:80"]).rules;
        let (address, _engine, mut outbox) = crate::http_server::test_web::proxy(config).await;
        let inner = "GET /a HTTP/1.1\r\nHost: x.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let connect = "CONNECT x.example:80 HTTP/1.1\r\nHost: x.example:80\r\n\r\n";
        for request in [
            "GET http://x.example/a HTTP/1.1\r\nHost: x.example\r\n\r\n",
            &format!("{connect}{inner}"),
        ] {
            let answer = ask(address, request).await;
            assert!(answer.ends_with("hello"), "{answer}");
            let seen = web.seen.take();
            let expected = "GET http://x.example/a HTTP/1.1\r\nhost: x.example\r\nproxy-authorization: Basic dTpw\r\n\r\n";
            assert_eq!(seen[1..], [expected]);
        }
        let raw =
            ask(address, &format!("{connect}SSH-2.0-x\r\nGET http://y.example/ HTTP/1.1\r\n\r\n"))
                .await;
        assert_eq!(raw, "HTTP/1.1 200 Connection established\r\n\r\n");
        let other = ask(
            address,
            &format!("{connect}GET http://y.example/ HTTP/1.1\r\nHost: y.example\r\n\r\n"),
        )
        .await;
        assert!(other.contains("HTTP/1.1 403 "), "{other}");
        assert!(web.requests().iter().all(|request| request.starts_with("CONNECT ")));
        let denied =
            attempts(&mut outbox).into_iter().filter(|attempt| !attempt.action.is_allowed());
        assert_eq!(denied.count(), 2);
    });
}

/// Proves: NET-5 upstream
#[test]
fn the_login_of_the_proxy_does_not_come_back() {
    run(async {
        // It shows what it was sent, as answers to TRACE and pages of errors do.
        let web = web(|request| {
            let status = match request {
                connect if connect.starts_with("CONNECT ") => 405,
                closed if closed.contains("/closed") => 407,
                _ => 200,
            };
            format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{request}", request.len())
        })
        .await;
        let mut config = through(web.port);
        config.rules = crate::test_support::config(&["x.example:80"]).rules;
        let (address, _engine, _outbox) = crate::http_server::test_web::proxy(config).await;
        for (method, path, status) in
            [("TRACE", "", 403), ("trace", "", 403), ("TRACK", "", 403), ("GET", "closed", 502)]
        {
            let answer = ask(
                address,
                &format!(
                    "{method} http://x.example/{path} HTTP/1.1\r\nHost: x.example\r\nMax-Forwards: 0\r\n\r\n"
                ),
            )
            .await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(!answer.contains("dTpw"), "{answer}");
        }
        let options =
            "OPTIONS http://x.example/ HTTP/1.1\r\nHost: x.example\r\nMax-Forwards: 0\r\n\r\n";
        ask(address, options).await;
        let seen = web.seen.take();
        assert!(seen.iter().any(|request| request.starts_with("OPTIONS ")), "{seen:?}");
        assert!(!seen.iter().any(|request| request.contains("max-forwards")), "{seen:?}");
    });
}
