//! Heads and chunked bodies of requests. What is accepted has one reading: its own lines end in CR LF only, one
//! Host, one length; and what is written for the server is read again as the same request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palisade_egress::http::body::{Body, From, Piece};
use palisade_egress::http::head::{Framing, MAX_HEAD_BYTES, MAX_FIELDS, Parsed, parse};

fuzz_target!(|data: &[u8]| {
    let rest = match parse(data) {
        Parsed::Head(head) => {
            let own = &data[..head.size];
            assert!(head.size <= MAX_HEAD_BYTES + 2 && head.fields.len() <= MAX_FIELDS);
            assert!(own.ends_with(b"\r\n\r\n"));
            for (index, byte) in own.iter().enumerate() {
                assert!(*byte != b'\n' || own[index - 1] == b'\r', "a bare line feed");
                assert!(*byte != b'\r' || own[index + 1] == b'\n', "a bare carriage return");
                assert!(!byte.is_ascii_control() || matches!(byte, b'\r' | b'\n' | b'\t'));
            }
            assert!(head.fields.all("host").count() <= 1);
            let lengths = head.fields.all("content-length").count();
            assert!(lengths == 0 || head.fields.all("transfer-encoding").count() == 0);
            // What comes behind it changes nothing, and no beginning of it is a head already.
            assert_eq!(parse(own), Parsed::Head(head.clone()));
            assert_eq!(parse(&own[..own.len() - 1]), Parsed::NeedMore);
            &data[head.size..]
        }
        Parsed::NeedMore | Parsed::Bad(_) => data,
    };
    let read = |step: usize| {
        let mut body = Body::new(Framing::Chunked, From::Inside);
        let (mut content, mut at, mut seen) = (Vec::new(), 0, 0);
        while !body.is_done() {
            let piece = body.advance(&rest[at..seen]).map_err(|fault| fault.to_string())?;
            content.extend_from_slice(&rest[at + piece.framing..][..piece.content]);
            at += piece.framing + piece.content;
            if piece == Piece::default() && !body.is_done() {
                if seen == rest.len() {
                    body.end().map_err(|fault| fault.to_string())?;
                }
                seen = (seen + step).min(rest.len());
            }
        }
        Ok::<_, String>((content, at))
    };
    assert_eq!(read(1), read(rest.len().max(1)));
});
