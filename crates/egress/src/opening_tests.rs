use super::*;
use crate::peek::{Kind, classify};
use proptest::prelude::*;

/// Proves: NET-4 one-reading
#[test]
fn whatever_a_server_could_take_for_a_request_is_one() {
    for request in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"get /",
        b"\r\n\r\nGET /",
        b" GET /",
        b"\x0bGET /",
        b"GET\t/",
        b"GET   /",
        b"WEIRD-METHOD /",
        b"OPTIONS *",
        b"GET http://a.example/ HTTP/1.1\r\n",
        b"GET HTTPS://a.example/ HTTP/1.1\n",
        b"GET x://a.example/ HTTP/1.1\r\n",
        b"GET ws://a.example/ http/1.1\r\n",
        b"GET ?a HTTP/1.1\r\n",
        b"GET %2f HTTP/1.0\r\n",
        b"G\xe9T / HTTP/1.1\r\n",
        b"GET\x1c/ HTTP/1.1\r\n",
        b"CONNECT a.example:443",
        b"PRI * HTTP/2.0",
        b"A-WORD-THAT-IS-MUCH-LONGER-THAN-METHODS-ARE-BUT-SOME-SERVERS-WOULD-TAKE-IT /",
        b"GET\x0b/",
        // NULs anywhere.
        b"GET x\0 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET http://evil.example/\0 HTTP/1.1\r\n",
        b"GET \0/x HTTP/1.1\r\n",
        b"GET\0 / HTTP/1.1\r\n",
        b"G\0T / HTTP/1.1\r\n",
        b"\0GET / HTTP/1.1\r\n",
        b"\0\nGET / HTTP/1.1\r\n",
        b"\x01\0/ HTTP/1.1\r\n",
        // No end of a line, another one, and no version.
        b"GET http://evil.example/secret HTTP/1.0",
        b"FETCH http://evil.example/",
        b"FETCH x\rHTTP/1.1\rHost: evil.example",
        b"FETCH\rx\rHTTP/1.1",
        b"GET x\r\nHost: evil.example\r\n\r\n",
        b"get x",
        b"GET\xa0x\r\n",
        b"GET\r\n",
        b"FETCH evil.example\r\nHost: evil.example\r\n",
        b"FETCH evil.example\nHost : evil.example\n",
        b"FETCH evil.example\r\n Host: evil.example\r\n",
        b"FETCH evil.example\r\n\r\nGET / HTTP/1.1\r\n",
        b"{x} y HTTP/1.1\r\n",
        // Node takes it for HTTP.
        b"OPTIONS rtsp://evil.example/ RTSP/1.0\r\n",
        // Not quite git.
        b"0033git-upload-pack / HTTP/1.1\r\n",
        b"0033git-upload-pack /x\0 HTTP/1.1\r\nHost: evil.example\r\n",
        b"001bgit-upload-pack /x\0y=z\0",
        b"0025git-upload-pack /x\0host=a.example HTTP/1.1\r\n",
        b"0025git-upload-pack /x\0host=a.exampl\0 HTTP/1.1\r\n",
        b"0025git-upload-pack /x\0host=a.exampl\x000014 HTTP/1.1\r\n",
        b"00ffgit-upload-pack /x\0host=a.example\0\n",
        b"ffffgit-upload-pack /x",
        b"0033git-anything /x",
        b" 0033git-upload-pack /x",
    ] {
        assert_eq!(look(request), Opening::Request, "{}", request.escape_ascii());
    }
}

#[test]
fn other_protocols_are_none() {
    for other in [
        &b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"[..],
        b"EHLO a.example\r\nMAIL FROM:<a@a.example>\r\n",
        b"NICK me\r\nUSER me 0 * :my name\r\n",
        b"a1 LOGIN me pass\r\na2 SELECT x\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"QUIT\r\n",
        b"example.com\r\n",
        b"CONNECT\naccept-version:1.2\nhost:a.example\n\n\0",
        b"CONNECT\r\naccept-version:1.2\r\n",
        b"\0\0\0\x08x\n",
        b"AMQP\0\0\x09\x01\x01\0\0\0\0\0\x0a",
        b"\x10\x1e\0\x04MQTT\x04\x02\x08http/1.1 \n",
        b"0025git-upload-pack /x\0host=a.exampl\x000032want 0 agent=git/2.39\n",
        b"0035git-upload-pack /http/x\0host=a.exampl\0\0version=2\x000014command=ls-refs\n",
        b"{\"jsonrpc\": \"2.0\", \"url\": \"http://a.example/\"}\n",
        b"<?xml version='1.0'?>\n",
        b"@RSYNCD: 31.0 sha512\n",
    ] {
        assert_eq!(look(other), Opening::NoRequest, "{}", other.escape_ascii());
    }
}

