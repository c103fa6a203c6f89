use super::*;
use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::sync::Arc;

/// What a real client says first.
pub(crate) fn greeting_of(server: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(server.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

fn named(name: &str) -> Hello {
    Hello::Name(Some(Host::parse(name).unwrap()))
}

/// The same greeting, cut into records of so many bytes.
fn cut(greeting: &[u8], size: usize) -> Vec<u8> {
    let fragments = greeting[RECORD_HEAD..].chunks(size);
    fragments
        .flat_map(|fragment| {
            let length = u16::try_from(fragment.len()).unwrap().to_be_bytes();
            [&[22, 3, 1], length.as_slice(), fragment].concat()
        })
        .collect()
}

/// A greeting in one record with these extensions.
fn made(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let extensions: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, value)| [kind.to_be_bytes().as_slice(), &long(value)].concat())
        .collect();
    let body =
        [&[3, 3], [7; 32].as_slice(), &[0], &long(&[0x13, 0x01]), &[1, 0], &long(&extensions)]
            .concat();
    record_of(&body)
}

fn record_of(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[CLIENT_HELLO], &length[1..], body].concat();
    [[22, 3, 1].as_slice(), &long(&message)].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [u16::try_from(bytes.len()).unwrap().to_be_bytes().as_slice(), bytes].concat()
}

fn name_list(kind: u8, name: &[u8]) -> Vec<u8> {
    long(&[[kind].as_slice(), &long(name)].concat())
}

/// Proves: NET-4 sni
#[test]
fn the_name_that_a_client_wants_is_read() {
    assert_eq!(server_name(&greeting_of("a.example")), named("a.example"));
    assert_eq!(server_name(&greeting_of("A.Example")), named("a.example"));
    assert_eq!(server_name(&greeting_of("203.0.113.7")), Hello::Name(None));
}

#[test]
fn every_beginning_of_a_greeting_needs_more() {
    let greeting = greeting_of("a.example");
    for length in 0..greeting.len() {
        assert_eq!(server_name(&greeting[..length]), Hello::NeedMore, "{length}");
    }
}

/// Proves: NET-4 sni
#[test]
fn a_greeting_in_many_records_is_read_whole() {
    let greeting = greeting_of("a.example");
    for size in [1, 2, 3, 5, 64, 200] {
        assert_eq!(server_name(&cut(&greeting, size)), named("a.example"), "{size}");
    }
}

#[test]
fn bytes_behind_the_greeting_are_not_its_concern() {
    let mut bytes = greeting_of("a.example");
    bytes.extend_from_slice(b"anything");
    assert_eq!(server_name(&bytes), named("a.example"));
}

#[test]
fn what_is_no_tls_is_said_to_be_none() {
    for bytes in [b"GET / HTTP/1.1\r\n".as_slice(), b"SSH-2.0-x\r\n", &[0x80, 0x2e, 2, 3], &[0]] {
        assert_eq!(server_name(bytes), Hello::NotTls, "{bytes:?}");
    }
}

/// Servers are known that take each of these for TLS and look for the greeting behind it.
///
/// Proves: NET-4 sni
#[test]
fn tls_that_does_not_begin_with_a_greeting_is_bad() {
    let alert_first = [&[21, 3, 1, 0, 2, 1, 90], greeting_of("b.example").as_slice()].concat();
    let mut odd_version = greeting_of("b.example");
    odd_version[1] = 2;
    let ssl_2 = [0x80, 0x2e, 1, 3, 3, 0, 21].to_vec();
    for bytes in [alert_first, odd_version, ssl_2, vec![20, 3, 3], vec![24, 3, 3], vec![22, 2, 0]] {
        assert!(matches!(server_name(&bytes), Hello::Bad(_)), "{bytes:?}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_bad() {
    let one = || (SERVER_NAME, name_list(HOST_NAME, b"a.example"));
    let two_in_one = long(&[name_list(0, b"a.example"), name_list(0, b"b.example")].concat());
    let cases = [
        ("twice", made(&[one(), (SERVER_NAME, name_list(HOST_NAME, b"b.example"))])),
        ("two in one", made(&[(SERVER_NAME, two_in_one)])),
        ("another kind", made(&[(SERVER_NAME, name_list(1, b"a.example"))])),
        ("empty", made(&[(SERVER_NAME, Vec::new())])),
        ("empty name", made(&[(SERVER_NAME, name_list(HOST_NAME, b""))])),
        ("a NUL", made(&[(SERVER_NAME, name_list(HOST_NAME, b"a.example\0.b.example"))])),
        ("a dot at its end", made(&[(SERVER_NAME, name_list(HOST_NAME, b"a.example."))])),
        (
            "a soft hyphen",
            made(&[(SERVER_NAME, name_list(HOST_NAME, "a\u{ad}.example".as_bytes()))]),
        ),
        ("full-width", made(&[(SERVER_NAME, name_list(HOST_NAME, "\u{ff41}.example".as_bytes()))])),
        (
            "a U-label",
            made(&[(SERVER_NAME, name_list(HOST_NAME, "b\u{fc}cher.example".as_bytes()))]),
        ),
        ("another spelling of an address", made(&[(SERVER_NAME, name_list(HOST_NAME, b"0x7f.1"))])),
        ("no text", made(&[(SERVER_NAME, name_list(HOST_NAME, &[0xff, 0xfe]))])),
        ("bytes behind", made(&[(SERVER_NAME, [name_list(0, b"a.example"), vec![0]].concat())])),
    ];
    for (what, bytes) in cases {
        assert!(matches!(server_name(&bytes), Hello::Bad(_)), "{what}: {:?}", server_name(&bytes));
    }
    assert_eq!(server_name(&made(&[(43, vec![2, 3, 4]), one()])), named("a.example"));
}

#[test]
fn records_that_make_no_sense_are_bad() {
    let greeting = greeting_of("a.example");
    let mut alert_inside = cut(&greeting, 50);
    alert_inside[55] = 21;
    let server_hello = [[22, 3, 3].as_slice(), &long(&[2, 0, 0, 0])].concat();
    for bytes in [&[22, 3, 1, 0, 0][..], &[22, 3, 1, 0xff, 0xff], &alert_inside, &server_hello] {
        assert!(matches!(server_name(bytes), Hello::Bad(_)), "{:?}", &bytes[..5]);
    }
}

#[test]
fn a_greeting_without_extensions_names_nobody() {
    let body = [&[3, 3], [7; 32].as_slice(), &[0], &long(&[0, 0x2f]), &[1, 0]].concat();
    assert_eq!(server_name(&record_of(&body)), Hello::Name(None));
}

#[test]
fn a_greeting_that_claims_to_be_huge_is_bad() {
    let bytes = [22, 3, 1, 0, 4, CLIENT_HELLO, 0xff, 0xff, 0xff];
    assert!(matches!(server_name(&bytes), Hello::Bad(_)));
}

proptest! {
    #[test]
    fn more_bytes_never_change_a_verdict(bytes: Vec<u8>, more: Vec<u8>) {
        let bytes = [&[22, 3, 1], bytes.as_slice()].concat();
        let verdict = server_name(&bytes);
        if verdict != Hello::NeedMore {
            prop_assert_eq!(server_name(&[bytes, more].concat()), verdict);
        }
    }

    #[test]
    fn one_changed_byte_is_read_or_refused(at: prop::sample::Index, to: u8) {
        let mut bytes = made(&[(SERVER_NAME, name_list(HOST_NAME, b"a.example"))]);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Hello::Name(Some(Host::Address(address))) = server_name(&bytes) {
            prop_assert!(false, "{address}");
        }
    }
}
