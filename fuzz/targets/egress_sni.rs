//! The first bytes of a connection, as TLS greets. What is decided stays decided: more bytes change nothing, and
//! before the last that is needed nothing is said. Cutting the same greeting into other records gives the same name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palisade_egress::peek::{ProtocolKind, classify};
use palisade_egress::sni::{Hello, server_name};

const RECORD_HEAD: usize = 5;

fuzz_target!(|data: &[u8]| {
    let whole = server_name(data);
    if whole != Hello::NeedMore {
        let more = [data, b"\x16\x03\x01 more".as_slice()].concat();
        assert_eq!(server_name(&more), whole);
    }
    for end in 0..data.len().min(512) {
        let early = server_name(&data[..end]);
        assert!(early == Hello::NeedMore || early == whole, "{early:?} before {whole:?}");
    }
    match (&whole, classify(data)) {
        (Hello::Name(host), kind) => assert_eq!(kind, Some(ProtocolKind::Tls(host.clone()))),
        (Hello::Bad(why), kind) => assert_eq!(kind, Some(ProtocolKind::Bad(why))),
        (Hello::NotTls, kind) => assert!(!matches!(kind, Some(ProtocolKind::Tls(_)))),
        (Hello::NeedMore, kind) => assert!(matches!(kind, None | Some(ProtocolKind::Bad(_)))),
    }
    if let Hello::Name(host) = whole
        && let Some(cut) = cut(data)
    {
        assert_eq!(server_name(&cut), Hello::Name(host));
    }
});

/// The first record in two, if it can be cut.
fn cut(data: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = data.split_at_checked(RECORD_HEAD)?;
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    let (body, behind) = rest.split_at_checked(length)?;
    let (first, second) = body.split_at_checked(length / 2).filter(|(first, _)| !first.is_empty())?;
    let mut bytes = Vec::new();
    for part in [first, second] {
        bytes.extend_from_slice(&head[..3]);
        bytes.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(behind);
    Some(bytes)
}
