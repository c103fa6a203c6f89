//! The sender with its filter in place, in a process of its own, and a collector beside it.

use super::*;
use crate::model::{Attribute, Span};
use palisade_record::SpanContext;
use palisade_sys::fdpass::socketpair;
use palisade_sys::test_child::in_child;
use palisade_wire::try_receive;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Takes so many requests, and gives their bodies.
fn collector(
    listener: TcpListener,
    count: usize,
    tls: Option<Arc<ServerConfig>>,
) -> JoinHandle<Vec<Vec<u8>>> {
    fn take(stream: impl Read + Write) -> Vec<u8> {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None if line.trim().is_empty() => break,
                None => assert!(line.starts_with("POST /v1/"), "{line}"),
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(TAKEN).unwrap();
        body
    }
    std::thread::spawn(move || {
        let streams = listener.incoming().take(count);
        let bodies = streams.map(|stream| match &tls {
            None => take(stream.unwrap()),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                take(StreamOwned::new(connection, stream.unwrap()))
            }
        });
        bodies.collect()
    })
}

fn span() -> Span {
    Span::new("make", &SpanContext::root("test"), None, (1, 2))
}

/// What the run hears of it.
fn send(endpoint: &str, tls: Option<&Arc<ClientConfig>>) -> Option<NotSent> {
    let settings = Settings::of(&|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.to_owned()),
        "OTEL_EXPORTER_OTLP_TIMEOUT" => Some("3000".to_owned()),
        _ => None,
    });
    let settings = settings.unwrap().unwrap();
    let resolve = |target| Some(Destination::resolve(target, tls.cloned()));
    let sender = Sender {
        traces: settings.traces.and_then(resolve),
        metrics: settings.metrics.and_then(resolve),
        resource: Resource(vec![Attribute::new("service.name", "palisade")]),
    };
    let (socket, theirs) = socketpair().unwrap();
    rustix::fs::fcntl_setfl(&theirs, rustix::fs::OFlags::NONBLOCK).unwrap();
    try_send(&socket, &encode(&ToSender::Span(Box::new(span()))).unwrap()).unwrap();
    shutdown(&socket, Shutdown::Write).unwrap();
    in_child(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        sender.run(&runtime.unwrap(), theirs).unwrap();
    });
    let mut buffer = vec![0; NotSent::MAX_BYTES];
    try_receive(&socket, &mut buffer).ok().flatten().map(|received| received.message)
}

fn expected() -> Vec<u8> {
    let resource = Resource(vec![Attribute::new("service.name", "palisade")]);
    crate::encode::traces(&resource, &[span()])
}

/// Proves: TEL-1 otlp
#[test]
fn a_confined_sender_reaches_its_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = collector(listener, 1, None);
    assert_eq!(send(&endpoint, None), None);
    assert_eq!(collector.join().unwrap(), [expected()]);
}

#[test]
fn a_confined_sender_speaks_tls_and_checks_the_name() {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap().der().clone();
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], secret)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let trusting = certificates::client(roots).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let collector = collector(listener, 1, Some(Arc::new(server)));
    assert_eq!(send(&endpoint, Some(&trusting)), None);
    assert_eq!(collector.join().unwrap(), [expected()]);
    let without = send(&endpoint, None).unwrap();
    assert!(without.why.contains("certificates"), "{without:?}");
}

#[test]
fn a_collector_that_is_gone_or_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let silent = send(&endpoint, None).unwrap();
    assert_eq!((silent.count, silent.why.contains("did not answer")), (1, true), "{silent:?}");
    drop(listener);
    let gone = send(&endpoint, None).unwrap();
    assert!(gone.why.contains("cannot connect") || gone.why.contains("did not answer"), "{gone:?}");
}
