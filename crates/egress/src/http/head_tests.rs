use super::*;
use proptest::prelude::*;

fn head(text: &str) -> RequestHead {
    match parse(text.as_bytes()) {
        Parsed::Head(head) => *head,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn fault(text: &str) -> Fault {
    match parse(text.as_bytes()) {
        Parsed::Bad(fault) => fault,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn authority(text: &str) -> Authority {
    Authority::parse(text).unwrap()
}

/// Proves: NET-4 one-reading
#[test]
fn an_ordinary_head_is_read_as_it_is() {
    let text = "POST /a?b HTTP/1.1\r\nHost: X.Example:8080\r\nContent-Length: 5\r\nX-A:  b c\t\r\n\r\nhello";
    let head = head(text);
    assert_eq!(head.method, "POST");
    assert_eq!(head.target, Target::Origin("/a?b".to_owned()));
    assert_eq!(head.host, Some(authority("x.example:8080")));
    assert_eq!(head.body, Framing::Length(5));
    assert_eq!(head.fields.only("x-a"), Some("b c"));
    assert_eq!(&text[head.size..], "hello");
    assert!(head.keeps_alive());
}

#[test]
fn targets_have_four_forms() {
    let absolute = head("GET HTTP://User.Example?q HTTP/1.1\r\nHost: user.example:80\r\n\r\n");
    let expected = Target::Absolute {
        scheme: Scheme::Http,
        authority: authority("user.example"),
        path: "/?q".to_owned(),
    };
    assert_eq!(absolute.target, expected);
    let connect = head("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n");
    assert_eq!(connect.target, Target::Authority(authority("[2001:db8::1]:443")));
    assert_eq!(head("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").target, Target::Asterisk);
    for wrong in [
        "GET * HTTP/1.1",
        "GET x HTTP/1.1",
        "GET /#a HTTP/1.1",
        "GET ftp://x/ HTTP/1.1",
        "get \u{fc} HTTP/1.1",
    ] {
        assert_eq!(fault(&format!("{wrong}\r\nHost: x\r\n\r\n")), Fault::Target, "{wrong}");
    }
}

/// Proves: NET-3 spellings
#[test]
fn an_authority_is_a_host_and_a_port_and_nothing_else() {
    assert_eq!(authority("0x7f.1").host, Host::parse("127.0.0.1").unwrap());
    assert_eq!(authority("[::ffff:127.0.0.1]:80").host, Host::parse("127.0.0.1").unwrap());
    assert_eq!(authority("X.example.").to_string(), "x.example");
    assert_eq!(authority("[2001:db8::1]:443").to_string(), "[2001:db8::1]:443");
    for wrong in [
        "",
        ":80",
        "x:",
        "x:0",
        "x:65536",
        "x:+1",
        "x:0x50",
        "u@x",
        "u:p@x:80",
        "2001:db8::1",
        "[::1",
        "x y",
        "x\0y",
        "[::1]x:80",
        "x:80:80",
        "::1:80",
    ] {
        assert_eq!(Authority::parse(wrong), None, "{wrong:?}");
        assert!(matches!(
            parse(format!("CONNECT {wrong} HTTP/1.1\r\n\r\n").as_bytes()),
            Parsed::Bad(_)
        ));
    }
}

/// Proves: NET-4 one-reading
#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let cases = [
        ("GET / HTTP/1.1\nHost: x\n\n", Fault::LineEnd),
        ("GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", Fault::LineEnd),
        ("GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", Fault::LineEnd),
        ("GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", Fault::Folded),
        ("GET / HTTP/1.1\r\n X: y\r\nHost: x\r\n\r\n", Fault::Folded),
        ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", Fault::FieldName),
        ("GET / HTTP/1.1\r\nHost: x\r\nX\u{e9}: y\r\n\r\n", Fault::FieldName),
        ("GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", Fault::FieldName),
        ("GET / HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n", Fault::FieldName),
        ("GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", Fault::Control),
        ("GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n", Fault::Control),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("GET /\tHTTP/1.1\r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("GET / http/1.1\r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("G(T / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::RequestLine),
        ("GET / HTTP/1.1\r\n\r\n", Fault::Host),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Fault::Host),
        ("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", Fault::Host),
        ("GET / HTTP/1.1\r\nHost: u@x\r\n\r\n", Fault::Host),
        ("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", Fault::Disagree),
        ("GET http://a/ HTTP/1.1\r\nHost: a:81\r\n\r\n", Fault::Disagree),
        ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Authority),
        ("CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", Fault::Disagree),
        ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Authority),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), expected, "{text:?}");
        assert_eq!(expected.status(), 400);
    }
}

