use super::*;
use crate::config::{Authority, Credential, Secret};
use crate::engine::certificates::{Inside, MAX_CERTIFICATES, authority, client};
use crate::http_server::test_web::{FINE, answer_all, local, proxy};
use crate::test_support::{config, engine, host, listen, run};
use palisade_hosts::HostPattern;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;

fn pattern(text: &str) -> HostPattern {
    HostPattern::parse(text).unwrap()
}

fn credential(host: &str) -> Credential {
    Credential {
        name: "TOKEN".to_owned(),
        hosts: vec![palisade_hosts::HostEntry::parse(host).unwrap()],
        header: "authorization".to_owned(),
        value: Secret::new("Bearer secret".to_owned()),
    }
}

/// What trusts this authority and nothing else.
fn trusting(authority: &Authority) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
    client(roots).unwrap()
}

fn server_name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).unwrap()
}

/// Whether a client that trusts the authority accepts what it made for this host.
async fn vouches(authority: &Authority, name: &str) -> Result<(), String> {
    let made = Inside::new(authority).unwrap().config_for(&host(name)).unwrap();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connecting = TlsConnector::from(trusting(authority)).connect(server_name(name), near);
    let (accepted, connected) = tokio::join!(TlsAcceptor::from(made).accept(far), connecting);
    drop(accepted);
    connected.map(drop).map_err(|error| error.to_string())
}

/// Proves: NET-5 credentials
#[test]
fn the_authority_vouches_for_hosts_with_a_credential_and_no_others() {
    run(async {
        let hosts = [pattern("api.example"), pattern("*.apex.example"), pattern("**.both.example")];
        let own = authority(&hosts).unwrap();
        for name in ["api.example", "a.b.apex.example", "both.example", "x.both.example"] {
            assert_eq!(vouches(&own, name).await, Ok(()), "{name}");
        }
        for name in ["other.example", "xapi.example", "203.0.113.5"] {
            assert!(vouches(&own, name).await.is_err(), "{name}");
        }
        let addresses = authority(&[pattern("203.0.113.0/24")]).unwrap();
        assert_eq!(vouches(&addresses, "203.0.113.5").await, Ok(()));
        assert!(vouches(&addresses, "198.51.100.1").await.is_err());
        assert!(vouches(&addresses, "api.example").await.is_err());
    });
}

#[test]
fn only_hosts_with_a_credential_are_opened() {
    let mut config = config(&["x.example"]);
    config.credentials = vec![credential("x.example")];
    assert!(!wanted(&config, &host("x.example"), 443));
    config.authority = Some(authority(&[pattern("x.example")]).unwrap());
    assert!(wanted(&config, &host("x.example"), 443));
    assert!(!wanted(&config, &host("y.example"), 443));
    config.credentials = vec![credential("x.example:8443")];
    assert!(wanted(&config, &host("x.example"), 8443));
    assert!(!wanted(&config, &host("x.example"), 443));
}

#[test]
fn certificates_are_made_once_and_not_without_end() {
    let inside = Inside::new(&authority(&[pattern("*")]).unwrap()).unwrap();
    let first = inside.config_for(&host("x.example")).unwrap();
    assert!(Arc::ptr_eq(&first, &inside.config_for(&host("x.example")).unwrap()));
    for index in 0..=MAX_CERTIFICATES {
        inside.config_for(&host(&format!("{index}.example"))).unwrap();
    }
    assert!(inside.made.borrow().len() <= MAX_CERTIFICATES);
}

/// A host of the world that speaks TLS, and the certificate that vouches for it.
async fn secure_web(name: &str) -> (u16, Authority, Rc<RefCell<Vec<String>>>) {
    let world = authority(&[pattern("*")]).unwrap();
    let config = Inside::new(&world).unwrap().config_for(&host(name)).unwrap();
    let (listener, address) = listen().await;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let remember = Rc::clone(&seen);
    spawn_local(async move {
        let answer = Rc::new(|_: &str| FINE.to_owned());
        while let Ok((client, _)) = listener.accept().await {
            if let Ok(client) = TlsAcceptor::from(Arc::clone(&config)).accept(client).await {
                spawn_local(answer_all(client, Rc::clone(&answer), Rc::clone(&remember)));
            }
        }
    });
    (address.port(), world, seen)
}

