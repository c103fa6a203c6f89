use super::*;

fn parsed(text: &str) -> (String, Option<Vec<u16>>) {
    let entry = HostEntry::parse(text).unwrap();
    assert_eq!(entry.written, text);
    (entry.pattern.to_string(), entry.ports)
}

/// Proves: NET-3 ports
#[test]
fn ports_stand_behind_the_host() {
    for (text, host, ports) in [
        ("x.example", "x.example", None),
        ("x.example:8443", "x.example", Some(vec![8443])),
        ("*.x.example:443,80,443", "*.x.example", Some(vec![80, 443])),
        ("*:22", "*", Some(vec![22])),
        ("192.0.2.1:22", "192.0.2.1", Some(vec![22])),
        ("2001:db8::1", "2001:db8::1", None),
        ("[2001:db8::1]", "[2001:db8::1]", None),
        ("[2001:db8::1]:443", "[2001:db8::1]", Some(vec![443])),
        ("192.0.2.0/24", "192.0.2.0/24", None),
        ("192.0.2.0/24:443,8443", "192.0.2.0/24", Some(vec![443, 8443])),
        ("2001:db8::/32", "2001:db8::/32", None),
        ("2001:db8::/32:22", "2001:db8::/32", Some(vec![22])),
        ("[2001:db8::]/32:22", "[2001:db8::]/32", Some(vec![22])),
    ] {
        assert_eq!(parsed(text), (host.to_owned(), ports), "{text}");
    }
}

/// Proves: NET-3 ports
#[test]
fn what_is_no_port_is_refused() {
    for text in [
        "x.example:",
        "x.example:0",
        "x.example:65536",
        "x.example:80,",
        "x.example:http",
        "x.example:+80",
        "x.example: 80",
        "192.0.2.0/24:",
        "[2001:db8::1]:",
    ] {
        assert!(matches!(HostEntry::parse(text), Err(HostError::Port { .. })), "{text}");
    }
    for text in ["https://x.example", "https://x.example:8443/path", "http://[2001:db8::1]/"] {
        assert!(matches!(HostEntry::parse(text), Err(HostError::Url(_))), "{text}");
    }
    for text in ["", ":80", "[]:80", "[2001:db8::1]x:80", "me@x.example"] {
        assert!(HostEntry::parse(text).is_err(), "{text}");
    }
}
