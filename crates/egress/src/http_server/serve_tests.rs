use super::*;
use crate::config::{Config, Credential, Secret};
use crate::engine::Wanted;
use crate::engine::certificates;
use crate::http_server::test_web::{FINE, local, web};
use crate::test_support::{attempts, engine, host, pair, run};
use palisade_hosts::{HostEntry, HostPattern};
use palisade_record::network::{NetworkAction, Via};
use tokio::io::AsyncReadExt as _;
use tokio::task::spawn_local;

/// What is answered to bytes on a connection that was admitted for `x.example`, at the port of a server.
async fn served(
    text: &str,
    change: impl FnOnce(&mut Config),
) -> (String, Vec<String>, Vec<NetworkAction>) {
    let web = web(|_| FINE.to_owned()).await;
    let mut config = local(&["x.example", "y.example"], web.port);
    change(&mut config);
    let (engine, mut outbox) = engine(config);
    let wanted = Wanted { via: Via::Transparent, host: host("x.example"), port: web.port };
    let admitted = engine.admit(wanted).await.unwrap();
    let upstream = engine.dial(&admitted).await.unwrap();
    let (mut near, far) = pair().await;
    let text = text.replace("PORT", &web.port.to_string());
    let (first, later) = text.split_at(text.len().min(7));
    let serving =
        spawn_local(serve_plain(engine, far, upstream, admitted, first.as_bytes().to_vec()));
    near.write_all(later.as_bytes()).await.unwrap();
    near.shutdown().await.unwrap();
    let mut answer = String::new();
    let _ = near.read_to_string(&mut answer).await;
    serving.await.unwrap();
    let actions = attempts(&mut outbox).into_iter().map(|attempt| attempt.action).collect();
    (answer, web.requests(), actions)
}

/// Proves: NET-4 sni
#[test]
fn every_request_must_be_for_the_host_of_the_connection() {
    run(async {
        for host in ["x.example", "X.Example.", "x.example:PORT"] {
            let (answer, seen, _) =
                served(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), |_| ()).await;
            assert!(answer.starts_with("HTTP/1.1 200 fine\r\n"), "{host}: {answer}");
            assert_eq!(seen.len(), 1);
        }
        for request in [
            "GET / HTTP/1.1\r\nHost: y.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x.example:1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "GET http://y.example/ HTTP/1.1\r\nHost: y.example\r\n\r\n",
            "GET https://x.example:PORT/ HTTP/1.1\r\nHost: x.example:PORT\r\n\r\n",
            "CONNECT y.example:443 HTTP/1.1\r\nHost: y.example:443\r\n\r\n",
        ] {
            let (answer, seen, actions) = served(request, |_| ()).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
            assert!(seen.is_empty());
            assert_eq!(actions, [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied]);
        }
    });
}

/// Proves: NET-4 sni
#[test]
fn the_second_request_is_looked_at_like_the_first() {
    run(async {
        let both =
            "GET / HTTP/1.1\r\nHost: x.example\r\n\r\nGET / HTTP/1.1\r\nHost: y.example\r\n\r\n";
        let (answer, seen, _) = served(both, |_| ()).await;
        assert!(answer.contains("200 fine") && answer.contains("403 Forbidden"), "{answer}");
        assert_eq!(seen.len(), 1);
    });
}

/// Proves: NET-4 one-reading
#[test]
fn a_smuggled_request_is_never_sent() {
    run(async {
        let smuggled = "POST / HTTP/1.1\r\nHost: x.example\r\nContent-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: y.example\r\n\r\n";
        let (answer, seen, _) = served(smuggled, |_| ()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(seen.is_empty());
        let (_, seen, _) = served(smuggled, |config| config.checks.strict_http = false).await;
        assert!(seen.iter().any(|request| request.contains("/smuggled")), "{seen:?}");
    });
}

/// The check that is switched off is the one that held it.
#[test]
fn without_agreement_another_host_is_asked() {
    run(async {
        let request = "GET / HTTP/1.1\r\nHost: y.example\r\n\r\n";
        for strict in [true, false] {
            let (answer, seen, _) = served(request, |config| {
                config.checks.strict_http = strict;
            })
            .await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(seen.is_empty());
            let (_, seen, _) = served(request, |config| {
                config.checks.strict_http = strict;
                config.checks.agreement = false;
            })
            .await;
            assert!(seen[0].to_lowercase().contains("host: y.example\r\n"), "{seen:?}");
        }
    });
}

#[test]
fn an_old_request_without_a_host_gets_the_one_of_its_connection() {
    run(async {
        let (answer, seen, _) = served("GET / HTTP/1.0\r\n\r\n", |_| ()).await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert!(seen[0].contains("host: x.example:"), "{seen:?}");
    });
}

/// Proves: NET-7 bytes
#[test]
fn the_limit_of_bytes_ends_an_answer() {
    run(async {
        // In the request, in the head of the answer, and in its body, which is then cut.
        for (bytes, event) in [(10, true), (60, true), (79, false)] {
            let request = "GET / HTTP/1.1\r\nHost: x.example\r\n\r\n";
            let change = |config: &mut Config| config.limits.bytes = Some(bytes);
            let (answer, _, actions) = served(request, change).await;
            assert_eq!(answer.starts_with("HTTP/1.1 429 "), event, "{bytes}: {answer}");
            assert!(!answer.ends_with("hello"), "{answer}");
            assert_eq!(
                actions,
                [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied],
                "{bytes}"
            );
        }
    });
}

fn with_credential(config: &mut Config) {
    config.credentials = vec![Credential {
        name: "TOKEN".to_owned(),
        hosts: vec![HostEntry::parse("x.example").unwrap()],
        header: "authorization".to_owned(),
        value: Secret::new("Bearer secret".to_owned()),
    }];
}

/// Proves: NET-5 credentials
#[test]
fn where_tls_is_opened_no_secret_goes_out_in_clear() {
    run(async {
        let request =
            "GET / HTTP/1.1\r\nHost: x.example\r\nAuthorization: Bearer placeholder\r\n\r\n";
        let (answer, seen, _) = served(request, with_credential).await;
        assert!(answer.ends_with("hello"), "{answer}");
        assert!(seen[0].contains("authorization: Bearer secret\r\n"), "{seen:?}");
        let (answer, seen, _) = served(request, |config| {
            with_credential(config);
            let hosts = [HostPattern::parse("x.example").unwrap()];
            config.authority = Some(certificates::authority(&hosts).unwrap());
        })
        .await;
        assert!(answer.ends_with("hello"), "{answer}");
        assert!(seen[0].contains("authorization: Bearer placeholder\r\n"), "{seen:?}");
    });
}

/// Proves: NET-5 credentials
#[test]
fn a_request_that_is_answered_with_itself_gets_no_secret() {
    run(async {
        for method in ["TRACE", "TRACK", "trace"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: x.example\r\n\r\n");
            let (answer, seen, actions) = served(&request, with_credential).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{method}: {answer}");
            assert!(seen.is_empty(), "{seen:?}");
            assert_eq!(
                actions,
                [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied],
                "{method}"
            );
            let (answer, seen, _) = served(&request, |_| ()).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{method}: {answer}");
            assert_eq!(seen.len(), 1, "without a credential there is nothing to give away");
        }
    });
}