#[test]
fn what_can_not_be_told_yet_stays_open() {
    for (open, so_far) in [
        (&b""[..], SoFar::Word),
        (b"\r\n", SoFar::Word),
        (b"GE", SoFar::Word),
        (b"SSH-2.0", SoFar::Word),
        (b"{\"json\": 1", SoFar::Word),
        (b"FETCH ", SoFar::Line),
        (b"FETCH x:", SoFar::Line),
        (b"0033git-upload-pack /x", SoFar::Line),
        (b"EHLO a.example\r\n", SoFar::MayPass),
        (b"EHLO a.example\r\nMAIL", SoFar::MayPass),
        (b"\0\0\0\x08", SoFar::MayPass),
        (b"0025git-upload-pack /x\0host=a.exampl\0", SoFar::MayPass),
    ] {
        assert_eq!(look(open), Opening::Open(so_far), "{}", open.escape_ascii());
    }
}

#[test]
fn a_line_without_an_end_is_a_request_if_it_is_text() {
    for (start, opening) in [
        (&b"word "[..], Opening::Request),
        (b"word", Opening::Request),
        (b"\0word", Opening::Open(SoFar::MayPass)),
    ] {
        let long = [start, &vec![b'x'; LONGEST_LINE]].concat();
        assert_eq!(look(&long), opening, "{}", start.escape_ascii());
        assert_eq!(
            look(&[&long, &b"\n"[..]].concat()) == Opening::Request,
            opening == Opening::Request
        );
    }
    for byte in [b"\0", b"\x7f"] {
        assert_eq!(look(&byte.repeat(LONGEST_BINARY_LINE)), Opening::Open(SoFar::MayPass));
        assert_eq!(look(&byte.repeat(LONGEST_BINARY_LINE + 1)), Opening::NoRequest);
    }
}

/// A server that forgives as much as any known one: what it takes for a request that names its host.
fn is_taken(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    // It may skip what is no text, as Jetty did, which was stricter otherwise.
    let skipped = bytes[start..].iter().position(|byte| *byte > b' ').unwrap_or(0);
    let line = bytes[start + skipped..].split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> =
        line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        // Node's way.
        [method, [b'/' | b'*' | b'h' | b'r', ..], b"RTSP/1.0"] => {
            skipped == 0 && method.iter().all(|byte| is_of_token(*byte))
        }
        [_, _, version] => version.to_ascii_uppercase().starts_with(b"HTTP/1."),
        [method, _] => *method == b"GET" && skipped == 0,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Proves: NET-4 one-reading
    #[test]
    fn no_request_is_ever_called_something_else(
        lead in "[\r\n \t\x0b\\x00\\x01]{0,3}",
        method in "(GET|get|PUT|FETCH|G\\x00T|\\{x|0025git-upload-pack|SSH-2\\.0-x|EHLO|\u{e9}x)",
        one in "[ \t\r\x0b\x0c\x1c\x1f\\x00]{1,2}",
        target in "(/x|\\*|x|\\x00/x|/x\\x00|http://evil\\.example/|/x\\x00host=a\\.exampl\\x00|rtsp://e/)",
        two in "[ \t\r\x0b\x0c\x1c\x1f]{1,2}",
        version in "(HTTP/1\\.1|http/1\\.0|HTTP/1\\.\\x00|RTSP/1\\.0|)",
        end in "(\r\n|\n|\r|)",
        fields in "(Host: evil\\.example\r\n\r\n|\r\n|)",
    ) {
        let text = [lead, method, one, target, two, version, end, fields].concat();
        // Each character is one byte.
        let bytes: Vec<u8> = text.chars().map(|one| u8::try_from(one).unwrap()).collect();
        if is_taken(&bytes) {
            for end in 0..=bytes.len() {
                prop_assert_ne!(classify(&bytes[..end]), Some(Kind::Other), "{}", bytes[..end].escape_ascii());
            }
        }
    }

    #[test]
    fn more_bytes_never_change_what_was_told(
        words in prop::collection::vec("(GET|/|x| |\r|\n|\\x00|HTTP/1\\.1|Host|:|0025git-upload-pack /x|host=a\\.exampl|://)", 0..12),
    ) {
        let bytes = words.concat().into_bytes();
        let whole = look(&bytes);
        for end in 0..bytes.len() {
            let early = look(&bytes[..end]);
            prop_assert!(matches!(early, Opening::Open(_)) || early == whole, "{}", bytes[..end].escape_ascii());
        }
    }
}
