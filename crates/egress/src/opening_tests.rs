use super::*;
use crate::peek::{ProtocolKind, classify};
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
        b"GET\xa0x\r\n",
        b"GET\r\n",
        b"FETCH evil.example\r\nHost: evil.example\r\n",
        b"FETCH evil.example\nHost : evil.example\n",
        b"FETCH evil.example\r\n Host: evil.example\r\n",
        b"FETCH evil.example\r\n\r\nGET / HTTP/1.1\r\n",
        b"{x} y HTTP/1.1\r\n",
        b"{x} y V\r\nHost: evil.example\r\n",
        b"FETCH x V\r\nX(y: 1\r\nHost: evil.example\r\n",
        b"FETCH x V\rHost: evil.example\r\r",
        b"F\x01 /x V\r\r\n",
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

/// First lines that a server was seen to answer, with the host of the field behind them.
///
/// Proves: NET-4 one-reading
#[test]
fn what_a_known_server_takes_for_a_request_is_one() {
    const BUSYBOX: &str = "busybox 1.35 httpd";
    const JAVA: &str = "java 17 HttpServer";
    const NODE: &str = "node 20";
    const WSGIREF: &str = "python 3.11 wsgiref";
    const BALANCED: &str = "a server that a load balancer stands before";
    let long_version = [b"\x01A / ", &*b"A".repeat(70_000), b"\r\n"].concat();
    for (server, start) in [
        (BUSYBOX, &b"GE\rT /cgi-bin/x HT\rTP/1.0\nX\ry: 1\r\n"[..]),
        (BUSYBOX, b"GE\rT /cgi-bin/x HT\rTP/1.0\nX(y: 1\r\n"),
        (BUSYBOX, b"P\rOST /cgi-bin/x HT\rTP/1.1\nX\ry: 1\r\n"),
        (WSGIREF, b"\x1cGET /\r\n"),
        (WSGIREF, b"\x1cGET\x1d/abc\r\n"),
        (WSGIREF, b"\x1fGET x\r\n"),
        (WSGIREF, b"\xa0GET /\r\nX(y: 1\r\n"),
        (WSGIREF, b"\xa0GET /\r\n x\r\n"),
        (WSGIREF, b"\xa0GET /\r\nFrom x\r\n"),
        (WSGIREF, b"\x85GET /\r\nX(y: 1\r\n"),
        (WSGIREF, b"\x01X / HTTP/+1.1\r\n"),
        (WSGIREF, b"\x01X / HTTP/-1.1\r\n"),
        (WSGIREF, b"\x01X\x85x\xa0HTTP/+1.1\r\n"),
        (JAVA, b"FOO\nBAR / HTTP/1.1\r\n"),
        (JAVA, b"Q\nGET / HTTP/1.1\r\n"),
        (JAVA, b"Q\r\r\nGET / HTTP/1.1\r\n"),
        (JAVA, b"*1\nGET / HTTP/1.1\r\n"),
        (JAVA, b"\x01A\nGET / HTTP/1.1\r\n"),
        (JAVA, b"\x01A\nB /x V\r\n"),
        (JAVA, b"PRI\x7f / RTSP/1.0\r\n"),
        (JAVA, b"G(ET / \rH\xa0TTP/1.0\r\n"),
        (JAVA, b"\r\n\r\n\x01 / V\r\n"),
        (JAVA, b" / V\r\n"),
        (JAVA, b"FOO %2F X\r\n"),
        (JAVA, b"\x01 %2F X\r\n"),
        (JAVA, b"\x01 x:/ X\r\n"),
        (JAVA, b"SSH-2.0-x x:/ X\r\n"),
        (JAVA, b"\0\0\0\x08 x+y://h/ X\r\n"),
        (JAVA, &long_version),
        (NODE, b"SOURCE /x ICE/1.0\r\n"),
        (BALANCED, b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\n"),
        (BALANCED, b"PROXY UNKNOWN\r\n\x16\x03\x01"),
        (BALANCED, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET / HTTP/1.1\r\n"),
        (BALANCED, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04"),
    ] {
        let request = [start, b"Host: hidden.example\r\n\r\n"].concat();
        let shown = start.get(..80).unwrap_or(start).escape_ascii();
        assert_eq!(look(&request), Opening::Request, "{server}: {shown}");
    }
}

/// To some servers the end of what the client sends is the end of its request.
///
/// Proves: NET-4 one-reading
#[test]
fn a_request_that_ends_with_its_client_does_not_pass() {
    for request in [
        &b"\x1cGET /x"[..],
        b"\x1fGET\x1cx",
        b"\xa0GET x",
        b"\xa0GET /x\r\nX(y: 1",
        b"(GET /x",
        b"\x01X x HTTP/1.1",
        b"GE\rT /cgi-bin/x",
    ] {
        let opening = look(request);
        let is_refused = matches!(opening, Opening::Request | Opening::Open(SoFar::Line));
        assert!(is_refused, "{}: {opening:?}", request.escape_ascii());
    }
}

/// What clients say first, where nothing of HTTP is spoken.
#[test]
fn other_protocols_pass() {
    for (protocol, said) in [
        ("ssh", &b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n\0\0\x05\xdc\x06\x14"[..]),
        ("ssh", b"SSH-2.0-libssh_0.10\n"),
        ("smtp", b"EHLO a.example\r\nMAIL FROM:<a@a.example>\r\n"),
        ("smtp", b"EHLO [192.0.2.1]\r\n"),
        ("ftp", b"USER me\r\nPASS a:b/c\r\n"),
        ("ftp", b"AUTH TLS\r\n"),
        ("pop3", b"CAPA\r\n"),
        ("pop3", b"USER me\r\nPASS it\r\n"),
        ("imap", b"a001 CAPABILITY\r\n"),
        ("imap", b"a1 LOGIN me pass\r\na2 SELECT x\r\n"),
        ("imap", b"a1 AUTHENTICATE PLAIN\r\nAG1lAHB3\r\n"),
        ("irc", b"NICK me\r\nUSER me 0 * :my name\r\n"),
        ("irc", b"CAP LS 302\r\nNICK me\r\nUSER me 0 * :my name\r\n"),
        ("irc", b"USER me 0 * :my name\r\nNICK me\r\n"),
        ("redis", b"*1\r\n$4\r\nPING\r\n"),
        ("redis", b"PING\r\n"),
        ("redis", b"PING\r\nSET a http://a.example/\r\n"),
        ("redis", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$18\r\nGET /x HTTP/1.1\r\nH\r\n"),
        ("memcached", b"get key\r\n"),
        ("memcached", b"set key 0 0 5\r\nvalue\r\n"),
        ("memcached", b"\x80\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0key"),
        ("stomp", b"CONNECT\naccept-version:1.2\nhost:a.example\n\n\0"),
        ("stomp", b"CONNECT\r\naccept-version:1.2\r\n"),
        ("nats", b"CONNECT {\"verbose\":false,\"name\":\"a b\"}\r\nPING\r\n"),
        ("whois", b"example.com\r\n"),
        ("rsync", b"@RSYNCD: 31.0 sha512 sha256\nmodule\n"),
        ("rsync", b"@RSYNCD: 30.0\n\n"),
        ("svn", b"( 2 ( edit-pipeline svndiff1 ) 17:svn://a.example/x 10:SVN/1.14.2 ( ) ) \n"),
        ("xmpp", b"<?xml version='1.0'?>\n<stream:stream to='a.example' xmlns='http://x/'>\n"),
        ("json", b"{\"jsonrpc\": \"2.0\", \"url\": \"http://a.example/\"}\n{\"a\": 1}\n"),
        ("telnet", b"\xff\xfb\x1f\xff\xfb\x20\xff\xfb\x18"),
        ("git", b"0025git-upload-pack /x\0host=a.exampl\x000032want 0 agent=git/2.39\n"),
        (
            "git",
            b"0035git-upload-pack /http/x\0host=a.exampl\0\0version=2\x000014command=ls-refs\n",
        ),
        ("postgresql", b"\0\0\0\x08\x04\xd2\x16\x2f"),
        ("postgresql", b"\0\0\0\x21\0\x03\0\0user\0me\0TimeZone\0Europe/Paris\0\0"),
        ("postgresql", b"\0\0\0\x0f\0\x03\0\0user\0me\0\0Q\0\0\0\x14select * from x\r\n;\0"),
        ("mysql", b"\xb5\0\0\x01\x05\xa6\x3f\0\0\0\0\x01\x21\0\0\0me\0\x14mysql_native_password\0"),
        ("mysql", b"\x20\0\0\x01\x85\xae\xff\x19\0\0\0\x01\x2d"),
        ("mongodb", b"\x3a\0\0\0\x01\0\0\0\0\0\0\0\xd4\x07\0\0\0\0\0\0admin.$cmd\0\x0a\n"),
        ("kafka", b"\0\0\0\x20\0\x12\0\x03\0\0\0\x01\0\x0aconsole-er\0\x04java 3.6/x\n"),
        ("amqp", b"AMQP\0\0\x09\x01\x01\0\0\0\0\0\x0a"),
        ("mqtt", b"\x10\x1e\0\x04MQTT\x04\x02\x08http/1.1 \n"),
        ("ldap", b"0\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\0\x80\0"),
        ("dns", b"\0\x1d\xab\xcd\x01\x20\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01"),
        (
            "bitcoin",
            b"\xf9\xbe\xb4\xd9version\0\0\0\0\0\x66\0\0\0\x7f\x11\x01\0\x20/Satoshi:25.0.0/\n",
        ),
        ("bittorrent", b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05"),
        ("xmlsocket", b"<x/>\0<y a='/'/>\0"),
        ("something", b"\0\0\0\x08x\n"),
    ] {
        let opening = look(said);
        let passes = matches!(opening, Opening::NoRequest | Opening::Open(SoFar::MayPass));
        assert!(passes, "{protocol}: {}: {opening:?}", said.escape_ascii());
        for end in 0..said.len() {
            assert_ne!(look(&said[..end]), Opening::Request, "{}", said[..end].escape_ascii());
        }
    }
}

/// What is told at once need not be kept and looked at again.
#[test]
fn other_protocols_are_told_early() {
    for other in [
        &b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"[..],
        b"EHLO a.example\r\nMAIL F",
        b"*1\r\n$4\r\n",
        b"QUIT\r\n",
        b"@RSYNCD: 31.0 sha512\nmodule\n",
        b"\0\0\0\x08x\0y z\n",
        b"0025git-upload-pack /x\0host=a.exampl\x000032want 0\n",
    ] {
        let opening = look(&[other, b" "].concat());
        assert_eq!(opening, Opening::NoRequest, "{}", other.escape_ascii());
    }
}

#[test]
fn what_cannot_be_told_yet_stays_open() {
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

/// Proves: NET-4 one-reading
#[test]
fn a_line_that_is_too_long_to_be_seen_is_a_request() {
    const MAY_PASS: Opening = Opening::Open(SoFar::MayPass);
    for (start, at_first, at_last) in [
        (&b"word "[..], Opening::Request, Opening::Request),
        (b"word", Opening::Request, Opening::Request),
        (b"{word ", Opening::Request, Opening::Request),
        (b"word word\r\n", Opening::Request, Opening::Request),
        (b"w\0rd /x ", MAY_PASS, Opening::Request),
        // Not even a space.
        (b"\0word", MAY_PASS, Opening::NoRequest),
    ] {
        let long = [start, &vec![b'x'; MAX_LINE_BYTES + 1]].concat();
        assert_eq!(look(&long), at_first, "{}", start.escape_ascii());
        let longer = [start, &vec![b'x'; MAX_BINARY_LINE_BYTES]].concat();
        assert_eq!(look(&longer), at_last, "{}", start.escape_ascii());
    }
}

/// What was decided stays so, whatever follows.
#[test]
fn bytes_without_a_space_pass_however_many_they_are() {
    for byte in [b"\0", b"\x7f"] {
        let most = byte.repeat(MAX_BINARY_LINE_BYTES);
        assert_eq!(look(&most), Opening::Open(SoFar::MayPass));
        for behind in [&byte[..], b" / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            assert_eq!(look(&[&most, &byte[..], behind].concat()), Opening::NoRequest);
        }
    }
}

/// Once there is a second word that is no path, no length makes a request of it.
#[test]
fn bytes_that_are_no_text_pass_however_many_they_are() {
    let start = b"Q\0\0\0\x14select * from x\0";
    let long = [start, &*b"\0".repeat(2 * MAX_BINARY_LINE_BYTES)].concat();
    for end in (start.len()..long.len()).step_by(4 * 1024) {
        let opening = look(&long[..end]);
        assert!(matches!(opening, Opening::NoRequest | Opening::Open(SoFar::MayPass)));
    }
    assert_eq!(look(&long), Opening::NoRequest);
}

/// Servers that forgive as much as any known one: what they take for a request that names its host.
fn is_taken(bytes: &[u8]) -> bool {
    let without_crs: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\r').collect();
    is_taken_in_lines(bytes) || is_taken_in_lines(&without_crs) || is_taken_up_to_cr_lf(bytes)
}

fn is_taken_in_lines(bytes: &[u8]) -> bool {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || is_blank(*byte);
    let start = bytes.iter().position(|byte| !is_space(byte)).unwrap_or(0);
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
        [_, _, version] => version.to_ascii_uppercase().starts_with(b"HTTP/"),
        [method, _] => *method == b"GET" && skipped == 0,
        _ => false,
    }
}

/// Java's way.
fn is_taken_up_to_cr_lf(bytes: &[u8]) -> bool {
    let text: String = bytes.iter().copied().map(char::from).collect();
    let line = text.trim_start_matches("\r\n").split_once("\r\n").map(|(line, _)| line);
    let words: Vec<&str> = line.unwrap_or_default().splitn(3, ' ').collect();
    matches!(words.as_slice(), [_, "/x" | "%2f" | "y:/x" | "http://evil.example/", _])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Proves: NET-4 one-reading
    #[test]
    fn no_request_is_ever_called_something_else(
        lead in "([\r\n \t\x0b\x1c\u{85}\u{a0}\\x00\\x01]{0,3}|Q\n|\\x01\n)",
        method in "(GET|get|PUT|FETCH|GE\rT|G\\x00T|\\{x|0025git-upload-pack|SSH-2\\.0-x|EHLO|\u{e9}x)",
        one in "[ \t\r\x0b\x0c\x1c\x1f\u{a0}\\x00]{1,2}",
        target in "(/x|\\*|x|%2f|y:/x|\\x00/x|/x\\x00|http://evil\\.example/|/x\\x00host=a\\.exampl\\x00|rtsp://e/)",
        two in "[ \t\r\x0b\x0c\x1c\x1f\u{85}]{1,2}",
        version in "(HTTP/1\\.1|http/1\\.0|HTTP/1\\.\\x00|HTTP/\\+1\\.1|HT\rTP/1\\.0|RTSP/1\\.0|V|)",
        end in "(\r\n|\n|\r|\r\r\n|)",
        fields in "(X\\(y: 1\r\n|)(Host: evil\\.example\r\n\r\n|\r\n|)",
    ) {
        let text = [lead, method, one, target, two, version, end, fields].concat();
        // Each character is one byte.
        let bytes: Vec<u8> = text.chars().map(|one| u8::try_from(one).unwrap()).collect();
        if is_taken(&bytes) {
            prop_assert_eq!(look(&bytes), Opening::Request, "{}", bytes.escape_ascii());
            for end in 0..=bytes.len() {
                prop_assert_ne!(classify(&bytes[..end]), Some(ProtocolKind::Other), "{}", bytes[..end].escape_ascii());
            }
        }
    }

    #[test]
    fn more_bytes_never_change_what_was_told(
        words in prop::collection::vec("(GET|/|x| |\r|\n|\\x00|\\x01|\\{|HTTP/1\\.1|Host|:|0025git-upload-pack /x|host=a\\.exampl|://|%2f|PROXY|QUIT)", 0..12),
    ) {
        let bytes = words.concat().into_bytes();
        let whole = look(&bytes);
        for end in 0..bytes.len() {
            let early = look(&bytes[..end]);
            prop_assert!(matches!(early, Opening::Open(_)) || early == whole, "{}", bytes[..end].escape_ascii());
        }
    }
}
