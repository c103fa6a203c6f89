use super::*;
use crate::test_support::run;

/// What was asked for, and what was answered to the greeting.
fn read_from(bytes: &[u8]) -> (Option<Request>, Vec<u8>) {
    run(async {
        let mut incoming = Incoming::new(tokio::io::empty(), bytes.to_vec());
        let mut answered = Vec::new();
        (read(&mut incoming, &mut answered).await.unwrap(), answered)
    })
}

fn connect(host: &str, port: u16) -> Option<Request> {
    Some(Request::Connect { host: Host::parse(host).unwrap(), port })
}

const GREETING: &[u8] = &[5, 2, 2, 0];

fn asked(request: &[u8]) -> Option<Request> {
    let (asked, answered) = read_from(&[GREETING, request].concat());
    assert_eq!(answered, [5, 0]);
    asked
}

/// Proves: NET-5 variables
#[test]
fn names_and_addresses_are_understood() {
    assert_eq!(asked(b"\x05\x01\x00\x03\x09X.example\x01\xbb"), connect("x.example", 443));
    assert_eq!(asked(b"\x05\x01\x00\x01\xcb\x00\x71\x05\x00\x50"), connect("203.0.113.5", 80));
    let v6 = [b"\x05\x01\x00\x04".as_slice(), &Ipv6Addr::LOCALHOST.octets(), b"\x00\x50"].concat();
    assert_eq!(asked(&v6), connect("::1", 80));
}

/// Proves: NET-3 spellings
#[test]
fn an_address_in_disguise_is_that_address() {
    let mapped = [
        b"\x05\x01\x00\x04".as_slice(),
        &Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(),
        b"\x00\x50",
    ]
    .concat();
    assert_eq!(asked(&mapped), connect("127.0.0.1", 80));
    assert_eq!(asked(b"\x05\x01\x00\x03\x060x7f.1\x00\x50"), connect("127.0.0.1", 80));
}

#[test]
fn what_is_not_spoken_is_refused_with_the_code_for_it() {
    let refused = |reply| Some(Request::Refused(reply));
    assert_eq!(
        asked(b"\x05\x02\x00\x01\xcb\x00\x71\x05\x00\x50"),
        refused(Reply::CommandNotSupported)
    );
    assert_eq!(
        asked(b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00"),
        refused(Reply::CommandNotSupported)
    );
    assert_eq!(asked(b"\x05\x01\x00\x02"), refused(Reply::AddressNotSupported));
    assert_eq!(asked(b"\x05\x01\x00\x03\x03a\0b\x00\x50"), refused(Reply::Failed));
    assert_eq!(asked(b"\x05\x01\x00\x03\x01a\x00\x00"), refused(Reply::Failed));
    assert_eq!(asked(b"\x04\x01\x00\x01"), None);
    assert_eq!(asked(b"\x05\x01\x00\x03\x09x.ex"), None);
    assert_eq!(read_from(&[5, 1, 2]), (None, vec![5, 0xff]));
    assert_eq!(read_from(&[5]), (None, vec![]));
}