/// Proves: NET-4 one-reading
#[test]
fn a_body_has_one_length() {
    let with = |fields: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n");
    let cases = [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", Fault::TwoLengths),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", Fault::TwoLengths),
        ("Content-Length: 5\r\nContent-Length: 6", Fault::Length),
        ("Content-Length: 5, 5", Fault::Length),
        ("Content-Length: +5", Fault::Length),
        ("Content-Length: -5", Fault::Length),
        ("Content-Length: 0x5", Fault::Length),
        ("Content-Length:", Fault::Length),
        ("Content-Length: 99999999999999999999", Fault::Length),
        ("Transfer-Encoding: gzip, chunked", Fault::Encoding),
        ("Transfer-Encoding: xchunked", Fault::Encoding),
        ("Transfer-Encoding: \"chunked\"", Fault::Encoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Fault::Encoding),
        ("Transfer-Encoding:", Fault::Encoding),
        ("Transfer-Encoding : chunked", Fault::FieldName),
        ("Transfer-Encoding: \x0bchunked", Fault::Control),
    ];
    for (fields, expected) in cases {
        assert_eq!(fault(&with(fields)), expected, "{fields:?}");
    }
    assert_eq!(fault("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Fault::Encoding);
    assert_eq!(head(&with("Transfer-Encoding: Chunked")).body, Framing::Chunked);
    assert_eq!(head(&with("Content-Length: 5\r\nContent-Length: 5")).body, Framing::Length(5));
}

#[test]
fn other_versions_are_named_as_such() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for text in
        [preface, "GET / HTTP/2\r\n\r\n", "GET / HTTP/0.9\r\n\r\n", "GET / HTTP/1.2\r\n\r\n"]
    {
        assert_eq!(fault(text), Fault::Version);
        assert_eq!(fault(text).status(), 505);
    }
    let old = head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(old.host.is_none() && !old.keeps_alive());
}

#[test]
fn too_much_is_refused_before_it_is_all_there() {
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD_BYTES));
    assert_eq!(fault(&long), Fault::TooLarge);
    let fields = "X: y\r\n".repeat(MAX_FIELDS + 1);
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}");
    assert_eq!(fault(&many), Fault::TooLarge);
    assert_eq!(Fault::TooLarge.status(), 431);
}

#[test]
fn only_websocket_is_upgraded_to() {
    let with = |to: &str| {
        head(&format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {to}\r\n\r\n"))
    };
    assert_eq!(with("WebSocket").upgrade(), Some("websocket"));
    assert_eq!(with("h2c").upgrade(), None);
    assert_eq!(with("websocket, h2c").upgrade(), None);
    assert_eq!(head("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n").upgrade(), None);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("GET ".to_owned()),
        Just("http://".to_owned()),
        Just("x.example".to_owned()),
        Just("Host: ".to_owned()),
        Just("Content-Length: 1".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just(" HTTP/1.1".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just(":".to_owned()),
        "[ -~]{0,6}",
    ]
}

proptest! {
    /// Proves: NET-4 one-reading
    #[test]
    fn what_is_accepted_holds_no_second_reading(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", pieces.concat());
        if let Parsed::Head(head) = parse(text.as_bytes()) {
            let own = &text[..head.size];
            prop_assert!(own.ends_with("\r\n\r\n"));
            prop_assert_eq!(own.matches('\n').count(), own.matches("\r\n").count());
            prop_assert_eq!(own.matches('\r').count(), own.matches("\r\n").count());
            prop_assert_eq!(head.fields.all("host").count(), 1);
            let both = head.fields.all("content-length").count() > 0 && head.fields.all("transfer-encoding").count() > 0;
            prop_assert!(!both);
        }
    }

    /// A head is never read before its end is there, and what follows it changes nothing.
    #[test]
    fn the_end_is_the_first_empty_line(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let text = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let with = [text.as_slice(), &bytes].concat();
        let Parsed::Head(head) = parse(&with) else { panic!("no head") };
        prop_assert_eq!(head.size, text.len());
        for end in 0..text.len() {
            prop_assert_eq!(parse(&text[..end]), Parsed::NeedMore);
        }
    }

    #[test]
    fn any_bytes_at_all(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = parse(&bytes);
    }
}