/// Through a tunnel of the proxy, in TLS that trusts `authority`: what is answered.
async fn ask_securely(
    proxy: std::net::SocketAddr,
    target: &str,
    authority: &Authority,
    request: &str,
) -> io::Result<String> {
    let mut stream = TcpStream::connect(proxy).await?;
    stream
        .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
        .await?;
    let mut established = vec![0; "HTTP/1.1 200 Connection established\r\n\r\n".len()];
    stream.read_exact(&mut established).await?;
    let (name, _) = target.split_once(':').unwrap();
    let mut stream =
        TlsConnector::from(trusting(authority)).connect(server_name(name), stream).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn trusting_engine(engine: &mut Rc<Engine>, world: &Authority) {
    Rc::get_mut(engine).unwrap().intercept.outside = Some(trusting(world));
}

/// Proves: NET-5 credentials
#[test]
fn a_secret_is_added_in_tls_that_is_opened() {
    run(async {
        let (port, world, seen) = secure_web("x.example").await;
        let mut config = local(&["x.example", "y.example"], port);
        config.credentials = vec![credential("x.example")];
        let own = authority(&[pattern("x.example")]).unwrap();
        config.authority = Some(own.clone());
        let (mut opened, _outbox) = engine(config);
        trusting_engine(&mut opened, &world);
        let address = crate::http_server::test_web::proxy_of(opened).await;

        let target = format!("x.example:{port}");
        let request = "GET / HTTP/1.1\r\nHost: x.example\r\nAuthorization: Bearer placeholder\r\nConnection: close\r\n\r\n";
        let answer = ask_securely(address, &target, &own, request).await.unwrap();
        assert!(answer.ends_with("hello"), "{answer}");
        assert!(seen.borrow()[0].contains("authorization: Bearer secret\r\n"));
        assert!(!seen.borrow()[0].contains("placeholder"));

        let other = "GET / HTTP/1.1\r\nHost: y.example\r\n\r\n";
        let answer = ask_securely(address, &target, &own, other).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(seen.borrow().len(), 1);
    });
}

/// Proves: NET-5 credentials
#[test]
fn no_secret_goes_to_a_host_that_cannot_prove_its_name() {
    run(async {
        let (port, _world, seen) = secure_web("x.example").await;
        let mut config = local(&["x.example"], port);
        config.credentials = vec![credential("x.example")];
        let own = authority(&[pattern("x.example")]).unwrap();
        config.authority = Some(own.clone());
        let (address, _engine, _outbox) = proxy(config).await;
        let request = "GET / HTTP/1.1\r\nHost: x.example\r\n\r\n";
        let answer =
            ask_securely(address, &format!("x.example:{port}"), &own, request).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && answer.contains("TLS with the host failed"),
            "{answer}"
        );
        assert!(seen.borrow().is_empty());
    });
}

/// TLS to hosts without a credential is carried as it is: the client sees the host's own certificate.
#[test]
fn other_hosts_are_not_opened() {
    run(async {
        let (port, world, seen) = secure_web("y.example").await;
        let mut config = local(&["x.example", "y.example"], port);
        config.credentials = vec![credential("x.example")];
        config.authority = Some(authority(&[pattern("x.example")]).unwrap());
        let (address, _engine, _outbox) = proxy(config).await;
        let request =
            "GET / HTTP/1.1\r\nHost: y.example\r\nAuthorization: own\r\nConnection: close\r\n\r\n";
        let target = format!("y.example:{port}");
        // The server of the test answers and waits for more.
        let _ = tokio::time::timeout(
            Duration::from_secs(1),
            ask_securely(address, &target, &world, request),
        )
        .await;
        assert!(seen.borrow()[0].contains("Authorization: own"));
    });
}
